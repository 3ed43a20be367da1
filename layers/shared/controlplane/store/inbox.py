"""The inbox: an item for each finding of an advisory, a code audit, or the runtime, with the decision on it.

A changed item moves to the front of the lists. So its status, version, time, and position in both indexes are written
together, only by `moved`. The indexes serve only lists; no decision is based on them.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.retention import expiry
from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.table import ConditionFailed, Put, StoreError, Throttled, Update, table

Status = Literal["open", "accepted", "dismissed", "resolved"]
Source = Literal["advisory", "code-audit", "runtime"]
Priority = Literal["P0", "P1", "P2", "P3"]

_TRIES = 8
# Items are read for every list entry and written as a whole, so texts from sources are truncated to these lengths.
_TITLE_LENGTH, _SUMMARY_LENGTH, _TEXT_LENGTH, _SNIPPET_LENGTH, _URL_LENGTH = 200, 1_000, 4_000, 2_000, 2_000
_MOST_EVIDENCE, _MOST_REFERENCES = 20, 20


class UnknownItem(StoreError):
    """The item doesn't exist, or was deleted."""


class StaleVersion(StoreError):
    """The item changed since it was read. `current` is its current state."""

    def __init__(self, current: "InboxItem") -> None:
        super().__init__("stale version")
        self.current = current


class Evidence(NamedTuple):
    """One piece of evidence for a finding: a place in code, an observed request, or a notice.

    Lines count from 1. `url` links to it: for code, the permalink of the lines at the scanned commit.
    """

    description: str
    url: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    snippet: str | None = None


class RuntimeVendor(NamedTuple):
    """The vendor that a runtime finding is about."""

    project_id: str
    vendor_id: str
    name: str
    domain: str


class GithubIssue(NamedTuple):
    number: int
    url: str
    created_at: str


class Discovery(NamedTuple):
    """A source's finding and the time of observation, to be published as an item.

    identity: identifies the same finding when it is found again, within organization and source.
    observed_at: RFC 3339, in the format of `clock.timestamp`. Of two reports, the later observation wins, not the later
        arrival.
    settled: a person has decided on it elsewhere, for example on a vendor. It is resolved and doesn't reopen.
    repository_id, rule_id: set for code findings. Issues are opened only for these.
    description, remediation, references: why it matters, how to fix it, and URLs with more information.
    """

    organization_id: str
    source: Source
    identity: tuple[str, ...]
    title: str
    observed_at: str
    summary: str | None = None
    priority: Priority | None = None
    project_id: str | None = None
    repository_id: str | None = None
    repository_name: str | None = None
    rule_id: str | None = None
    description: str | None = None
    remediation: str | None = None
    references: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    runtime_vendor: RuntimeVendor | None = None
    settled: bool = False

    @property
    def local(self) -> str:
        return ids.derived_local(self.source, *self.identity)

    @property
    def item_id(self) -> str:
        return ids.owned(ids.INBOX_ITEM, self.organization_id, self.local)


class InboxItem(NamedTuple):
    """An item as stored. Fields that lists don't contain (from `repository_id` on) are empty in listed items."""

    item_id: str
    organization_id: str
    title: str
    summary: str | None
    priority: Priority | None
    status: Status
    source: Source
    project_id: str | None
    repository_name: str | None
    github_issue: GithubIssue | None
    updated_at: str
    version: str
    repository_id: str | None
    rule_id: str | None
    description: str | None
    remediation: str | None
    references: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    runtime_vendor: RuntimeVendor | None
    status_reason: str | None

    @property
    def location(self) -> ids.Located:
        return locate(self.item_id)


class InboxPage(NamedTuple):
    """Items, and the position after which the next page starts (None on the last page)."""

    items: list[InboxItem]
    next_position: str | None


def locate(item_id: str) -> ids.Located:
    """Returns the location of a stored item by its id. Raises LookupError if it isn't the id of an inbox item."""
    located = ids.locate(ids.INBOX_ITEM, item_id)
    if located is None:
        raise LookupError("not the id of an inbox item")
    return located


