"""Which calls are worth an order of their own in a race."""

from tests.support.calls import Call


def beyond_the_token(call: Call) -> bool:
    """All but the count of the caller's own user token, an item that no other act of these races touches."""
    key = call.parameters.get("Key")
    return not (key and key["pk"]["S"].startswith("TH#"))


def only_writes(call: Call) -> bool:
    """The writes beyond the token. Reads go along with what stands before them: for acts that decide by the write."""
    return beyond_the_token(call) and call.operation not in {"GetItem", "BatchGetItem", "Query"}
