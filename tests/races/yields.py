"""Selects the calls at which a race changes turns or a fault happens."""

from tests.races.schedules import beyond_the_token
from tests.support.calls import Call


def beyond_the_own(call: Call) -> bool:
    """Excludes what no other act of these races uses: the caller's token and membership, and outbox messages."""
    key = call.parameters.get("Key")
    return not (key and key["pk"]["S"].startswith(("TH#", "RATE#", "REFUSALS#", "USER#", "OUTBOX#")))


def only_writes(call: Call) -> bool:
    """Selects writes, except those of the token. Reads run with the preceding call. For acts that decide by a write."""
    return beyond_the_token(call) and call.operation not in {"GetItem", "BatchGetItem", "Query"}


def only_transactions(call: Call) -> bool:
    """Selects transactions, for acts with so many calls that each other choice leads to hundreds of orders."""
    return call.operation == "TransactWriteItems"


def beyond_queries(call: Call) -> bool:
    """Excludes queries, for a sweep: only one of its partitions has an entry, and it decides by later reads."""
    return call.operation != "Query"


def writes_a_membership(call: Call) -> bool:
    """Selects the transactions that join, leave, or change a role, not the one that clears the default."""
    return call.operation == "TransactWriteItems" and "MEMBER#" in str(call.parameters)
