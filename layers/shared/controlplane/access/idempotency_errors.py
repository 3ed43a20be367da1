"""The errors of requests with an Idempotency-Key."""

from controlplane.platform.core.errors import Conflict, InvalidPayload


class KeyOfAnotherRequest(InvalidPayload):
    """The Idempotency-Key was already used with another payload."""


class RequestInFlight(Conflict):
    message = "The first request with this Idempotency-Key is still running. Send it again in a moment."

    def __init__(self) -> None:
        super().__init__(details={"reason": "in_flight"}, headers={"Retry-After": "1"})


class AnswerLost(Conflict):
    message = (
        "A request with this Idempotency-Key took effect, but its answer was lost. "
        "Look for what it created; to create another, use a new key."
    )

    def __init__(self) -> None:
        super().__init__(details={"reason": "answer_lost"})
