"""A person's data in the table: found by a full scan, exported, and erased.

Credentials are looked up by user and revoked first (`accounts`). The rest (feedback, invitations, stored idempotent
responses, the reasons given for a decision) is found by searching every item for the person's id and address, so that
no kind of item can be missed. That takes one scan of the table; requests never do it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from controlplane.erasure.personal_data import Subject, document, kind_of, name_of
from controlplane.feedback import store as feedback
from controlplane.organizations.items import InvitationItem
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.table import keys
from controlplane.platform.table.idempotency import IN_PROGRESS
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.table import ConditionFailed, Delete, LegFailed, Unrecorded, Update, table
from ops.table_check import scan


def find_items(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yields every item that names the person. Consistent: finds everything written before the scan began."""
    return (item for item in scan() if subject.is_in(item))


# Export


def export(subject: Subject) -> dict[str, Any]:
    """Returns the person's data as one document, without secrets."""
    return {
        "userId": subject.user_id,
        "exportedAt": clock.timestamp(),
        "items": [document(subject, item) for item in find_items(subject)],
    }


# Erasure

# Items of these kinds are deleted whole. Each belongs to the person or ends with the account.
_DELETED = {"IDENTITY", "TH", "FAMILY", "DC", "TRIES", "FEEDBACKBY", "FEEDBACKQUOTA", "INVITEE"}
_DELETED |= {"COMMENTER", "COMMENTED"}


def erase(subject: Subject) -> dict[str, int]:
    """Erases data that names the person, except the bare id in records of organizations. Returns item counts by kind.

    The caller must delete the account itself and its address. Can be repeated.
    """
    erased: Counter[str] = Counter()
    for item in find_items(subject):
        erasure = _find_erasure(subject, item)
        if erasure is not None:
            erasure()
            erased[name_of(item)] += 1
    return dict(erased)


def is_left(subject: Subject) -> bool:
    """Returns True if `erase` would change anything."""
    return any(_find_erasure(subject, item) for item in find_items(subject))


def _find_erasure(subject: Subject, item: dict[str, Any]) -> Callable[[], object] | None:
    """Returns a function that erases the person from this item, or None if it only has the id in another's record."""
    kind, key = kind_of(item), Key(item["pk"], item["sk"])
    own = item.get("userId", item.get("callerId")) == subject.user_id
    if kind == "FEEDBACK" and own:
        return lambda: feedback.delete_report(item["reference"])
    if kind in _DELETED and (own or subject.is_named_by(key.pk)):
        return lambda: table.delete(Delete(key), Unrecorded.ERASURE)
    if kind == "MEMBER" and own and table.get(keys.membership(subject.user_id, keys.organization_of(key.pk))) is None:
        # Without the membership item it grants no access: its organization is being deleted.
        return lambda: table.delete(Delete(key), Unrecorded.ERASURE)
    if kind in {"MAILS", "MAILTO"}:  # an invitation's email names only its address
        return lambda: table.delete(Delete(key), Unrecorded.ERASURE)
    if kind == "INVITATION":
        return lambda: _delete_invitation(InvitationItem.from_item(item))
    if kind == "IDEMPOTENCY" and "data" in item:
        return lambda: _change(key, _ERASE_RESPONSE, _ERASED_RESPONSE)
    if kind == "INBOX":
        return _find_reasons(subject, item, key)
    return None


def _find_reasons(subject: Subject, item: Mapping[str, Any], key: Key) -> Callable[[], object] | None:
    """Returns a function that erases the person's comments on an inbox item and reasons for decisions, if any."""
    history = item.get("history") or []
    kept = [_without_reason(entry) if entry.get("by") == subject.user_id else entry for entry in history]
    reasons: dict[str, Any] = {"history": kept} if kept != history else {}
    if item.get("statusBy") == subject.user_id and item.get("statusReason") is not None:
        reasons["statusReason"] = None
    read, same = {"read": item["version"]}, ""
    comments = item.get("comments") or []
    if any(it["by"] == subject.user_id for it in comments):
        reasons["comments"] = [it for it in comments if it["by"] != subject.user_id]
        # A comment doesn't change the version.
        read, same = {**read, "commented": comments}, " AND #comments = :commented"
    if not reasons:
        return None
    return lambda: _change(key, set_expression(reasons), {**reasons, **read}, f"#version = :read{same}")


def _without_reason(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "reason"}


# A retry of the request is told that it took effect and that its response is lost.
_ERASE_RESPONSE = "SET #status = :status, #leaseUntil = :past, #effective = :true REMOVE #data"
_ERASED_RESPONSE = {"status": IN_PROGRESS, "past": 0, "true": True}


def _delete_invitation(invitation: InvitationItem) -> None:
    with suppress(ConditionFailed):  # the address has another invitation by now
        table.delete(
            Delete(invitation.lock_key, "#invitationId = :id", {"id": invitation.invitation_id}), Unrecorded.ERASURE
        )
    with suppress(LegFailed):  # expired by now
        listed = Delete(invitation.key, "attribute_exists(pk)")
        table.transact({"invitation": listed}, invitation.recorded(Action.INVITATION_CANCEL))


def _change(key: Key, change: str, values: dict[str, Any], when: str = "attribute_exists(pk)") -> None:
    with suppress(ConditionFailed):
        table.update(Update(key, change, when, values), Unrecorded.ERASURE)
