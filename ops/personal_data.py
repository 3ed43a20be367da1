"""Everything the table holds about a person: found by reading all of it, exported, and erased.

What gives access is found by its person and ended first (`accounts`). The rest (feedback, invitations, kept answers,
the reasons people gave for a decision) is found by looking for the person's id and address in every item, so that no
kind of item can be forgotten. That costs one read of the table; no request ever does it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane import clock
from controlplane.emails import normalize_email
from controlplane.store import codec, feedback, keys
from controlplane.store.idempotency import IN_PROGRESS
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, Delete, Update, table

type Item = Mapping[str, Any]

# Kinds of items by the start of their keys: what an export calls them.
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
# The person's own items, exported whole. Of all others only what names the person is theirs.
_OWN = _KINDS.keys() - {"UC", "IDEMPOTENCY"}
# Exported beside what names the person.
_BESIDE = {"statusReason", "statusAt", "decidedAt", "createdAt", "requestedAt", "at"}
# Secrets are stored as digests alone. Neither these nor what is derived from them belongs into a file.
_SECRET_FIELDS = {"digest", "challenge", "current", "previous", "access", "claim", "payload", "attempt"}
_DIGEST = re.compile(r"[0-9a-f]{32,}")
# Letters, digits and the other characters of an unquoted address, but for `#`, which also separates parts of keys.
_ADDRESS_LETTERS = r"A-Za-z0-9!$%&'*+/=?^_`{|}~-"


class Subject(NamedTuple):
    """The person: their id, and the address of their account, if that is still there."""

    user_id: str
    email: str | None

    def is_named_by(self, text: str) -> bool:
        # The id without its prefix is also the end of the ids of memberships.
        return self.user_id.partition("_")[2] in text or self._has_address(text)

    def _has_address(self, text: str) -> bool:
        if self.email is None:
            return False
        # Also as JSON writes it, because kept answers are JSON.
        wanted = "|".join(map(re.escape, {self.email, json.dumps(self.email)[1:-1]}))
        return bool(re.search(rf"(?<![.{_ADDRESS_LETTERS}])({wanted})(?!\.?[{_ADDRESS_LETTERS}])", text.lower()))

    def is_in(self, value: Any) -> bool:
        """Whether a stored value names the person."""
        if isinstance(value, str):
            return self.is_named_by(value)
        if isinstance(value, Mapping):
            return any(self.is_in(part) for part in value.values())
        return isinstance(value, list | tuple) and any(self.is_in(part) for part in value)


def find_items(subject: Subject) -> Iterator[dict[str, Any]]:
    """Every item that names the person. Consistent: what was written before it began is found."""
    parameters: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True}
    while True:
        answer = table.client.scan(**parameters)
        for raw in answer["Items"]:
            item = codec.decode_item(raw)
            if subject.is_in(item):
                yield item
        if "LastEvaluatedKey" not in answer:
            return
        parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _name(item: Item) -> str:
    kind = _kind(item)
    return _KINDS.get(kind, kind.lower())


def _kind(item: Item) -> str:
    start = str(item["pk"]).partition("#")[0]
    return str(item["sk"]).partition("#")[0] if start == "ORG" else start


# Export


def export(subject: Subject) -> dict[str, Any]:
    """All of it as one document, without secrets."""
    return {
        "userId": subject.user_id,
        "exportedAt": clock.timestamp(),
        "items": [_document(subject, item) for item in find_items(subject)],
    }


def _document(subject: Subject, item: Item) -> dict[str, Any]:
    kind = _kind(item)
    if kind == "FEEDBACK":
        with suppress(feedback.UnknownReport):
            item = feedback.get_report(item["reference"])
    own = kind in _OWN or item["pk"] == keys.user_pk(subject.user_id)
    shown = {
        name: value
        for name, value in item.items()
        if name not in _SECRET_FIELDS and (own or name in {"pk", "sk", *_BESIDE} or subject.is_in(value))
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

# Items of these kinds go as a whole. Each is the person's own, or ends with the account.
_DELETED = {"IDENTITY", "TH", "FAMILY", "DC", "TRIES", "FEEDBACKBY", "FEEDBACKQUOTA", "INVITEE"}


def erase(subject: Subject) -> dict[str, int]:
    """Removes what names the person, but for the bare id in records of organizations: how many items, by kind.

    The account itself, with its address, is the caller's to remove. It can be repeated.
    """
    erased: Counter[str] = Counter()
    for item in find_items(subject):
        erasure = _find_erasure(subject, item)
        if erasure is not None:
            erasure()
            erased[_name(item)] += 1
    return dict(erased)


def is_left(subject: Subject) -> bool:
    """Whether `erase` has something to do."""
    return any(_find_erasure(subject, item) for item in find_items(subject))


def _find_erasure(subject: Subject, item: dict[str, Any]) -> Callable[[], object] | None:
    """What removes the person from this item; None if it only holds the id in a record that is not theirs."""
    kind, key = _kind(item), Key(item["pk"], item["sk"])
    own = item.get("userId", item.get("callerId")) == subject.user_id
    if kind == "FEEDBACK" and own:
        return lambda: feedback.delete_report(item["reference"])
    if kind in _DELETED and (own or subject.is_named_by(key.pk)):
        return lambda: table.delete(Delete(key))
    if kind == "MEMBER" and own and table.get(keys.membership(subject.user_id, key.pk.partition("#")[2])) is None:
        # Without the person's side it authorizes nobody: its organization is being deleted.
        return lambda: table.delete(Delete(key))
    if kind == "INVITATION":
        return lambda: _delete_invitation(item)
    if kind == "IDEMPOTENCY" and "data" in item:
        return lambda: _change(key, _LOSE_ANSWER, _LOST_ANSWER)
    if kind == "INBOX" and item.get("statusBy") == subject.user_id and item.get("statusReason") is not None:
        unreasoned = {"none": None, "user": subject.user_id}
        return lambda: _change(key, "SET #statusReason = :none", unreasoned, "#statusBy = :user")
    return None


# A repetition of the request is told that it took effect and that its answer is lost.
_LOSE_ANSWER = "SET #status = :status, #leaseUntil = :past, #effective = :true REMOVE #data"
_LOST_ANSWER = {"status": IN_PROGRESS, "past": 0, "true": True}


def _delete_invitation(item: Item) -> None:
    invitee = keys.invitee(normalize_email(item["email"]), item["pk"].partition("#")[2])
    with suppress(ConditionFailed):  # the address has another invitation by now
        table.delete(Delete(invitee, "#invitationId = :id", {"id": item["invitationId"]}))
    table.delete(Delete(Key(item["pk"], item["sk"])))


def _change(key: Key, change: str, values: dict[str, Any], when: str = "attribute_exists(pk)") -> None:
    with suppress(ConditionFailed):
        table.update(Update(key, change, when, values))
