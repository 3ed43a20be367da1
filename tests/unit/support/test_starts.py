"""A repeated start leaves the same table as the first one, whatever the run in between and the scenario did."""

import secrets
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from awsclient.errors import ServiceError
from controlplane.core import ids
from tests.support import starts
from tests.support.calls import Call, Proceed, intercepted
from tests.support.starts import Kind, Start
from tests.support.table import create_table, stored_items

pytestmark = pytest.mark.races

UNLESS_IT_EXISTS = {"ConditionExpression": "attribute_not_exists(pk)"}

type Act = Callable[[], Any]


class Trial:
    """A scenario that prepares a table with some acts, and the calls that reach the engine."""

    def __init__(self, client: Any, *acts: Act) -> None:
        self.client = client
        self.acts = [*acts]
        self.table = ""
        self.tables = 0
        self.start = Start(client, self._prepare)

    def run(self) -> tuple[list[Any], list[str]]:
        """Returns what the acts returned, and the operations that reached the engine."""
        sent: list[str] = []

        def around(call: Call, proceed: Proceed) -> Any:
            sent.append(call.operation)
            return proceed()

        with self.start.own_run(), intercepted(self.client, around):
            returned = self.start()
        return returned, sent

    def items(self) -> dict[tuple[str, str], Any]:
        return stored_items(self.client, self.table)

    def put(self, text: str) -> Act:
        return lambda: self.client.put_item(TableName=self.table, Item=item(text))

    def put_new(self) -> str:
        """Puts an item whose key is random, in a transaction with a random token."""
        text = f"{ids.new_part()}-{secrets.token_hex(4)}"
        legs = [{"Put": {"TableName": self.table, "Item": item(text)}}]
        self.client.transact_write_items(TransactItems=legs, ClientRequestToken=secrets.token_hex(16))
        return text

    def put_once(self) -> str:
        """Puts an item unless it exists. Returns the error's code if it does."""
        try:
            self.client.put_item(TableName=self.table, Item=item("once"), **UNLESS_IT_EXISTS)
        except ServiceError as error:
            return error.code
        return "put"

    def _prepare(self) -> list[Any]:
        self.table = starts.begin(self._new_table)
        return [act() for act in self.acts]

    def _new_table(self) -> str:
        self.tables += 1
        name = f"starts-{uuid4().hex}"
        create_table(self.client, name)
        return name


def item(text: str) -> dict[str, Any]:
    return {"pk": {"S": "P"}, "sk": {"S": text}}


def test_a_start_is_repeated_without_its_calls_and_with_the_same_answers(client: Any) -> None:
    trial = Trial(client)
    trial.acts = [trial.put_new, trial.put_once, trial.put_once]
    first, _ = trial.run()
    items = trial.items()
    assert first[1:] == ["put", "ConditionalCheckFailedException"]
    assert len(items) == 2
    for _ in range(2):
        assert trial.run() == (first, ["Scan"])
        assert trial.items() == items
    assert trial.start.counted == {Kind.RECORDED: 1, Kind.REPEATED: 2}


def test_what_a_run_has_changed_is_undone(client: Any) -> None:
    trial = Trial(client)
    trial.acts = [trial.put("kept"), trial.put("deleted"), trial.put("changed")]
    trial.run()
    items = trial.items()
    client.delete_item(TableName=trial.table, Key=item("deleted"))
    client.put_item(TableName=trial.table, Item={**item("changed"), "color": {"S": "red"}})
    for number in range(30):
        client.put_item(TableName=trial.table, Item=item(f"new {number}"))
    _, sent = trial.run()
    assert sent == ["Scan", "BatchWriteItem", "BatchWriteItem"]
    assert trial.items() == items


@pytest.mark.parametrize("other", ["another call", "one call more", "one call less"])
def test_a_start_with_other_calls_has_the_table_that_they_make(client: Any, other: str) -> None:
    trial = Trial(client)
    trial.acts = [trial.put_new, trial.put("first")]
    trial.run()
    trial.put("of the run")()
    trial.acts[1:] = {
        "another call": [trial.put("second")],
        "one call more": [trial.put("first"), trial.put("second")],
        "one call less": [],
    }[other]
    (made, *_), _ = trial.run()
    expected = {"another call": {"second"}, "one call more": {"first", "second"}, "one call less": set()}[other]
    assert {key for _, key in trial.items()} == {made, *expected}
    assert trial.start.counted[Kind.DIFFERENT] == 1
    (later, *_), _ = trial.run()
    assert {key for _, key in trial.items()} == {later, *expected}
    assert later == made
    assert trial.start.counted[Kind.NEW] == 1
    assert trial.tables == 2


def test_a_transaction_with_the_token_of_another_run_is_made(client: Any) -> None:
    trial = Trial(client, lambda: None)
    for _ in range(3):
        trial.run()
        with trial.start.own_run():
            for _ in range(2):  # the second is a retry
                legs = [{"Put": {"TableName": trial.table, "Item": item("once"), **UNLESS_IT_EXISTS}}]
                client.transact_write_items(TransactItems=legs, ClientRequestToken="the same token")
        assert len(trial.items()) == 1


def test_the_acts_of_each_run_draw_other_ids(client: Any) -> None:
    trial = Trial(client)
    trial.acts = [trial.put_new]
    drawn = set()
    for _ in range(3):
        trial.run()
        drawn.add(trial.put_new())
    assert len(drawn) == 3


def test_a_scenario_with_two_tables_is_not_repeated(client: Any) -> None:
    trial = Trial(client)
    trial.acts = [trial.put("first")]
    start = Start(client, lambda: (trial._prepare(), trial._prepare()))
    start()
    start()
    assert start.counted == {Kind.NEW: 2}
    assert trial.tables == 4
