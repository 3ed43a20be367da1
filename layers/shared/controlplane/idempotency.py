"""Idempotency-Key: a repeated creation answers as the first one did, for 24 hours, and creates nothing.

A key is bound to the caller, the organization and the operation. What refuses a request frees its key again. The
machinery (powertools' idempotency utility over our table) stands in `replays`, which is imported by the first request
that sends the header, since every cold start would pay for it otherwise.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Header

from controlplane import tokens
from controlplane.access import Access
from controlplane.envelope import Answer, Wire
from controlplane.errors import Conflict, InvalidPayload
from controlplane.store.table import Leg, LegFailed

# The name of the leg among those of the creation's transaction.
LEG = "idempotency"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description=(
            "Makes the request safe to repeat: for 24 hours the same key with the same request answers as the first "
            "time, with the header `Idempotency-Replayed: true`, and creates nothing more. Use a new random value, "
            "such as a UUID, for each thing to create; the answer to it is only as well hidden as the value. With "
            "another request the same key is 400, and while the first request runs it is 409."
        ),
        examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11"],
    ),
]


class KeyOfAnotherRequest(InvalidPayload):
    """The Idempotency-Key was used with another payload."""


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


def idempotent[T: Wire](
    access: Access[Any],
    operation: str,
    idempotency_key: str | None,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg]], T | Answer[T]],
) -> Answer[T]:
    """What `create` answers, or what it answered before under the same key.

    operation: the route's operation_id.
    payload: what must be the same in a repetition (with an id from the path, where there is one).
    create: does it. It gets a leg to put first into the transaction of the creation, or no leg where no key was sent.
        With the leg at most one request of a key takes effect, even where answers are lost or a function dies; without
        it a crash between the creation and the keeping of its answer lets a repetition create again.

    Raises KeyOfAnotherRequest 400, RequestInFlight 409, AnswerLost 409, and whatever `create` raises.
    """
    if idempotency_key is None:
        return _as_answer(create({}))
    from controlplane import replays  # noqa: PLC0415 (40 ms that only requests with the header need)

    record = replays.Record.of(access, operation, idempotency_key)
    with _overtaken():
        return replays.run_once(record, payload, lambda legs: _as_answer(create(legs)))


def idempotent_secret[T: Wire](
    access: Access[Any],
    operation: str,
    idempotency_key: str | None,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg], str], Answer[T]],
    *,
    prefix: str,
    field: str,
) -> Answer[T]:
    """As `idempotent`, for a creation whose answer shows a new secret of that prefix in the field of that name.

    `create` gets the secret besides the legs. Under an Idempotency-Key the secret follows from that key, the signing
    secret and the attempt, so that it is shown again without being stored.
    """
    if idempotency_key is None:
        return create({}, tokens.mint(prefix))
    from controlplane import replays  # noqa: PLC0415 (40 ms that only requests with the header need)

    record = replays.Record.of(access, operation, idempotency_key)
    shown = replays.Secret(field, prefix)
    with _overtaken():
        return replays.run_once(record, payload, lambda legs: create(legs, record.secret(prefix)), shown)


@contextmanager
def _overtaken() -> Iterator[None]:
    """An attempt that took longer than its lease finds that a repetition of it has the key by then."""
    try:
        yield
    except LegFailed as refusal:
        if refusal.leg != LEG:
            raise
        raise RequestInFlight from None


def _as_answer[T: Wire](content: T | Answer[T]) -> Answer[T]:
    return content if isinstance(content, Answer) else Answer(content)
