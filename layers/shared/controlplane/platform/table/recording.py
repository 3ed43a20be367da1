"""The entry of a write in the audit log, or the reason why it has none.

Every write of `table.table` takes one of the two, so no change of an organization's data can be written without a
decision. An entry is a leg of the transaction of the write that it describes: neither exists without the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from controlplane.platform.core import acting, clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import LogEntryId
from controlplane.platform.core.retention import expiry
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.legs import Put

# An entry shows the change, and isn't a copy of the item: longer values are cut, so that it stays within a few KB.
_LONGEST_TEXT = 200
_LONGEST_LIST = 20
CUT = "…"


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
            **expiry(settings.audit_log_retention_days, now),
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
