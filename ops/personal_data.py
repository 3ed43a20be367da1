"""A person's data in the table: found by a full scan, exported, and erased.

Credentials are looked up by user and revoked first (`accounts`). The rest (feedback, invitations, stored idempotent
responses, the reasons given for a decision) is found by searching every item for the person's id and address, so that
no kind of item can be missed. That takes one scan of the table; requests never do it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane.core import clock
from controlplane.store import feedback, keys
from controlplane.store.idempotency import IN_PROGRESS
from controlplane.store.invitation_items import InvitationItem
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, Delete, Update, table
from ops.table_scan import scan

type Item = Mapping[str, Any]

# The name of each kind of item in an export, by key prefix.
_KINDS = {
    "USER": "account",
    "EMAIL": "address",
    "IDENTITY": "identity",
    "TH": "token",
    "FAMILY": "device",
    "DC": "device request",
    "UC": "device request",
    "TRIES": "counter",
    "FEEDBACK": "feedback",
    "FEEDBACKBY": "feedback",
    "FEEDBACKQUOTA": "counter",
    "INVITEE": "invitation",
    "INVITATION": "invitation",
    "MEMBER": "membership",
    "IDEMPOTENCY": "kept answer",
}
# The person's own items, exported whole. From all others, only attributes that name the person are exported.
_PERSONAL_KINDS = _KINDS.keys() - {"UC", "IDEMPOTENCY"}
# Exported in addition to the attributes that name the person.
_CONTEXT_FIELDS = {"statusReason", "statusAt", "decidedAt", "createdAt", "requestedAt", "at"}
# Secrets are stored only as digests. Neither digests nor values derived from them belong in a file.
_SECRET_FIELDS = {"digest", "challenge", "current", "previous", "access", "claim", "payload", "attempt"}
_DIGEST = re.compile(r"[0-9a-f]{32,}")
# Characters of an unquoted address, except `#`, which also separates the parts of keys.
_ADDRESS_LETTERS = r"A-Za-z0-9!$%&'*+/=?^_`{|}~-"


class Subject(NamedTuple):
    """A person: their id, and the address of their account if it still exists."""

    user_id: str
    email: str | None

    def is_named_by(self, text: str) -> bool:
        # Without its prefix, because membership ids end with the rest.
        return self.user_id.partition("_")[2] in text or self._has_address(text)

    def _has_address(self, text: str) -> bool:
        if self.email is None:
            return False
        # Also with JSON escapes, because stored responses are JSON.
        wanted = "|".join(map(re.escape, {self.email, json.dumps(self.email)[1:-1]}))
        return bool(re.search(rf"(?<![.{_ADDRESS_LETTERS}])({wanted})(?!\.?[{_ADDRESS_LETTERS}])", text.lower()))

    def is_in(self, value: Any) -> bool:
        """Returns True if a stored value names the person."""
        if isinstance(value, str):
            return self.is_named_by(value)
        if isinstance(value, Mapping):
            return any(self.is_in(part) for part in value.values())
        return isinstance(value, list | tuple) and any(self.is_in(part) for part in value)


def find_items(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yields every item that names the person. Consistent: finds everything written before the scan began."""
    return (item for item in scan() if subject.is_in(item))


def _name(item: Item) -> str:
    kind = _kind(item)
    return _KINDS.get(kind, kind.lower())


def _kind(item: Item) -> str:
    start = str(item["pk"]).partition("#")[0]
    return str(item["sk"]).partition("#")[0] if start == "ORG" else start


# Export


def export(subject: Subject) -> dict[str, Any]:
    """Returns the person's data as one document, without secrets."""
    return {
        "userId": subject.user_id,
        "exportedAt": clock.timestamp(),
        "items": [_document(subject, item) for item in find_items(subject)],
    }


def _document(subject: Subject, item: Item) -> dict[str, Any]:
    kind = _kind(item)
    if kind == "FEEDBACK":
        with suppress(feedback.UnknownReport):
            fields = feedback.get_report(item["reference"]).fields
            item = {**{name: item[name] for name in item if name != "detached"}, **fields}
    own = kind in _PERSONAL_KINDS or item["pk"] == keys.user_pk(subject.user_id)
    shown = {
        name: value
        for name, value in item.items()
        if name not in _SECRET_FIELDS and (own or name in {"pk", "sk", *_CONTEXT_FIELDS} or subject.is_in(value))
    }
    return {"kind": _name(item), "attributes": _without_digests(shown)}


def _without_digests(value: Any) -> Any:
    if isinstance(value, str):
        return _DIGEST.sub("…", value)
    if isinstance(value, Mapping):
        return {name: _without_digests(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_digests(part) for part in value]
    return value


# Erasure

# Items of these kinds are deleted whole. Each belongs to the person or ends with the account.
_DELETED = {"IDENTITY", "TH", "FAMILY", "DC", "TRIES", "FEEDBACKBY", "FEEDBACKQUOTA", "INVITEE"}


def erase(subject: Subject) -> dict[str, int]:
    """Erases what names the person, except the bare id in records of organizations. Returns item counts by kind.

    The caller must delete the account itself and its address. Can be repeated.
    """
    erased: Counter[str] = Counter()
    for item in find_items(subject):
        erasure = _find_erasure(subject, item)
        if erasure is not None:
            erasure()
            erased[_name(item)] += 1
    return dict(erased)


def is_left(subject: Subject) -> bool:
    """Returns True if `erase` would change anything."""
    return any(_find_erasure(subject, item) for item in find_items(subject))


def _find_erasure(subject: Subject, item: dict[str, Any]) -> Callable[[], object] | None:
    """Returns a function that erases the person from this item, or None if it only has the id in another's record."""
    kind, key = _kind(item), Key(item["pk"], item["sk"])
    own = item.get("userId", item.get("callerId")) == subject.user_id
    if kind == "FEEDBACK" and own:
        return lambda: feedback.delete_report(item["reference"])
    if kind in _DELETED and (own or subject.is_named_by(key.pk)):
        return lambda: table.delete(Delete(key))
    if kind == "MEMBER" and own and table.get(keys.membership(subject.user_id, keys.organization_of(key.pk))) is None:
        # Without the membership item it grants no access: its organization is being deleted.
        return lambda: table.delete(Delete(key))
    if kind == "INVITATION":
        return lambda: _delete_invitation(InvitationItem.from_item(item))
    if kind == "IDEMPOTENCY" and "data" in item:
        return lambda: _change(key, _ERASE_RESPONSE, _ERASED_RESPONSE)
    if kind == "INBOX" and item.get("statusBy") == subject.user_id and item.get("statusReason") is not None:
        unreasoned = {"none": None, "user": subject.user_id}
        return lambda: _change(key, "SET #statusReason = :none", unreasoned, "#statusBy = :user")
    return None


# A retry of the request is told that it took effect and that its response is lost.
_ERASE_RESPONSE = "SET #status = :status, #leaseUntil = :past, #effective = :true REMOVE #data"
_ERASED_RESPONSE = {"status": IN_PROGRESS, "past": 0, "true": True}


def _delete_invitation(invitation: InvitationItem) -> None:
    with suppress(ConditionFailed):  # the address has another invitation by now
        table.delete(Delete(invitation.lock_key, "#invitationId = :id", {"id": invitation.invitation_id}))
    table.delete(Delete(invitation.key))


def _change(key: Key, change: str, values: dict[str, Any], when: str = "attribute_exists(pk)") -> None:
    with suppress(ConditionFailed):
        table.update(Update(key, change, when, values))
