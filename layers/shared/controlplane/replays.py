"""Powertools' idempotency utility over the single table: the machinery of `idempotency`, imported only when needed.

Powertools runs the course of an attempt (take the key, create, keep the answer or free the key); what it reads and
writes goes through `store.idempotency`, so that time, retries and lost answers are treated as everywhere else.
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
from botocore.exceptions import BotoCoreError, ClientError

from controlplane import keyring, tokens
from controlplane.access import Access
from controlplane.envelope import Answer, Wire
from controlplane.idempotency import LEG, AnswerLost, KeyOfAnotherRequest, RequestInFlight
from controlplane.keyring import SigningKey
from controlplane.observability import describe, logger
from controlplane.store import idempotency as store
from controlplane.store import keys
from controlplane.store.keys import Key
from controlplane.store.table import Leg, StoreError

_TABLE_FAILURES = (StoreError, ClientError, BotoCoreError)


class Secret(NamedTuple):
    """The field of an answer that shows a secret, which is not kept, and the secret's prefix."""

    field: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Record:
    """Where the answer of one Idempotency-Key is kept, and what its secret is derived from.

    key: where this request writes, named by the current signing key.
    seeds: for each signing key of the ring, where an answer may be kept already, and the seed of that answer's secret.
    attempt: tells this request from its repetitions.
    """

    key: Key
    seeds: Mapping[Key, bytes] = field(repr=False)
    attempt: str = field(default_factory=lambda: secrets.token_hex(16))

    @classmethod
    def of(cls, access: Access[Any], operation: str, idempotency_key: str) -> "Record":
        """The record of that key for this caller, organization and operation. Nothing is looked up."""
        organization = access.organization.organization_id if access.organization else ""
        bound = f"{access.caller_id}\0{organization}\0{operation}\0{idempotency_key}".encode()
        named = [_named(key, bound) for key in keyring.ring()]
        return cls(named[0][0], dict(named))

    @property
    def also_known_as(self) -> Key | None:
        """Where a version of this function that signs with the other key writes, while the ring has two."""
        return next((key for key in self.seeds if key != self.key), None)

    def secret(self, prefix: str, key: Key | None = None, attempt: str | None = None) -> str:
        """The secret that an attempt mints under the key of its record (by default, this attempt under this key).

        Each attempt mints another one, so that none is minted twice.
        """
        seed = self.seeds[key or self.key]
        return tokens.mint_from(prefix, hmac.digest(seed, (attempt or self.attempt).encode(), "sha256"))


def _named(key: SigningKey, bound: bytes) -> tuple[Key, bytes]:
    """Where an answer is kept, and the seed of its secret.

    HKDF-SHA256 (RFC 5869) with the signing key as salt gives two unrelated values under two labels. Neither can be
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
    """What `create` answers, or the kept answer. Raises what `idempotency.idempotent` says."""
    if isinstance(payload, Wire):
        payload = payload.model_dump(mode="json", by_alias=True)

    # Powertools' own time of an attempt comes from Lambda's context. Ours stands in the store: see LEASE_SECONDS.
    config = IdempotencyConfig(
        event_key_jmespath="record",
        payload_validation_jmespath="payload",
        hash_function="sha256",
        lambda_context=_Lease(),  # type: ignore[arg-type]
    )

    records = _Records(record)

    @idempotent_function(  # type: ignore[untyped-decorator]
        data_keyword_argument="request",
        persistence_store=records,
        output_serializer=_Answers(record, records, secret),
        config=config,
    )
    def run(*, request: dict[str, Any]) -> Answer[T]:  # noqa: ARG001 (read by the decorator)
        return create({LEG: store.effect_leg(record.key, record.attempt)})

    try:
        answer: Answer[T] = run(request={"record": record.key.pk, "payload": payload})
    except IdempotencyValidationError:
        raise KeyOfAnotherRequest.at(
            ["Idempotency-Key"], "This key was used with another request. Use a new one.", "idempotency_key_reused"
        ) from None
    except IdempotencyAlreadyInProgressError:
        raise RequestInFlight from None
    except IdempotencyPersistenceLayerError as error:
        # Powertools wraps whatever a persistence layer raises.
        raise (error.__cause__ or error) from None
    return answer


class _Lease:
    """Stands where powertools asks Lambda how long it may still run."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return store.LEASE_SECONDS * 1000


class _Records(BasePersistenceLayer):
    """One record of our table, as powertools' persistence layer.

    The records handed to powertools carry no times: the store has compared them already, with the clock of the rest.
    """

    def __init__(self, record: Record) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._record = record
        # Where the answer that is given again is kept.
        self.answered_from = record.key

    def _put_record(self, data_record: DataRecord) -> None:
        record = self._record
        try:
            store.begin_attempt(record.key, record.attempt, data_record.payload_hash, record.also_known_as)
        except store.RecordStands as standing:
            item = standing.item
            self.answered_from = Key(item["pk"], item["sk"])
            kept = DataRecord(
                data_record.idempotency_key,
                item["status"],
                response_data=item.get("data", ""),
                payload_hash=item["payload"],
            )
            self._validate_payload(data_record, kept)
            if standing.answer_lost:
                raise AnswerLost from None
            raise IdempotencyItemAlreadyExistsError(old_data_record=kept) from None

    def _update_record(self, data_record: DataRecord) -> None:
        try:
            store.complete_attempt(self._record.key, self._record.attempt, data_record.response_data)
        except _TABLE_FAILURES as error:
            # It is created, and this client gets its answer. A repetition is told that the answer is lost.
            logger.warning("answer not kept", extra=describe(error))

    def _delete_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 (there is one record)
        try:
            store.abandon_attempt(self._record.key, self._record.attempt)
        except _TABLE_FAILURES as error:
            # It took effect although the attempt failed, or the key gets free when the lease ends. What the attempt
            # failed of is the answer either way.
            logger.warning("key not freed", extra=describe(error))

    def _get_record(self, idempotency_key: str) -> DataRecord:
        raise NotImplementedError("a refused begin_attempt hands back the record")


class _Answers(BaseIdempotencySerializer):
    """Answers as they are kept: status, headers and the content's text, with null in the place of a secret."""

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

    def from_dict(self, kept: dict[str, Any]) -> Answer[Any]:
        content = json.loads(kept["content"])
        if self._secret is not None:
            content[self._secret.field] = self._record.secret(
                self._secret.prefix, self._records.answered_from, kept["attempt"]
            )
        return Answer(content, kept["status"], {**kept["headers"], "Idempotency-Replayed": "true"})
