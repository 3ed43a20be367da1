"""Runs the creation of a request with an Idempotency-Key at most once, and replays its response.

An attempt takes the key, creates, then stores the response, or releases the key if the creation failed. The records are
in `table.idempotency`; this module knows what their key and their answer contain.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from awsclient.errors import AwsError
from controlplane.access.access import Access
from controlplane.access.idempotency_errors import AnswerLost, KeyOfAnotherRequest, RequestInFlight
from controlplane.platform.core import dry_run, keyring, tokens
from controlplane.platform.core.keyring import SigningKey
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.http.envelope import Answer, Wire
from controlplane.platform.table import idempotency as store
from controlplane.platform.table import keys
from controlplane.platform.table.idempotency import RecordItem
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Leg, LegFailed, StoreError

# The name of the idempotency leg in the creation's transaction.
LEG = "idempotency"
_TABLE_FAILURES = (StoreError, AwsError)


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
        if dry_run.is_active():
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


def run_once[T: Wire](
    record: Record,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg]], Answer[T]],
    secret: Secret | None = None,
) -> Answer[T]:
    """Returns the response of `create`, or the stored one. Raises the errors of `idempotency.idempotent`."""
    digest = _digest(payload)
    try:
        store.begin_attempt(record.key, record.attempt, digest, record.also_known_as)
    except store.KeyInUse as conflict:
        return _replay(record, conflict.record, digest, secret)
    try:
        # A dry run has no record for the leg to check.
        answer = create({} if dry_run.is_active() else {LEG: store.effect_leg(record.key, record.attempt)})
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
    if dry_run.is_active():
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
    if dry_run.is_active():
        return
    try:
        store.abandon_attempt(record.key, record.attempt)
    except _TABLE_FAILURES as error:
        # The attempt took effect although it failed, or the key is released when the lease expires.
        logger.warning("key not freed", extra=describe(error))
