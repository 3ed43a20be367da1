"""Writes and checks of single items, which a transaction combines as its legs, and their entries in the audit log.

The end of the module converts plain Python to DynamoDB JSON and back. Numbers are integers.

In expressions, `#name` is the attribute of that name, and `:name` is the value passed under that name.

Every write of `table.table` takes an entry of the audit log or the reason why it has none, so no change of an
organization's data can be written without a decision. An entry is a leg of the transaction of the write that it
describes: neither exists without the other.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

from controlplane.platform.core import acting, clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import LogEntryId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key

_NAME = re.compile(r"#(\w+)")
_VALUE = re.compile(r":(\w+)")
# An entry shows the change, and isn't a copy of the item: longer values are cut, so that it stays within a few KB.
_LONGEST_TEXT = 200
_LONGEST_LIST = 20
CUT = "…"


def set_expression(names: Iterable[str]) -> str:
    """Returns the update expression that sets each attribute to the value passed under its name."""
    return "SET " + ", ".join(f"#{name} = :{name}" for name in names)


@lru_cache(maxsize=512)
def _names(*expressions: str | None) -> dict[str, str]:
    return {f"#{name}": name for text in expressions if text for name in _NAME.findall(text)}


def _expression(parts: dict[str, str | None], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of an expression: `#name` is the attribute of that name, `:name` is the value passed."""
    out: dict[str, Any] = {key: text for key, text in parts.items() if text}
    names = _names(*parts.values())
    if names:
        out["ExpressionAttributeNames"] = names
    if values:
        out["ExpressionAttributeValues"] = {f":{name}": encode(value) for name, value in values.items()}
    return out


def _keyed(key: Key, values: Mapping[str, Any], **parts: str | None) -> dict[str, Any]:
    return {"Key": encode_item(key._asdict()), **_expression(parts, values)}


@dataclass(frozen=True, slots=True)
class Put:
    """Writes a whole item. `when` is a condition; `values` are its `:names`."""

    action: ClassVar[str] = "Put"
    item: Mapping[str, Any]
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return {"Item": encode_item(self.item), **_expression({"ConditionExpression": self.when}, self.values)}


@dataclass(frozen=True, slots=True)
class Update:
    """Changes an item with an update expression, under an optional condition."""

    action: ClassVar[str] = "Update"
    key: Key
    change: str
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return _keyed(self.key, self.values, UpdateExpression=self.change, ConditionExpression=self.when)


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes an item, under an optional condition."""

    action: ClassVar[str] = "Delete"
    key: Key
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return _keyed(self.key, self.values, ConditionExpression=self.when)


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on an item that the transaction does not change."""

    action: ClassVar[str] = "ConditionCheck"
    key: Key
    when: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return _keyed(self.key, self.values, ConditionExpression=self.when)


type Leg = Put | Update | Delete | Check


def checks_of(legs: Mapping[str, Leg]) -> dict[str, Leg]:
    """Returns the conditions of the legs without their writes. Messages have none: their keys are new."""
    checks: dict[str, Leg] = {}
    for name, leg in legs.items():
        key = Key(leg.item["pk"], leg.item["sk"]) if isinstance(leg, Put) else leg.key
        if leg.when is not None and key.pk not in keys.OUTBOX_PKS:
            checks[name] = Check(key, leg.when, {it: leg.values[it] for it in dict.fromkeys(_VALUE.findall(leg.when))})
    return checks


