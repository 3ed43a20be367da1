"""Inbox items as stored, with their former statuses. They are written from `discoveries`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import quote

from controlplane.findings.fixes import Fix
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.table import keys
from controlplane.platform.table.stored import SPARSE, Derived, StoredMap, read_map, to_map

Source = Literal["advisory", "code-audit", "runtime"]
Confidence = Literal["high", "medium", "low"]

# Items are read for every list entry and written as a whole, so texts from sources are truncated to these lengths.
TITLE_LENGTH, SUMMARY_LENGTH, _SNIPPET_LENGTH, URL_LENGTH = 200, 1_000, 2_000, 2_000
Status = Literal["open", "accepted", "dismissed", "resolved"]

# A reason has up to 1,000 characters, and each former status keeps its own.
MOST_FORMER = 10


class Assignee(NamedTuple):
    """The member to whom an item is assigned, and since when.

    name, email: None until `conversations.with_assignees` has read them.
    """

    user_id: str
    since: str
    name: str | None = None
    email: str | None = None


class Comment(NamedTuple):
    """A comment on an item.

    text: what a person wrote, in which members are mentioned by the IDs of their accounts. mentions: these IDs.
    """

    id: str
    at: str
    by: str
    text: str
    mentions: tuple[str, ...] = ()


class StatusChange(NamedTuple):
    """A status of an item, its time, and who or what set it: a person, a scan, or an audit, or none if it was found.

    until: when a dismissed item opens again.
    """

    status: Status
    at: str
    by: str | None = None
    reason: str | None = None
    scan_id: str | None = None
    until: str | None = None
    run_id: str | None = None

    @property
    def resolver(self) -> str:
        """The subject of a sentence about what resolved the item, if no person did."""
        if self.scan_id is not None:
            return "A scan"
        return "An audit" if self.run_id is not None else "A decision about its vendor"


class Evidence(NamedTuple):
    """One piece of evidence for a finding: a place in code, an observed request, or a notice.

    Lines count from 1. `url` links to it: for code, the permalink of the lines at the scanned commit. `seen_at` is set
    if detections merge their evidence, and is the time of the latest one that saw it. `around` is the code from five
    lines before the place to five after it.
    """

    description: str
    url: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    snippet: str | None = None
    seen_at: str | None = None
    around: tuple[str, ...] = ()

    @property
    def lines(self) -> list["CodeLine"]:
        """The code around the place, or that of the place alone if no other was stored."""
        first = self.start_line or 1
        if self.around:
            return [CodeLine(number, text) for number, text in enumerate(self.around, max(1, first - 5))]
        return [CodeLine(number, text) for number, text in enumerate((self.snippet or "").splitlines(), first)]

    def to_map(self) -> dict[str, Any]:
        return to_map(
            self._replace(
                description=truncate(self.description, SUMMARY_LENGTH),
                url=self.url if self.url is None or len(self.url) <= URL_LENGTH else None,
                snippet=truncate(self.snippet, _SNIPPET_LENGTH),
            )
        )


class CodeLine(NamedTuple):
    number: int
    text: str


class RuntimeVendor(NamedTuple):
    """The vendor that a runtime finding is about."""

    project_id: str
    vendor_id: str
    name: str
    domain: str

    def to_map(self) -> dict[str, Any]:
        return to_map(self._replace(name=truncate(self.name, TITLE_LENGTH)))

    def to_texts(self) -> tuple[str, str, str]:
        """Returns the texts that the item's position in the lists carries."""
        return self.vendor_id, self.domain, self.to_map()["name"]

    @classmethod
    def from_listed(cls, item: Mapping[str, Any]) -> Self | None:
        """Returns the vendor of an item in a list, or None if the item's position doesn't carry it."""
        texts = keys.inbox_order_texts(item.get(keys.INBOX.sk, ""), 3) if item["source"] == "runtime" else []
        if not texts or item.get("projectId") is None:
            return None
        vendor_id, domain, name = texts
        return cls(item["projectId"], vendor_id, name, domain)


class AuditRun(NamedTuple):
    """The latest run of a website audit that saw the finding."""

    audit_id: str
    run_id: str


class VendorPlace(NamedTuple):
    """A file that loads a vendor, or a manifest that names a package of it.

    gated: whether the vendor waits for consent there. None if the scan can't tell, and for a manifest.
    """

    path: str
    gated: bool | None = None
    package: str | None = None


class CodeUse(NamedTuple):
    """A vendor in the code of a repository, as the latest scan that could tell saw it.

    tree_url: where the code host shows the scanned commit. places: some of them, those without consent first. Empty if
    that scan no longer found the vendor.
    """

    repository_id: str
    repository_name: str
    scan_id: str
    scanned_at: str
    tree_url: str
    places: tuple[VendorPlace, ...] = ()

    @property
    def before_consent(self) -> bool:
        """True if one of the places loads the vendor without consent."""
        return any(place.gated is False for place in self.places)

    def url_of(self, place: VendorPlace) -> str:
        """Returns the address of the file at the scanned commit."""
        return f"{self.tree_url}/{quote(place.path)}"


class GithubIssue(NamedTuple):
    """The issue that was opened for a finding."""

    number: int
    url: str
    created_at: str
    state: Literal["open", "closed"] = "open"


