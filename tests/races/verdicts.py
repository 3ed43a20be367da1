"""Checks of the responses that a client may get when DynamoDB fails during its request."""

from tests.races.faults import Case, Crashed, Kind
from tests.support.api import Reply

# The product hides these faults: it retries, and the client doesn't notice.
_HIDDEN = {Kind.NONE, Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.LOST_THEN_CONFLICT}


def check_first(case: Case, good: int) -> Reply | None:
    """Checks and returns the first attempt's reply, or None if the process died.

    A contended or lost write is retried, and its response is the usual one. A throttle may also lead to a 429, and
    exhausted SDK retries of a read or a single write to a 503. A 409 is never wrong.
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
