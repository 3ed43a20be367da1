"""The scheduler's orders of random acts end as all orders of them do, and no two of them are equivalent."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.races.footprints import Footprint
from tests.races.schedules import Race, explore
from tests.support.calls import Call
from tests.support.outcomes import Outcome

type Item = tuple[str, str]
type State = dict[Item, int]
# A call: its kind, the item that decides, and the item that it writes, if any.
type Planned = tuple[str, Item, Item]

ITEMS = [(partition, name) for partition in "PQ" for name in "ab"]
CALLS = st.tuples(
    st.sampled_from(["get", "query", "index", "put", "put if absent", "put if other is absent", "delete"]),
    st.sampled_from(ITEMS),
    st.sampled_from(ITEMS),
)
ACTS = st.lists(st.lists(CALLS, min_size=1, max_size=4), min_size=2, max_size=3).filter(
    lambda acts: sum(map(len, acts)) <= 8
)


def path(item: Item) -> dict[str, Any]:
    return {"pk": {"S": item[0]}, "sk": {"S": item[1]}}


def call_of(planned: Planned, value: int) -> Call:
    kind, item, other = planned
    here = {"TableName": "t"}
    leg = {"Put": {**here, "Item": path(item), "value": value}}
    match kind:
        case "get":
            return Call("GetItem", {**here, "Key": path(item)})
        case "query":
            return Call("Query", {**here, "ExpressionAttributeValues": {":pk": {"S": item[0]}}})
        case "index":
            return Call("Query", {**here, "IndexName": "i"})
        case "put":
            return Call("PutItem", {**here, "Item": path(item), "value": value})
        case "put if absent":
            return Call("TransactWriteItems", {"absent": item, "TransactItems": [leg]})
        case "put if other is absent":
            check = {"ConditionCheck": {**here, "Key": path(other)}}
            return Call("TransactWriteItems", {"absent": other, "TransactItems": [leg, check]})
        case _:
            return Call("DeleteItem", {**here, "Key": path(item)})


class Client:
    """A table in memory. Each call returns what it saw."""

    def __init__(self) -> None:
        self.state: State = {}

    def call(self, operation: str, parameters: dict[str, Any]) -> Any:
        match operation:
            case "GetItem":
                return self.state.get(_item(parameters["Key"]))
            case "Query":
                pk = parameters.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S")
                return tuple(sorted(entry for entry in self.state.items() if pk in (None, entry[0][0])))
            case "PutItem":
                self.state[_item(parameters["Item"])] = parameters["value"]
            case "DeleteItem":
                self.state.pop(_item(parameters["Key"]), None)
            case _:
                put = parameters["TransactItems"][0]["Put"]
                absent = parameters["absent"] not in self.state
                if absent:
                    self.state[_item(put["Item"])] = put["value"]
                return absent
        return None


def _item(written: dict[str, Any]) -> Item:
    return written["pk"]["S"], written["sk"]["S"]


def value_of(seen: Any, number: int) -> int:
    """Returns what an act writes next, which depends on what it has seen."""
    return hash((repr(seen), number))


def interleaved(lengths: list[int]) -> Iterator[list[int]]:
    """Yields every order of acts with these numbers of calls."""
    if not any(lengths):
        yield []
    for act, left in enumerate(lengths):
        if left:
            rest = [other - (number == act) for number, other in enumerate(lengths)]
            yield from ([act, *order] for order in interleaved(rest))


def run_all(acts: list[list[Planned]]) -> tuple[set[Any], set[Any]]:
    """Returns how each order of the acts' calls can end, and the different orders of calls that conflict."""
    ends, traces = set(), set()
    for order in interleaved([*map(len, acts)]):
        client, made = Client(), []
        seen: list[tuple[Any, ...]] = [()] * len(acts)
        for act in order:
            number = len(seen[act])
            call = call_of(acts[act][number], value_of(seen[act], act))
            seen[act] = (*seen[act], client.call(call.operation, call.parameters))
            made.append(((act, number), Footprint.of(call)))
        ends.add((tuple(sorted(client.state.items())), tuple(seen)))
        traces.add(frozenset((one, other) for (one, a), (other, b) in combinations(made, 2) if a.conflicts(b)))
    return ends, traces


Q_A, P_A, P_B = ("Q", "a"), ("P", "a"), ("P", "b")
# Some of its runs are given up, because the rest would repeat an order.
REPEATED: list[list[Planned]] = [
    [("put", Q_A, P_A), ("get", Q_A, P_A)],
    [("put", Q_A, P_A)],
    [("put", P_A, P_A)],
    [("get", P_B, P_A), ("get", Q_A, P_A)],
]


@settings(max_examples=80)
@given(ACTS)
@example(REPEATED)
def test_random_acts(acts):
    client = Client()
    ends: list[Any] = []

    def act(number: int) -> tuple[Any, ...]:
        seen: tuple[Any, ...] = ()
        for planned in acts[number]:
            call = call_of(planned, value_of(seen, number))
            seen = (*seen, client.call(call.operation, call.parameters))
        return seen

    def check(outcomes: list[Outcome]) -> None:
        ends.append((tuple(sorted(client.state.items())), tuple(outcome.get() for outcome in outcomes)))

    def scenario() -> Race:
        client.state = {}
        running: list[Callable[[], Any]] = [partial(act, number) for number in range(len(acts))]
        return Race(running, check)

    number = explore(client, scenario, least=1)
    all_ends, traces = run_all(acts)
    assert {*ends} == all_ends
    assert number == len(traces)
