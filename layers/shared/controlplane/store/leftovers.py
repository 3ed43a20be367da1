"""What a deleted project, repository or organization leaves behind, and how it is removed, page by page.

A step removes one page of one kind of item and returns the position of the next page, or None after the last one. It
can be repeated at any time. `deletions` decides when which step runs. No step makes anything unreachable that a later
one has to find: what is found through an item goes before it.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self

from controlplane import clock, ids
from controlplane.emails import normalize_email
from controlplane.retention import expiry
from controlplane.settings import settings
from controlplane.store import feedback, keys, organizations, repositories, scans
from controlplane.store.keys import Key
from controlplane.store.leases import LeaseLost
from controlplane.store.repositories import NotLinked, UnknownRepository
from controlplane.store.scans import Failure
from controlplane.store.table import (
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    QueryPage,
    Throttled,
    Update,
    table,
)

_DELETED = Failure("DELETED", "The project, repository or organization was deleted.")
_PAGE = 100
_TRIES = 8
# Two legs each, in transactions of at most 100.
_PAIRS = 45


class Subject(NamedTuple):
    """What was deleted.

    attribute: what its items name it by; None if all items of the organization are its own.
    final: nothing that began before the deletion still runs.
    """

    subject_id: str
    organization_id: str
    attribute: str | None
    final: bool

    @classmethod
    def of(cls, subject_id: str, *, final: bool) -> Self:
        """Raises LookupError for an id that nothing deletable has."""
        if ids.is_root(ids.ORGANIZATION, subject_id):
            return cls(subject_id, subject_id, None, final)
        for prefix, attribute in ((ids.PROJECT, "projectId"), (ids.REPOSITORY, "repositoryId")):
            located = ids.locate(prefix, subject_id)
            if located is not None:
                return cls(subject_id, located.organization_id, attribute, final)
        raise LookupError("a deletion names nothing that can be deleted")

    def page(self, prefix: str, after: str | None) -> QueryPage:
        """A page of the organization's items. Consistent: what was written before the deletion must not stay."""
        pk = keys.organization_pk(self.organization_id)
        return table.query(pk, prefix=prefix, after=after, limit=_PAGE, consistent=True)

    def own(self, page: QueryPage) -> list[dict[str, Any]]:
        """Those items of the page that belong to the subject."""
        return [it for it in page.items if self.attribute is None or it.get(self.attribute) == self.subject_id]


type Step = Callable[[Subject, str | None], str | None]


def _key(item: Mapping[str, Any]) -> Key:
    return Key(item["pk"], item["sk"])


def _delete(items: Iterable[Mapping[str, Any]]) -> None:
    table.delete_all(_key(item) for item in items)


def _delete_partition(pk: str) -> None:
    while True:
        page = table.query(pk, limit=_PAGE, consistent=True)
        _delete(page.items)
        if page.next_sk is None:
            return


# Scans, and what they found


def remove_requests(subject: Subject, after: str | None) -> str | None:
    """Ends and removes requests for scans. A worker that has one of them can no longer turn it into a scan."""
    page = subject.page(keys.SCAN_REQUEST_PREFIX, after)
    own = subject.own(page)
    for request in own:
        if request["status"] == "starting":
            _end(request)
    _delete(own)
    return page.next_sk


def remove_scans(subject: Subject, after: str | None) -> str | None:
    """Ends and removes scans with their findings.

    A scan whose worker may still store findings stays, as failed, until the final pass: only its item leads to them.
    """
    page = subject.page(keys.SCAN_PREFIX, after)
    removed = []
    for item in subject.own(page):
        scan = _end(item) if item["status"] in scans.OPEN else item
        _delete_partition(keys.scan_pk(scan["scanId"]))
        if subject.final or scan["status"] == "completed" or scan["leaseUntil"] <= clock.now():
            removed.append(scan)
    _delete(removed)
    return page.next_sk