class VendorDecision(NamedTuple):
    """A project's decision on a vendor that a code finding is about. `vendor_id` is the project's id of the vendor."""

    vendor_id: str
    state: Literal["approved", "ignored"]
    decided_at: str


class LockedFindings(NamedTuple):
    """The number of new findings that a locked scan hides, and the price of unlocking its report."""

    scan_id: str
    new_count: int
    unlock_credits: int


def to_former(history: Sequence[StatusChange]) -> list[dict[str, Any]]:
    """Returns the former statuses to store with a change of the item's status: the latest ten, oldest first."""
    return [to_map(change) for change in history[-MOST_FORMER:]]


def resolving_scan(item: Mapping[str, Any]) -> str | None:
    """Returns the ID of the scan that resolved the item, if one did."""
    resolution = item.get("resolvedBy")
    return resolution["scanId"] if resolution else None


def history_of(item: Mapping[str, Any]) -> tuple[StatusChange, ...]:
    """Returns the item's former statuses, oldest first, and its current one last. Empty for an item of a list."""
    if "statusAt" not in item:  # listed
        return ()
    current = StatusChange(
        status=item["status"],
        at=item["statusAt"],
        by=item.get("statusBy"),
        reason=item.get("statusReason"),
        scan_id=resolving_scan(item),
        until=item.get("dismissedUntil"),
        run_id=(item.get("resolvedBy") or {}).get("runId"),
    )
    return (*(read_map(StatusChange, former) for former in item.get("history") or ()), current)


def _stored_vendor(item: Mapping[str, Any]) -> RuntimeVendor | None:
    vendor = item.get("runtimeVendor")
    return read_map(RuntimeVendor, vendor) if vendor else RuntimeVendor.from_listed(item)


def _stored_assignee(item: Mapping[str, Any]) -> Assignee | None:
    assignee = item.get("assignee")
    if assignee:
        return read_map(Assignee, assignee)
    of_position = keys.inbox_order_assignee(item.get(keys.INBOX.sk, "")) if "assignee" not in item else None
    return Assignee(*of_position) if of_position else None


def _stored_path(item: Mapping[str, Any]) -> str | None:
    """Returns the file of a code finding: of its evidence, or of an item in a list, from its position."""
    if item["source"] != "code-audit":
        return None
    of_evidence = [it["path"] for it in item.get("evidence") or () if it.get("path")]
    found = of_evidence or keys.inbox_order_texts(item.get(keys.INBOX.sk, ""), 1)
    return found[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem(StoredMap):
    """An item as stored. Fields that lists don't contain (from `repository_id` on) are empty in listed items.

    It has no `to_item`: it is created from a `Discovery`, and every later write changes single attributes.
    """

    item_id: InboxItemId
    title: str
    summary: Annotated[str | None, SPARSE] = None
    priority: Annotated[Priority | None, SPARSE] = None
    status: Status
    source: Source
    project_id: Annotated[str | None, SPARSE] = None
    repository_name: Annotated[str | None, SPARSE] = None
    github_issue: Annotated[GithubIssue | None, SPARSE] = None
    runtime_vendor: Annotated[RuntimeVendor | None, Derived(_stored_vendor)] = None
    # As stored: it isn't known whether that is a member still.
    assignee: Annotated[Assignee | None, Derived(_stored_assignee)] = None
    updated_at: str
    version: str
    repository_id: Annotated[RepositoryId | None, SPARSE] = None
    rule_id: Annotated[str | None, SPARSE] = None
    description: Annotated[str | None, SPARSE] = None
    remediation: Annotated[str | None, SPARSE] = None
    references: Annotated[tuple[str, ...], SPARSE] = ()
    evidence: Annotated[tuple[Evidence, ...], SPARSE] = ()
    status_reason: Annotated[str | None, SPARSE] = None
    # When it opens again, if it is dismissed.
    dismissed_until: Annotated[str | None, SPARSE] = None
    # The scan that resolved it.
    resolved_by: Annotated[str | None, Derived(resolving_scan)] = None
    # The catalog's vendors that a code finding is about.
    vendor_ids: Annotated[tuple[str, ...], SPARSE] = ()
    decisions: Annotated[tuple[VendorDecision, ...], SPARSE] = ()
    confidence: Annotated[Confidence | None, SPARSE] = None
    fix: Annotated[Fix | None, SPARSE] = None
    locked_findings: Annotated[LockedFindings | None, SPARSE] = None
    # Of a finding of a website audit.
    audit_run: Annotated[AuditRun | None, SPARSE] = None
    # Oldest first.
    comments: Annotated[tuple[Comment, ...], SPARSE] = ()
    # The file that a code finding is about. In listed items, None if the position doesn't carry it.
    path: Annotated[str | None, Derived(_stored_path)] = None
    # Former statuses, oldest first, and the current one as the last. Empty in listed items.
    history: Annotated[tuple[StatusChange, ...], Derived(history_of)] = ()

    @property
    def organization_id(self) -> str:
        return self.item_id.organization_id

    @property
    def former(self) -> StatusChange | None:
        """The status before the current one, if it is known."""
        return self.history[-2] if len(self.history) > 1 else None


def truncate[T: (str, str | None)](text: T, length: int) -> T:
    """Returns the text, or its beginning and an ellipsis if it is longer."""
    return text if not text or len(text) <= length else text[: length - 1] + "…"
