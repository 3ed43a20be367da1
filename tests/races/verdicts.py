"""What a client may be told when DynamoDB misbehaved under its request."""

from tests.support.api import Reply
from tests.support.faults import Case, Crashed, Kind

# The product hides these: it tries again, and the client never learns of it.
_HIDDEN = {Kind.NONE, Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.LOST_THEN_CONFLICT}


def check_first(case: Case, good: int) -> Reply | None:
    """The first attempt's reply, or None where the process died.

    A contended or lost write is tried again and answers as if nothing had been; a throttle may also become a 429; and
    where the SDK's tries at a read or at a lone write are used up, a 503. Never a 409 that is not true.
    """
    if case.fault.kind is Kind.CRASH:
        assert isinstance(case.first.error, Crashed)
        return None
    reply: Reply = case.first.get()
    allowed = {good}
    if case.fault.kind is Kind.THROTTLED:
        allowed.add(429)
    elif case.fault.kind not in _HIDDEN and case.calls[case.position].operation != "TransactWriteItems":
        allowed.add(503)
    assert reply.status in allowed, reply.text
    return reply