def _end(work: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ends a request or a scan, and frees its repository if that still exists. Returns the item as it is then."""
    for _ in range(_TRIES):
        with suppress(LeaseLost):
            scans.end_work(work, _DELETED, "attribute_exists(pk)", {})
        now = table.get(_key(work))
        if now is None or now["status"] not in ("starting", *scans.OPEN):
            return now or work
        if now["status"] == work["status"]:
            return _end_without_repository(now)
        work = now  # it has moved on since it was read
    raise Throttled("the scan keeps changing")


def _end_without_repository(work: Mapping[str, Any]) -> Mapping[str, Any]:
    ended = scans.indexed(work["organizationId"], work["repositoryId"], "failed")
    change = "SET " + ", ".join(f"#{name} = :{name}" for name in ended)
    with suppress(ConditionFailed):
        return table.update(Update(_key(work), change, "attribute_exists(pk)", ended))
    return work


def remove_inbox_items(subject: Subject, after: str | None) -> str | None:
    """Removes inbox items, each together with an open attempt at its issue."""
    page = subject.page(keys.INBOX_PREFIX, after)
    own = subject.own(page)
    for start in range(0, len(own), _PAIRS):
        _delete_items(subject, own[start : start + _PAIRS])
    return page.next_sk


def _delete_items(subject: Subject, items: list[dict[str, Any]]) -> None:
    when, values = None, {}
    if subject.attribute is not None:
        # A scan for another project may have found the same thing since, which made the item that project's.
        when = f"attribute_not_exists(pk) OR #{subject.attribute} = :subject"
        values = {"subject": subject.subject_id}
    while items:
        legs: dict[str, Leg] = {}
        for item in items:
            legs[item["itemId"]] = Delete(_key(item), when, values)
            legs[f"attempt at {item['itemId']}"] = Delete(keys.issue_attempt(item["itemId"]))
        try:
            table.transact(legs)
        except LegFailed as refusal:
            items = [item for item in items if item["itemId"] not in refusal.items]
        else:
            return


# Of a project


def remove_links(subject: Subject, after: str | None) -> str | None:
    """Removes the project's links to repositories."""
    page = subject.page(keys.REPOSITORY_PREFIX, after)
    for item in page.items:
        if any(link["projectId"] == subject.subject_id for link in item["links"]):
            with suppress(NotLinked, UnknownRepository):
                repositories.unlink_project(item["repositoryId"], subject.subject_id)
    return page.next_sk


def remove_vendors(subject: Subject, after: str | None) -> str | None:
    """Removes the project's vendors, with the decisions about them."""
    page = subject.page(keys.vendor_prefix(scans.located(ids.PROJECT, subject.subject_id).local), after)
    _delete(page.items)
    return page.next_sk


# Of a repository


def remove_history(subject: Subject, after: str | None) -> str | None:
    """Removes the dates at which the repository's findings were first seen."""
    page = table.query(keys.finding_history_pk(subject.subject_id), after=after, limit=_PAGE, consistent=True)
    _delete(page.items)
    return page.next_sk


# Of an organization


def remove_members(subject: Subject, after: str | None) -> str | None:
    """Ends memberships, and takes the organization away from those who have it as their default."""
    page = subject.page(keys.MEMBER_PREFIX, after)
    # In this order: without the membership nobody makes it their default again, and the roster leads to the rest.
    table.delete_all(keys.membership(member["userId"], subject.organization_id) for member in page.items)
    for member in page.items:
        organizations.forget_default(member["userId"], subject.organization_id)
    _delete(page.items)
    return page.next_sk


def remove_keys(subject: Subject, after: str | None) -> str | None:
    """Removes API keys; their secrets went with the organization."""
    page = subject.page(keys.KEY_PREFIX, after)
    table.delete_all(keys.key_secret(item["digest"]) for item in page.items)
    _delete(page.items)
    return page.next_sk


def remove_invitations(subject: Subject, after: str | None) -> str | None:
    """Removes invitations, with the locks on the addresses."""
    page = subject.page(keys.INVITATION_PREFIX, after)
    table.delete_all(keys.invitee(normalize_email(item["email"]), subject.organization_id) for item in page.items)
    _delete(page.items)
    return page.next_sk


def remove_repositories(subject: Subject, after: str | None) -> str | None:
    """Removes repositories with the histories of their findings, to which scans may add until the final pass."""
    page = subject.page(keys.REPOSITORY_PREFIX, after)
    for item in page.items:
        _delete_partition(keys.finding_history_pk(item["repositoryId"]))
    if subject.final:
        _delete(page.items)
    return page.next_sk


def remove_reports(subject: Subject, after: str | None) -> str | None:
    """Removes the feedback that the organization's API keys sent."""
    return feedback.delete_reports_of(subject.organization_id, after)


def remove_everything_else(subject: Subject, after: str | None) -> str | None:
    """Removes all other items of the organization. Entries of the ledger get the date at which they expire."""
    page = subject.page("", after)
    kept = (keys.LEDGER_PREFIX,) if subject.final else (keys.LEDGER_PREFIX, keys.REPOSITORY_PREFIX, keys.SCAN_PREFIX)
    _delete(item for item in page.items if not item["sk"].startswith(kept))
    expires = expiry(settings.ledger_retention_days)
    entries = [it for it in page.items if it["sk"].startswith(keys.LEDGER_PREFIX) and "expiresAt" not in it]
    if expires:
        # An entry never changes, so it can be written again as it was read.
        table.put_all({**entry, **expires} for entry in entries)
    return page.next_sk


OF_PROJECT: tuple[Step, ...] = (remove_requests, remove_scans, remove_inbox_items, remove_links, remove_vendors)
OF_REPOSITORY: tuple[Step, ...] = (remove_requests, remove_scans, remove_inbox_items, remove_history)
OF_ORGANIZATION: tuple[Step, ...] = (
    remove_members,
    remove_keys,
    remove_invitations,
    remove_requests,
    remove_scans,
    remove_inbox_items,
    remove_repositories,
    remove_reports,
    remove_everything_else,
)
