"""Which calls are worth an order of their own in a race, and which order it came to."""

from tests.support.calls import Call
from tests.support.schedules import Race


def beyond_the_token(call: Call) -> bool:
    """All but the counts of the caller: of its token, which no other act of these races uses, and of the person."""
    key = call.parameters.get("Key")
    return not (key and key["pk"]["S"].startswith(("TH#", "RATE#")))


def beyond_the_own(call: Call) -> bool:
    """All but what no other act of these races touches: the caller's token and membership, a message in the outbox."""
    key = call.parameters.get("Key")
    return not (key and key["pk"]["S"].startswith(("TH#", "RATE#", "USER#", "OUTBOX#")))


def only_writes(call: Call) -> bool:
    """The writes beyond the token. Reads go along with what stands before them: for acts that decide by the write."""
    return beyond_the_token(call) and call.operation not in {"GetItem", "BatchGetItem", "Query"}


def beyond_queries(call: Call) -> bool:
    """All but queries, for a sweep: of its many partitions one has an entry, and it decides by what it reads later."""
    return call.operation != "Query"


def came_first(race: Race, index: int) -> bool:
    """Whether that one of two acts made its last transaction before the other's last, or the other made none."""
    committed = [number for number, call in race.steps if call.operation == "TransactWriteItems"]
    return (bool(committed) and committed[-1] != index) or set(committed) == {index}