class Unrecorded(Enum):
    """Why a write has no entry in the audit log."""

    ACCOUNT = "a person's own account, identities, and preferences belong to no organization"
    CREDENTIAL = "a person's own sessions, tokens, and devices belong to no organization; an index lists them"
    COUNTER = "it counts requests or tries, or marks a limit as reached"
    LEASE = "it says who works on something, and until when"
    PROGRESS = "it says how far work has come, whose request and end have entries"
    PUBLICATION = "it is part of a scan's result, and the entry of the scan's end or unlocking has the counts"
    OBSERVATION = "something known was seen again, with no change of what people decided or read"
    MESSAGE = "it is a message to a worker, or a note of what is to be done or was reported"
    ANSWER = "it keeps a response for an Idempotency-Key"
    FEEDBACK = "it is a report to the operator"
    CLEANUP = "it removes what a deletion that has an entry left, or what nothing leads to anymore"
    ERASURE = "it removes what names a person whose account is deleted"
    REWRITE = "it stores in another form what was stored before"
    REFUSAL = "it says why a request was refused, which has changed nothing"
    DRY_RUN = "it isn't a write: a dry run checks the write's condition"
    SERVICE = "it is a setting of the service, which belongs to no organization"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The entry of a write in the audit log of an organization.

    resource: the id of what is changed. name: its name, if it has one that isn't personal data.
    before, after: the values before and after the write. Only those that differ are stored. They never contain secrets
    or personal data; a person is named by the id of their membership.
    """

    action: Action
    organization_id: str
    resource: str
    name: str | None = None
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)

    def leg(self) -> Put:
        """Returns the leg that writes the entry, for the current actor."""
        actor, request_id = acting.current()
        now, local = clock.now(), ids.new_local()
        at = clock.timestamp(now)
        changed = [name for name in {**self.before, **self.after} if self.before.get(name) != self.after.get(name)]
        item = {
            **keys.log_entry(self.organization_id, at, local)._asdict(),
            "entryId": LogEntryId.of(self.organization_id, local),
            "at": at,
            "action": self.action.value,
            "resource": self.resource,
            "name": _shown(self.name),
            "actorKind": actor.kind,
            "actorId": actor.actor_id,
            "source": actor.source,
            "requestId": request_id,
            "before": {name: _shown(self.before[name]) for name in changed if name in self.before},
            "after": {name: _shown(self.after[name]) for name in changed if name in self.after},
            **clock.expiry(settings.audit_log_retention_days, now),
        }
        return Put({name: value for name, value in item.items() if value is not None}, "attribute_not_exists(pk)")


# A write that changes several organizations has an entry in the log of each.
type Record = Recorded | tuple[Recorded, ...] | Unrecorded


def _shown(value: Any) -> Any:
    """Returns the value as an entry shows it, with long texts and lists cut."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + CUT
    if isinstance(value, Mapping):
        return {name: _shown(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_shown, value[:_LONGEST_LIST]), *([CUT] if len(value) > _LONGEST_LIST else [])]
    return value


def decode(value: dict[str, Any]) -> Any:
    """Decodes one attribute value. `{"M": {"a": {"N": "1"}}}` becomes `{"a": 1}`."""
    ((kind, inner),) = value.items()
    if kind in ("S", "BOOL"):
        return inner
    if kind == "M":
        return decode_item(inner)
    if kind == "L":
        return [
            entry["S"] if "S" in entry else decode_item(entry["M"]) if "M" in entry else decode(entry)
            for entry in inner
        ]
    if kind == "N":
        return int(inner)
    if kind == "NULL":
        return None
    raise TypeError(f"the table holds no attribute of type {kind}")


def decode_item(item: dict[str, Any]) -> dict[str, Any]:
    # Three of four values are strings. A function call for each would take a third of the time of a list.
    return {name: value["S"] if "S" in value else decode(value) for name, value in item.items()}


def encode(value: Any) -> dict[str, Any]:
    """Encodes a str, bool, int, None, dict, list, or tuple as an attribute value."""
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if value is None:
        return {"NULL": True}
    if isinstance(value, dict):
        return {"M": {name: encode(entry) for name, entry in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"L": [encode(entry) for entry in value]}
    raise TypeError(f"the table does not store {type(value).__name__}")


def present(**attributes: Any) -> dict[str, Any]:
    """Returns the attributes that have a value. The others aren't stored."""
    return {name: value for name, value in attributes.items() if value is not None}


def encode_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encode(value) for name, value in item.items()}