def read_item(item: Mapping[str, Any]) -> InboxItem:
    """Returns the item from its stored attributes."""
    issue, vendor = item.get("githubIssue"), item.get("runtimeVendor")
    item_id = item["itemId"]
    return InboxItem(
        item_id,
        locate(item_id).organization_id,
        item["title"],
        item.get("summary"),
        item.get("priority"),
        item["status"],
        item["source"],
        item.get("projectId"),
        item.get("repositoryName"),
        GithubIssue(issue["number"], issue["url"], issue["createdAt"]) if issue else None,
        item["updatedAt"],
        item["version"],
        item.get("repositoryId"),
        item.get("ruleId"),
        item.get("description"),
        item.get("remediation"),
        tuple(item.get("references") or ()),
        tuple(_read_evidence(shown) for shown in item.get("evidence") or ()),
        RuntimeVendor(vendor["projectId"], vendor["vendorId"], vendor["name"], vendor["domain"]) if vendor else None,
        item.get("statusReason"),
    )


def _read_evidence(shown: Mapping[str, Any]) -> Evidence:
    return Evidence(
        shown["description"],
        shown["url"],
        shown["path"],
        shown["startLine"],
        shown["endLine"],
        shown["snippet"],
    )


# Reading


def list_items(organization_id: str, status: Status | None, limit: int, after: str | None) -> InboxPage:
    """Returns one page of the organization's items, most recently updated first: all, or those in the status.

    Eventually consistent. An item that changes during pagination moves to the front, which has already been read. The
    others keep their positions, so each is returned once.
    """
    if status is None:
        index, pk = keys.INBOX, keys.organization_pk(organization_id)
    else:
        index, pk = keys.INBOX_BY_STATUS, keys.inbox_status_pk(organization_id, status)
    page = table.query(pk, newest_first=True, limit=limit, after=after, index=index)
    return InboxPage([read_item(item) for item in page.items], page.next_sk)


def find_items(item_ids: Iterable[str]) -> dict[str, InboxItem]:
    """Returns the items by id, without those that don't exist. Consistent, one round trip per 100 items."""
    wanted = dict.fromkeys(item_ids)
    found = table.batch_get([keys.inbox_item(*locate(item_id)) for item_id in wanted])
    return {item["itemId"]: read_item(item) for item in found if item}


def get_item(item_id: str) -> InboxItem:
    """Returns the item. Consistent. Raises UnknownItem."""
    located = ids.locate(ids.INBOX_ITEM, item_id)
    item = table.get(keys.inbox_item(*located)) if located else None
    if item is None:
        raise UnknownItem
    return read_item(item)


# Changing


def new_version() -> str:
    return secrets.token_hex(16)


def _placed(organization_id: str, local: str, at: str, status: Status | None = None) -> dict[str, Any]:
    """Returns the attributes for a change: its time, the index keys, and the new status, if any."""
    placed: dict[str, Any] = {"updatedAt": at, keys.INBOX.sk: keys.inbox_order(at, local)}
    if status is not None:
        placed |= {
            "status": status,
            "statusAt": at,
            keys.INBOX_BY_STATUS.pk: keys.inbox_status_pk(organization_id, status),
            **(expiry(settings.resolved_item_retention_days) if status == "resolved" else {}),
        }
    return placed


def moved(
    item_id: str,
    version: str,
    status: Status | None = None,
    *,
    fields: Mapping[str, Any] | None = None,
    when: str = "attribute_exists(pk)",
    values: Mapping[str, Any] | None = None,
) -> Update:
    """Returns a user-visible change of an item, as a write or a leg of a transaction.

    status: the new status; None keeps the current one. fields: further attributes to set. when, values: the condition.
    """
    located = locate(item_id)
    changed = {**(fields or {}), **_placed(*located, clock.timestamp(), status), "version": version}
    change = _set(changed)
    if status is not None and "expiresAt" not in changed:
        change += " REMOVE #expiresAt"  # only resolved items expire
    return Update(keys.inbox_item(*located), change, when, {**changed, **(values or {})})


def _set(changed: Mapping[str, Any]) -> str:
    return "SET " + ", ".join(f"#{name} = :{name}" for name in changed)


def change_status(item: InboxItem, status: Status, version: str, user_id: str, reason: str | None) -> InboxItem:
    """Sets the status if the item still has the version, and returns the item. Raises StaleVersion, UnknownItem.

    If version and status are the current ones, nothing changes. The new version is derived from the old one and the
    request, so a retry after a lost response finds its own change and succeeds. An old version never recurs.
    """
    new = _following(item.item_id, version, status, user_id, reason)
    if item.version == new or (item.version == version and item.status == status):
        return item
    if item.version != version:
        raise StaleVersion(item)
    fields = {"statusReason": reason, "statusBy": user_id}
    expected = {"expected": version}
    change = moved(item.item_id, new, status, fields=fields, when="#version = :expected", values=expected)
    try:
        return read_item(table.update(change))
    except ConditionFailed as failure:
        if failure.item is None:
            raise UnknownItem from None
        current = read_item(failure.item)
        if current.version != new:
            raise StaleVersion(current) from None
        return current


