"""Powertools' idempotency utility over the single table: implements `idempotency`, imported only when needed.

Powertools runs the steps of an attempt: take the key, create, then store the response or release the key. Its reads and
writes go through `store.idempotency`, so that clocks, retries, and lost responses are handled as everywhere else.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from aws_lambda_powertools.utilities.idempotency.serialization.base import BaseIdempotencySerializer

from awsclient.errors import AwsError
from controlplane.core import dry_run, keyring, tokens
from controlplane.core.keyring import SigningKey
from controlplane.core.observability import describe, logger
from controlplane.http.access import Access
from controlplane.http.envelope import Answer, Wire
from controlplane.http.idempotency_errors import AnswerLost, KeyOfAnotherRequest, RequestInFlight
from controlplane.store import idempotency as store
from controlplane.store import keys
from controlplane.store.keys import Key
from controlplane.store.table import Leg, LegFailed, StoreError

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
    try:
        return _run_with_powertools(record, payload, create, secret)
    except LegFailed as failure:
        if failure.leg != LEG:
            raise
        # A retry took the key because this attempt outlived its lease.
        raise RequestInFlight from None


def _run_with_powertools[T: Wire](
    record: Record,
    payload: Wire | Mapping[str, Any] | None,
    create: Callable[[Mapping[str, Leg]], Answer[T]],
    secret: Secret | None,
) -> Answer[T]:
    """Like `run_once`, but raises LegFailed if another attempt took the key."""
    if isinstance(payload, Wire):
        payload = payload.model_dump(mode="json", by_alias=True)
    records = _Records(record)

    @idempotent_function(  # type: ignore[untyped-decorator]
        data_keyword_argument="request",
        persistence_store=records,
        output_serializer=_Answers(record, records, secret),
        config=IdempotencyConfig(
            event_key_jmespath="record", payload_validation_jmespath="payload", hash_function="sha256"
        ),
    )
    def run(*, request: dict[str, Any]) -> Answer[T]:  # noqa: ARG001 (read by the decorator)
        # A dry run has no record for the leg to check.
        return create({} if dry_run.is_active() else {LEG: store.effect_leg(record.key, record.attempt)})

    try:
        answer: Answer[T] = run(request={"record": record.key.pk, "payload": payload})
    except IdempotencyValidationError:
        raise KeyOfAnotherRequest.at(
            ["Idempotency-Key"], "This key was used with another request. Use a new one.", "idempotency_key_reused"
        ) from None
    except IdempotencyAlreadyInProgressError:
        raise RequestInFlight from None
    except IdempotencyPersistenceLayerError as error:
        # Powertools wraps any exception that a persistence layer raises.
        raise (error.__cause__ or error) from None
    return answer


class _Records(BasePersistenceLayer):
    """Powertools' persistence layer over one record of our table.

    The records passed to Powertools have no timestamps: the store has already checked them against our clock.
    """

    def __init__(self, record: Record) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._record = record
        # The key of the item that contains the replayed response.
        self.replayed_from = record.key

    def save_inprogress(self, data: dict[str, Any], remaining_time_in_millis: int | None = None) -> None:  # noqa: ARG002
        # Powertools would limit an attempt to the remaining time of a Lambda context, which we don't have here.
        super().save_inprogress(data, store.LEASE_SECONDS * 1000)

    def _put_record(self, data_record: DataRecord) -> None:
        record = self._record
        try:
            store.begin_attempt(record.key, record.attempt, data_record.payload_hash, record.also_known_as)
        except store.KeyInUse as conflict:
            holder = conflict.record
            self.replayed_from = holder.key
            stored = DataRecord(
                data_record.idempotency_key,
                holder.status,
                response_data=holder.answer,
                payload_hash=holder.payload,
            )
            self._validate_payload(data_record, stored)
            if holder.is_answer_lost:
                raise AnswerLost from None
            raise IdempotencyItemAlreadyExistsError(old_data_record=stored) from None

    def _update_record(self, data_record: DataRecord) -> None:
        if dry_run.is_active():
            return
        try:
            store.complete_attempt(self._record.key, self._record.attempt, data_record.response_data)
        except _TABLE_FAILURES as error:
            # The creation succeeded, and this client gets its response. A retry gets AnswerLost.
            logger.warning("answer not kept", extra=describe(error))

    def _delete_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 (there is one record)
        if dry_run.is_active():
            return
        try:
            store.abandon_attempt(self._record.key, self._record.attempt)
        except _TABLE_FAILURES as error:
            # The attempt took effect although it failed, or the key is released when the lease expires. Either way, the
            # original error is returned.
            logger.warning("key not freed", extra=describe(error))

    def _get_record(self, idempotency_key: str) -> DataRecord:
        raise NotImplementedError("a failed begin_attempt already returned the record")


class _Answers(BaseIdempotencySerializer):
    """Serializes responses for storage: status, headers, and the content as text, with null in place of a secret."""

    def __init__(self, record: Record, records: _Records, secret: Secret | None) -> None:
        self._record = record
        self._records = records
        self._secret = secret

    def to_dict(self, answer: Answer[Any]) -> dict[str, Any]:
        content = answer.content.model_dump(mode="json", by_alias=True)
        if self._secret is not None:
            content[self._secret.field] = None
        return {
            "status": answer.status,
            "headers": answer.headers,
            "content": json.dumps(content),  # powertools would sort the fields
            "attempt": self._record.attempt,
        }

    def from_dict(self, stored: dict[str, Any]) -> Answer[Any]:
        content = json.loads(stored["content"])
        if self._secret is not None:
            content[self._secret.field] = self._record.secret(
                self._secret.prefix, self._records.replayed_from, stored["attempt"]
            )
        return Answer(content, stored["status"], {**stored["headers"], "Idempotency-Replayed": "true"})
