"""Inbox items as stored, with their former statuses, and the discoveries of findings that they are written from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import quote

from controlplane.findings.fixes import Fix
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.table import keys
from controlplane.platform.table.stored import SPARSE, Derived, StoredMap, read_map, to_map

Source = Literal["advisory", "code-audit", "runtime"]
Confidence = Literal["high", "medium", "low"]

# Items are read for every list entry and written as a whole, so texts from sources are truncated to these lengths.
_TITLE_LENGTH, _SUMMARY_LENGTH, _TEXT_LENGTH, _SNIPPET_LENGTH, _URL_LENGTH = 200, 1_000, 4_000, 2_000, 2_000
_MOST_EVIDENCE, _MOST_REFERENCES = 20, 20
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
    """A status of an item, its time, and who or what set it: a person, a scan, or neither if it was found.

    until: when a dismissed item opens again.
    """

    status: Status
    at: str
    by: str | None = None
    reason: str | None = None
    scan_id: str | None = None
    until: str | None = None


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
                description=_truncate(self.description, _SUMMARY_LENGTH),
                url=self.url if self.url is None or len(self.url) <= _URL_LENGTH else None,
                snippet=_truncate(self.snippet, _SNIPPET_LENGTH),
            )
        )


class CodeLine(NamedTuple):
    number: int
    text: str


def merge_evidence(pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Returns the evidence once per URL, or per description if it has none, newest first and at most 20 pieces.

    Pieces that were seen at the same time keep their order. Merging the same pieces again changes nothing.
    """
    latest: dict[str, Evidence] = {}
    for piece in pieces:
        place = piece.url or piece.description
        if place not in latest or (piece.seen_at or "") > (latest[place].seen_at or ""):
            latest[place] = piece
    newest_first = sorted(latest.values(), key=lambda piece: piece.seen_at or "", reverse=True)
    return tuple(newest_first[:_MOST_EVIDENCE])


class RuntimeVendor(NamedTuple):
    """The vendor that a runtime finding is about."""

    project_id: str
    vendor_id: str
    name: str
    domain: str

    def to_map(self) -> dict[str, Any]:
        return to_map(self._replace(name=_truncate(self.name, _TITLE_LENGTH)))

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


class Resolution(NamedTuple):
    """The scan that resolved an item, the time of its observation, and its attempt."""

    scan_id: str
    observed_at: str
    reason: str
    attempt: int = 0

    def to_map(self) -> dict[str, Any]:
        return {"scanId": self.scan_id, "observedAt": self.observed_at, "attempt": self.attempt}


class LockedFindings(NamedTuple):
    """The number of new findings that a locked scan hides, and the price of unlocking its report."""

    scan_id: str
    new_count: int
    unlock_credits: int


def finding_item_id(organization_id: str, source: Source, *identity: str) -> InboxItemId:
    """Returns the id of the item of a finding with this identity."""
    return InboxItemId.of(organization_id, ids.derived_local(source, *identity))


class Discovery(NamedTuple):
    """A source's finding and the time of observation, to be published as an item.

    identity: identifies the same finding when it is found again, within organization and source.
    observed_at: RFC 3339, in the format of `clock.timestamp`. Of two reports, the later observation wins, not the later
        arrival.
    attempt: the attempt at a scan. If attempts at one scan differ, the later one counts.
    settled: a person has decided on it elsewhere, for example on a vendor. It is resolved and doesn't reopen.
    settled_reason: why, if its item is to say so. Only then is an open item resolved, too.
    resolution: a later scan no longer finds it. It is resolved, but reopens if it is found after that.
    edition: of an advisory from the product's list. A new one reopens an item that a person has dismissed or resolved.
    vendor_ids, decisions: the catalog's vendors that it is about, and the project's decisions on them.
    confidence, fix: how sure the source is, and how to fix the finding. Set for code findings.
    locked_findings: set if it announces locked findings instead of being one.
    repository_id: set for code findings and for advisories about packages of a repository.
    rule_id: set for code findings. Issues are opened only for these.
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
    settled_reason: str | None = None
    attempt: int = 0
    resolution: Resolution | None = None
    vendor_ids: tuple[str, ...] = ()
    decisions: tuple[VendorDecision, ...] = ()
    confidence: Confidence | None = None
    fix: Fix | None = None
    locked_findings: LockedFindings | None = None
    edition: str | None = None

    @property
    def item_id(self) -> InboxItemId:
        return finding_item_id(self.organization_id, self.source, *self.identity)

    @property
    def path(self) -> str | None:
        """The file that a code finding is about."""
        return next((it.path for it in self.evidence if it.path), None) if self.source == "code-audit" else None

    def to_map(self) -> dict[str, Any]:
        """Returns the item's attributes that each publication of the finding sets, truncated to the limits."""
        return {
            "observedAt": self.observed_at,
            "title": _truncate(self.title, _TITLE_LENGTH),
            "summary": _truncate(self.summary, _SUMMARY_LENGTH),
            "priority": self.priority,
            "projectId": self.project_id,
            "repositoryName": self.repository_name,
            "repositoryId": self.repository_id,
            "ruleId": self.rule_id,
            "description": _truncate(self.description, _TEXT_LENGTH),
            "remediation": _truncate(self.remediation, _TEXT_LENGTH),
            "references": [url for url in self.references if len(url) <= _URL_LENGTH][:_MOST_REFERENCES],
            "evidence": [evidence.to_map() for evidence in self.evidence[:_MOST_EVIDENCE]],
            "runtimeVendor": self.runtime_vendor.to_map() if self.runtime_vendor else None,
            "vendorIds": list(self.vendor_ids),
            "decisions": [to_map(decision) for decision in self.decisions],
            "confidence": self.confidence,
            "fix": to_map(self.fix) if self.fix else None,
            "lockedFindings": to_map(self.locked_findings) if self.locked_findings else None,
            "edition": self.edition,
        }

    def resolved_attributes(self) -> dict[str, Any]:
        """Returns the attributes that say why the item is resolved, if the discovery does so."""
        if self.resolution is not None:
            return resolved_by(self.resolution)
        return {"statusReason": _truncate(self.settled_reason, _SUMMARY_LENGTH)} if self.settled_reason else {}


def resolved_by(resolution: Resolution) -> dict[str, Any]:
    return {"statusReason": resolution.reason, "resolvedBy": resolution.to_map()}


# The attributes of a discovery that lists show.
LISTED = ("title", "summary", "priority", "projectId", "repositoryName", "runtimeVendor")


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


def _truncate[T: (str, str | None)](text: T, length: int) -> T:
    return text if not text or len(text) <= length else text[: length - 1] + "…"
