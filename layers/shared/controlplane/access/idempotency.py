"""Idempotency-Key: for 24 hours, a retried creation returns the original response and creates nothing.

A key is bound to the caller, the organization, and the operation. A request that fails releases its key. `replays` has
the implementation.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Header

from controlplane.access import replays
from controlplane.access.access import Access
from controlplane.platform.core import tokens
from controlplane.platform.http.envelope import Answer, Wire
from controlplane.platform.http.validation import described
from controlplane.platform.table.table import Leg

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        # A comma would begin a second value.
        pattern=described(r"^[\x20-\x2b\x2d-\x7e]+$", "Must have printable ASCII characters without commas"),
        description=(
            "Makes the request safe to repeat: for 24 hours, the same key with the same request gets the first "
            "response again, with the header `Idempotency-Replayed: true`, and creates nothing more. Use a new random "
            "value without commas, such as a UUID, for each thing to create; the response is only as secret as the "
            "value. The same key with another request is 400, and while the first request runs, it is 409."
        ),
        examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11"],
    ),
]


def idempotent[T: Wire](
    access: Access[Any],
    operation: str,
    idempotency_key: str | None,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg]], T | Answer[T]],
) -> Answer[T]:
    """Returns the response of `create`, or the stored response of an earlier request with the same key.

    operation: the route's operation_id.
    payload: what a retry must repeat unchanged, including the id from the path, if there is one.
    create: performs the creation. It gets a leg that must come first in its transaction, or no leg if the request has
        no key. With the leg, at most one request per key takes effect, even if responses are lost or a function
        crashes. Without it, a retry after a crash between creation and storing the response would create again.

    Raises KeyOfAnotherRequest 400, RequestInFlight 409, AnswerLost 409, and the errors of `create`.
    """
    if idempotency_key is None:
        return _as_answer(create({}))
    record = replays.Record.of(access, operation, idempotency_key)
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
    """Like `idempotent`, for a creation whose response contains a new secret.

    field: the response field that contains the secret.
    prefix: the secret's prefix.
    create: gets the legs and the secret.

    With an Idempotency-Key, the secret is derived from that key, the signing
    secret, and the attempt, so that a replay can show it without it being stored.
    """
    if idempotency_key is None:
        return create({}, tokens.mint(prefix))
    record = replays.Record.of(access, operation, idempotency_key)
    secret = replays.Secret(field, prefix)
    return replays.run_once(record, payload, lambda legs: create(legs, record.secret(prefix)), secret)


def _as_answer[T: Wire](content: T | Answer[T]) -> Answer[T]:
    return content if isinstance(content, Answer) else Answer(content)
