"""The content of an export of a person's data: the person's own items, and the parts of others that name the person."""

import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane.feedback import store as feedback
from controlplane.platform.core import clock
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.table import table

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
    "MAILS": "email",
    "MAILTO": "email address",
    "IDEMPOTENCY": "kept answer",
    "COMMENTER": "comment",
    "COMMENTED": "comment",
}
# The person's own items, exported whole. From all others, only attributes that name the person are exported.
_PERSONAL_KINDS = _KINDS.keys() - {"UC", "IDEMPOTENCY"}
# A finding can have 400 KB, of which an export contains little.
_FINDINGS_AT_ONCE = 20
# Exported in addition to the attributes that name the person.
_CONTEXT_FIELDS = {"statusAt", "decidedAt", "createdAt", "requestedAt", "at"}
# Secrets are stored only as digests. Neither digests nor values derived from them belong in a file.
_SECRET_FIELDS = {"digest", "challenge", "current", "previous", "access", "claim", "payload", "attempt"}
_DIGEST = re.compile(r"[0-9a-f]{32,}")
# Characters of an unquoted address, except `#`, which also separates the parts of keys.
_ADDRESS_LETTERS = frozenset(string.ascii_letters + string.digits + "!$%&'*+/=?^_`{|}~-")


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
        lowered = text.lower()
        # Also with JSON escapes, because stored responses are JSON.
        return any(_has_word(lowered, wanted) for wanted in {self.email, json.dumps(self.email)[1:-1]})

    def is_in(self, value: Any) -> bool:
        """Returns True if a stored value names the person."""
        if isinstance(value, str):
            return self.is_named_by(value)
        if isinstance(value, Mapping):
            return any(self.is_in(part) for part in value.values())
        return isinstance(value, list | tuple) and any(self.is_in(part) for part in value)


def _has_word(text: str, address: str) -> bool:
    """Returns True if the text contains the address, and not only as a part of a longer one."""
    start = text.find(address)
    while start >= 0:
        before, after = text[max(0, start - 1) : start], text[start + len(address) : start + len(address) + 2]
        continued = after[1:] if after.startswith(".") else after[:1]
        if before not in {".", *_ADDRESS_LETTERS} and continued not in _ADDRESS_LETTERS:
            return True
        start = text.find(address, start + 1)
    return False


def export_own(user_id: str) -> dict[str, Any]:
    """Returns the person's items that are found by key, as one document without secrets.

    It has their comments, also in organizations that they have left. Other records of organizations that name the
    person aren't part of it, because finding them takes a search of the table.
    """
    items, email = _list_own_items(user_id)
    subject = Subject(user_id, email)
    commented = [Key(item["pk"], item["sk"]) for item in items if kind_of(item) == "COMMENTER"]
    return {
        "userId": user_id,
        "exportedAt": clock.timestamp(),
        "items": [*(document(subject, item) for item in items), *_list_commented(subject, commented)],
    }


def _list_commented(subject: Subject, commented: list[Key]) -> Iterator[dict[str, Any]]:
    """Yields the parts that name the person of those findings that still have a comment of theirs."""
    for start in range(0, len(commented), _FINDINGS_AT_ONCE):
        wanted = [keys.commented_item(key) for key in commented[start : start + _FINDINGS_AT_ONCE]]
        for item in table.batch_get(wanted):
            if item is not None and any(it["by"] == subject.user_id for it in item.get("comments", ())):
                yield document(subject, item)


def _list_own_items(user_id: str) -> tuple[list[dict[str, Any]], str | None]:
    """Returns the person's items, and the address of the account, or None if it was deleted. Takes two round trips."""
    owned = [
        keys.user_pk(user_id),
        keys.credentials_pk(user_id),
        keys.blocks_pk(user_id),
        keys.mails_pk(user_id),
        keys.commented_pk(user_id),
        keys.feedback_by_pk(user_id),
    ]
    account, *others = read_each(_list_partition, owned)
    *_, commented, reported = others
    email = next((str(item["email"]) for item in account if item["sk"] == keys.PROFILE_SK), None)
    wanted = [
        keys.identity(digest)
        for item in account
        if item["sk"].startswith(keys.ISSUER_PREFIX)
        for digest in item["identities"]
    ]
    joined = [item["organizationId"] for item in account if item["sk"].startswith(keys.MEMBERSHIP_PREFIX)]
    wanted += [keys.member(it, user_id) for it in joined]
    reports = [located for item in reported if (located := feedback.find_keys(item["sk"]))]
    wanted += [key for located in reports for key in located]
    address = normalize_email(email) if email else None
    wanted += [keys.user_email(address)] if address else []
    addressed = [keys.invitee_pk(address), keys.mail_address_pk(address)] if address else []
    organizations = dict.fromkeys([*joined, *(item["organizationId"] for item in commented)])
    prefix = keys.commenter_prefix(user_id)
    listed = [*((pk, "") for pk in addressed), *((keys.organization_pk(it), prefix) for it in organizations)]
    found, more = read_both(lambda: _find(wanted), lambda: read_each(lambda it: _list_partition(*it), listed))
    _add_texts(found, reports)
    return [*account, *found.values(), *(item for items in (*others, *more) for item in items)], email


def _list_partition(pk: str, prefix: str = "") -> list[dict[str, Any]]:
    return list(table.query(pk, prefix=prefix, consistent=True).items)


def _find(wanted: list[Key]) -> dict[Key, dict[str, Any]]:
    return {key: item for key, item in zip(wanted, table.batch_get(wanted), strict=True) if item is not None}


def _add_texts(found: dict[Key, dict[str, Any]], reports: Iterable[tuple[Key, Key]]) -> None:
    """Moves the texts of each report into its item, as if they were short."""
    for texts_key, key in reports:
        texts = found.pop(texts_key, {})
        if found.get(key, {}).pop("detached", False):
            found[key] = {**texts, **found[key]}


def document(subject: Subject, item: Item) -> dict[str, Any]:
    """Returns the part of an item that an export contains, without secrets and digests. Reads a long report's texts."""
    kind = kind_of(item)
    if kind == "FEEDBACK" and "detached" in item:
        with suppress(feedback.UnknownReport):
            fields = feedback.get_report(item["reference"]).fields
            item = {**{name: item[name] for name in item if name != "detached"}, **fields}
    for texts in ("history", "comments"):  # omit those of other people
        if texts in item:
            item = {**item, texts: [entry for entry in item[texts] if entry.get("by") == subject.user_id]}
    context = {"pk", "sk", *_CONTEXT_FIELDS}
    if item.get("statusBy") == subject.user_id:  # omit the reason if another person wrote it
        context.add("statusReason")
    shown = {
        name: value
        for name, value in item.items()
        if name not in _SECRET_FIELDS and (kind in _PERSONAL_KINDS or name in context or subject.is_in(value))
    }
    return {"kind": name_of(item), "attributes": _without_digests(shown)}


def _without_digests(value: Any) -> Any:
    if isinstance(value, str):
        return _DIGEST.sub("…", value)
    if isinstance(value, Mapping):
        return {name: _without_digests(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_digests(part) for part in value]
    return value


def name_of(item: Item) -> str:
    """Returns the name of the item's kind in an export."""
    kind = kind_of(item)
    return _KINDS.get(kind, kind.lower())


def kind_of(item: Item) -> str:
    """Returns the prefix of the key that names the item's kind."""
    start = str(item["pk"]).partition("#")[0]
    return str(item["sk"]).partition("#")[0] if start == "ORG" else start
