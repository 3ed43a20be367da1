"""Idempotency-Key: for 24 hours, a retried creation returns the original response and creates nothing.

A key is bound to the caller, the organization, and the operation. An attempt takes the key, creates, then stores the
response, or releases the key if the creation failed. The records are in `table.idempotency`; this module knows what
their key and their answer contain.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from fastapi import Header

from awsclient.errors import AwsError
from controlplane.access.access import Access
from controlplane.platform.core import acting, keyring, tokens
from controlplane.platform.core.errors import Conflict, InvalidPayload
from controlplane.platform.core.keyring import SigningKey
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.http.envelope import Answer, Wire
from controlplane.platform.http.validation import described
from controlplane.platform.table import idempotency as store
from controlplane.platform.table import keys
from controlplane.platform.table.idempotency import RecordItem
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Leg, LegFailed, StoreError

# The name of the idempotency leg in the creation's transaction.
LEG = "idempotency"
_TABLE_FAILURES = (StoreError, AwsError)


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
    record = Record.of(access, operation, idempotency_key)
    return _run_once(record, payload, lambda legs: _as_answer(create(legs)))


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
    record = Record.of(access, operation, idempotency_key)
    secret = Secret(field, prefix)
    return _run_once(record, payload, lambda legs: create(legs, record.secret(prefix)), secret)


def _as_answer[T: Wire](content: T | Answer[T]) -> Answer[T]:
    return content if isinstance(content, Answer) else Answer(content)


class Secret(NamedTuple):
    """The response field that contains a secret, which isn't stored, and the secret's prefix."""

    field: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Record:
    """The location of the stored response for one Idempotency-Key, and the seeds that its secret is derived from.

    key: the item that this request writes, derived from the current signing key.
    seeds: for each signing key of the ring, the item that may already contain a response, and its secret's seed.
    attempt: distinguishes this request from its retries.
    """

    key: Key
    seeds: Mapping[Key, bytes] = field(repr=False)
    attempt: str = field(default_factory=lambda: secrets.token_hex(16))

    @classmethod
    def of(cls, access: Access[Any], operation: str, idempotency_key: str) -> "Record":
        """Returns the record of that key for this caller, organization, and operation, without reading the table."""
        organization = access.organization.organization_id if access.organization else ""
        bound = f"{access.caller_id}\0{organization}\0{operation}\0{idempotency_key}".encode()
        derived = [_derive(key, bound) for key in keyring.ring()]
        return cls(derived[0][0], dict(derived))

    @property
    def also_known_as(self) -> Key | None:
        """The item that a version of this function writes if it signs with the other key. None if the ring has one."""
        return next((key for key in self.seeds if key != self.key), None)

    def secret(self, prefix: str, key: Key | None = None, attempt: str | None = None) -> str:
        """Returns the secret that an attempt mints under its record's key (by default, this attempt and this key).

        Each attempt mints a different secret, so no secret is minted twice. A dry run gets a placeholder.
        """
        if acting.is_dry_run():
            return tokens.placeholder(prefix)
        seed = self.seeds[key or self.key]
        return tokens.mint_from(prefix, hmac.digest(seed, (attempt or self.attempt).encode(), "sha256"))


def _derive(key: SigningKey, bound: bytes) -> tuple[Key, bytes]:
    """Returns the key of the stored response and the seed of its secret.

    HKDF-SHA256 (RFC 5869) with the signing key as salt derives two unrelated values from two labels. Neither can be
    guessed with access to the table alone.
    """
    extracted = key.mac(bound)
    name, seed = (hmac.digest(extracted, label, "sha256") for label in (b"record\x01", b"secret\x01"))
    return keys.idempotent_answer(name.hex()), seed


def _run_once[T: Wire](
    record: Record,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg]], Answer[T]],
    secret: Secret | None = None,
) -> Answer[T]:
    """Returns the response of `create`, or the stored one. Raises the errors of `idempotent`."""
    digest = _digest(payload)
    try:
        store.begin_attempt(record.key, record.attempt, digest, record.also_known_as)
    except store.KeyInUse as conflict:
        return _replay(record, conflict.record, digest, secret)
    try:
        # A dry run has no record for the leg to check.
        answer = create({} if acting.is_dry_run() else {LEG: store.effect_leg(record.key, record.attempt)})
    except Exception as failure:
        _abandon(record)
        if isinstance(failure, LegFailed) and failure.leg == LEG:
            # A retry took the key because this attempt outlived its lease.
            raise RequestInFlight from None
        raise
    _complete(record, answer, secret)
    return answer


def _digest(payload: Wire | Mapping[str, Any] | None) -> str:
    if isinstance(payload, Wire):
        payload = payload.model_dump(mode="json", by_alias=True)
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


def _replay(record: Record, holder: RecordItem, digest: str, secret: Secret | None) -> Answer[Any]:
    """Returns the stored response of the attempt that holds the key."""
    if holder.payload != digest:
        raise KeyOfAnotherRequest.at(
            ["Idempotency-Key"], "This key was used with another request. Use a new one.", "idempotency_key_reused"
        ) from None
    if holder.is_answer_lost:
        raise AnswerLost from None
    if holder.status != store.COMPLETED:
        raise RequestInFlight from None
    stored = json.loads(holder.answer)
    content = json.loads(stored["content"])
    if secret is not None:
        content[secret.field] = record.secret(secret.prefix, holder.key, stored["attempt"])
    return Answer(content, stored["status"], {**stored["headers"], "Idempotency-Replayed": "true"})


def _complete(record: Record, answer: Answer[Any], secret: Secret | None) -> None:
    """Stores the response for retries, with null in place of a secret."""
    if acting.is_dry_run():
        return
    content = answer.content.model_dump(mode="json", by_alias=True)
    if secret is not None:
        content[secret.field] = None
    stored = {
        "status": answer.status,
        "headers": answer.headers,
        "content": json.dumps(content),
        "attempt": record.attempt,
    }
    try:
        store.complete_attempt(record.key, record.attempt, json.dumps(stored))
    except _TABLE_FAILURES as error:
        # The creation succeeded, and this client gets its response. A retry gets AnswerLost.
        logger.warning("answer not kept", extra=describe(error))


def _abandon(record: Record) -> None:
    """Releases the key. The caller raises the original error."""
    if acting.is_dry_run():
        return
    try:
        store.abandon_attempt(record.key, record.attempt)
    except _TABLE_FAILURES as error:
        # The attempt took effect although it failed, or the key is released when the lease expires.
        logger.warning("key not freed", extra=describe(error))