def _following(item_id: str, version: str, status: str, user_id: str, reason: str | None) -> str:
    asked = "\0".join([item_id, version, status, user_id, "-" if reason is None else "=" + reason])
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


# Publishing


def publish_finding(discovery: Discovery) -> InboxItem:
    """Publishes the finding and returns its item: a new, open one (resolved if settled), or the existing one.

    An existing item keeps its status, except that a resolved one reopens if the finding was observed after it was
    resolved (unless settled). Observations that aren't newer than the stored one, including duplicates, change nothing.
    """
    key = keys.inbox_item(discovery.organization_id, discovery.local)
    for _ in range(_TRIES):
        stands = table.get(key)
        write = publication(discovery, stands)
        try:
            if write is None:
                return read_item(stands or {})
            if isinstance(write, Update):
                return read_item(table.update(write))
            table.put(write)
        except ConditionFailed:
            continue  # the item changed concurrently, or the response to our own write was lost
        return read_item(write.item)
    raise Throttled("the item keeps changing")


def publication(discovery: Discovery, stands: Mapping[str, Any] | None) -> Put | Update | None:
    """Returns the write that publishes, given the existing item (None if it doesn't exist). None if nothing changes.

    The write is conditional on that state of the item. It can also be a leg of a transaction with related changes.
    """
    told = _told(discovery)
    if stands is None:
        located = ids.Located(discovery.organization_id, discovery.local)
        item = {
            **keys.inbox_item(*located)._asdict(),
            "itemId": discovery.item_id,
            "source": discovery.source,
            **told,
            **_placed(*located, clock.timestamp(), "resolved" if discovery.settled else "open"),
            "version": new_version(),
        }
        return Put(item, "attribute_not_exists(pk)")
    if discovery.observed_at <= stands["observedAt"]:
        return None
    when = "#version = :seen AND #observedAt = :before"
    values = {"seen": stands["version"], "before": stands["observedAt"]}
    reopens = stands["status"] == "resolved" and discovery.observed_at > stands["statusAt"] and not discovery.settled
    if reopens or any(told[name] != stands.get(name) for name in _LISTED):
        status: Status | None = "open" if reopens else None
        return moved(discovery.item_id, new_version(), status, fields=told, when=when, values=values)
    # Nothing listed changed, so the item keeps its position, and its version, so that pending decisions still succeed.
    return Update(keys.inbox_item(*locate(discovery.item_id)), _set(told), when, {**told, **values})


# The attributes of a discovery that lists show.
_LISTED = ("title", "summary", "priority", "projectId", "repositoryName")


def _cut(text: str | None, length: int) -> str | None:
    return text if text is None or len(text) <= length else text[: length - 1] + "…"


def _told(discovery: Discovery) -> dict[str, Any]:
    """Returns the item attributes of a discovery, truncated to the limits."""
    vendor = discovery.runtime_vendor
    return {
        "observedAt": discovery.observed_at,
        "title": _cut(discovery.title, _TITLE_LENGTH),
        "summary": _cut(discovery.summary, _SUMMARY_LENGTH),
        "priority": discovery.priority,
        "projectId": discovery.project_id,
        "repositoryName": discovery.repository_name,
        "repositoryId": discovery.repository_id,
        "ruleId": discovery.rule_id,
        "description": _cut(discovery.description, _TEXT_LENGTH),
        "remediation": _cut(discovery.remediation, _TEXT_LENGTH),
        "references": [url for url in discovery.references if len(url) <= _URL_LENGTH][:_MOST_REFERENCES],
        "evidence": [_written(shown) for shown in discovery.evidence[:_MOST_EVIDENCE]],
        "runtimeVendor": None
        if vendor is None
        else {
            "projectId": vendor.project_id,
            "vendorId": vendor.vendor_id,
            "name": _cut(vendor.name, _TITLE_LENGTH),
            "domain": vendor.domain,
        },
    }


def _written(shown: Evidence) -> dict[str, Any]:
    return {
        "description": _cut(shown.description, _SUMMARY_LENGTH),
        "url": shown.url if shown.url is None or len(shown.url) <= _URL_LENGTH else None,
        "path": shown.path,
        "startLine": shown.start_line,
        "endLine": shown.end_line,
        "snippet": _cut(shown.snippet, _SNIPPET_LENGTH),
    }
