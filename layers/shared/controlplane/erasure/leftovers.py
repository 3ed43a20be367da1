"""Cleanup of the items of a deleted project, repository, or organization, or an unlinked repository, page by page.

A step deletes one page of one kind of item and returns the position of the next page, or None after the last one. Steps
are idempotent. `deletions` schedules them. Items that are found through another item are deleted before that item, so
that later steps and retries can still find everything.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import batched
from typing import Any, NamedTuple, Self

from controlplane.api_keys.items import ApiKeyItem
from controlplane.audits.items import AuditItem, RunItem
from controlplane.code_host import installations, repositories
from controlplane.code_host.repositories import NotLinked, UnknownRepository
from controlplane.feedback import store as feedback
from controlplane.findings import code_uses, publications
from controlplane.findings.vendors import VendorItem
from controlplane.organizations import store as organizations
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.store import MemberItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.ids import InboxItemId, ProjectId, RepositoryId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import comparisons, events, messages
from controlplane.platform.queues.deletion_items import IN_PROJECT, UNLINKED, DeletionItem
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, Delete, Leg, LegFailed, QueryPage, Unrecorded, table
from controlplane.projects import store as projects
from controlplane.scans import unlocks
from controlplane.scans.failures import fail_deleted
from controlplane.scans.items import RequestItem, ScanItem

_PAGE = 100
# Up to three legs each, in transactions of at most 100.
_AT_ONCE = 30


class Subject(NamedTuple):
    """A deleted project, repository, audit, or organization, or a repository that was unlinked from a project.

    attribute: the attribute by which its items reference it; None if it owns all items of the organization.
    final: True if nothing that started before the deletion is still running.
    since: when it was created if it is an organization, or deleted.
    """

    subject_id: str
    organization_id: str
    attribute: str | None
    final: bool
    since: str

    @classmethod
    def of(cls, deletion: DeletionItem, *, final: bool) -> Self:
        """Returns the subject of the deletion. Raises LookupError if its id isn't of a deletable kind."""
        subject_id, _, of_project = deletion.subject_id.removeprefix(UNLINKED).partition(IN_PROJECT)
        since = deletion.created_at or deletion.deleted_at
        if of_project:
            return cls(subject_id, ProjectId.stored(of_project).organization_id, "auditId", final, since)
        if ids.is_root(ids.ORGANIZATION, subject_id):
            return cls(subject_id, subject_id, None, final, since)
        for kind, attribute in ((ProjectId, "projectId"), (RepositoryId, "repositoryId")):
            parsed = kind.parse(subject_id)
            if parsed is not None:
                return cls(parsed, parsed.organization_id, attribute, final, since)
        raise LookupError("a deletion names nothing that can be deleted")

    def page(self, prefix: str, after: str | None) -> QueryPage[dict[str, Any]]:
        """Returns a page of the organization's items. Consistent, so that no item written before is missed."""
        pk = keys.organization_pk(self.organization_id)
        return table.query(pk, prefix=prefix, after=after, limit=_PAGE, consistent=True)

    def own(self, page: QueryPage[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the items of the page that belong to the subject."""
        return [it for it in page.items if self.attribute is None or it.get(self.attribute) == self.subject_id]


type Step = Callable[[Subject, str | None], str | None]


def _key(item: Mapping[str, Any]) -> Key:
    return Key(item["pk"], item["sk"])


def _delete(items: Iterable[Mapping[str, Any]]) -> None:
    table.delete_all((_key(item) for item in items), Unrecorded.CLEANUP)


# Scans and their results


def remove_requests(subject: Subject, after: str | None) -> str | None:
    """Ends and deletes scan requests. A worker that holds one can no longer create its scan."""
    page = subject.page(keys.SCAN_REQUEST_PREFIX, after)
    own = [RequestItem.from_item(item) for item in subject.own(page)]
    for request in own:
        if request.is_open:
            fail_deleted(request)
    table.delete_all((request.key for request in own), Unrecorded.CLEANUP)
    return page.next_sk


def remove_scans(subject: Subject, after: str | None) -> str | None:
    """Ends and deletes scans with their findings.

    A scan whose worker may still store findings is kept, as failed, until the final pass, because the findings can only
    be found through its item.
    """
    page = subject.page(keys.SCAN_PREFIX, after)
    removed: list[Key] = []
    for item in subject.own(page):
        scan = ScanItem.from_item(item)
        if scan.is_open:
            scan = fail_deleted(scan)
        table.delete_partition(keys.scan_pk(scan.scan_id), Unrecorded.CLEANUP)
        if subject.final or scan.status == "completed" or scan.lease.until <= clock.now():
            removed += [*unlocks.entry_keys(scan), scan.key]
    table.delete_all(removed, Unrecorded.CLEANUP)
    return page.next_sk


def remove_inbox_items(subject: Subject, after: str | None) -> str | None:
    """Deletes inbox items, each with any open attempt to create its issue, and the end of its dismissal."""
    page = subject.page(keys.INBOX_PREFIX, after)
    own = subject.own(page)
    for start in range(0, len(own), _AT_ONCE):
        _delete_items(subject, own[start : start + _AT_ONCE])
    return page.next_sk


def _delete_items(subject: Subject, items: list[dict[str, Any]]) -> None:
    when, values = None, {}
    if subject.attribute is not None:
        # A scan of another project may have since found the same issue, which moved the item to that project.
        when = f"attribute_not_exists(pk) OR #{subject.attribute} = :subject"
        values = {"subject": subject.subject_id}
    while items:
        legs: dict[str, Leg] = {}
        for item in items:
            legs[item["itemId"]] = Delete(_key(item), when, values)
            legs[f"attempt at {item['itemId']}"] = Delete(keys.issue_attempt(item["itemId"]))
            if item.get("dismissedUntil"):
                legs[f"end of {item['itemId']}"] = Delete(keys.snooze(item["dismissedUntil"], item["itemId"]))
        try:
            table.transact(legs, Unrecorded.CLEANUP)
        except LegFailed as failure:
            items = [item for item in items if item["itemId"] not in failure.items]
        else:
            return


# Projects


def remove_links(subject: Subject, after: str | None) -> str | None:
    """Removes the project's links to repositories. Schedules a comparison of each one that was scanned for it.

    A comparison may still store an item of the project until the final pass, which has deleted that item before.
    """
    page = subject.page(keys.REPOSITORY_PREFIX, after)
    for item in page.items:
        if any(link["projectId"] == subject.subject_id for link in item["links"]):
            with suppress(NotLinked, UnknownRepository):
                project_id = ProjectId.stored(subject.subject_id)
                repositories.unlink_project(RepositoryId.stored(item["repositoryId"]), project_id, is_deleted=True)
        latest = keys.latest_scan(item["repositoryId"], ProjectId.stored(subject.subject_id).local)
        if table.get(latest) is not None:
            table.put(comparisons.due_leg(item["repositoryId"]), Unrecorded.CLEANUP)
            if subject.final:
                table.delete(Delete(latest), Unrecorded.CLEANUP)
    return page.next_sk


def remove_vendors(subject: Subject, after: str | None) -> str | None:
    """Deletes the project's vendors, with their decisions."""
    page = subject.page(keys.vendor_prefix(ProjectId.stored(subject.subject_id).local), after)
    _delete(page.items)
    return page.next_sk


def remove_audit_runs(subject: Subject, after: str | None) -> str | None:
    """Deletes the runs of website audits, each with its report and the entry that watches it."""
    project_id = ProjectId.parse(subject.subject_id)
    page = subject.page(keys.audit_run_prefix(project_id.local if project_id else ""), after)
    runs = map(RunItem.from_item, page.items)
    table.delete_all((key for run in runs for key in (run.watch_key, run.report_key, run.key)), Unrecorded.CLEANUP)
    return page.next_sk


def remove_slugs(subject: Subject, after: str | None) -> str | None:
    """Deletes the project's former slugs, except those that another project has claimed."""
    page = subject.page(keys.PROJECT_SLUG_PREFIX, after)
    for item in subject.own(page):
        slug = item["sk"].removeprefix(keys.PROJECT_SLUG_PREFIX)
        with suppress(ConditionFailed):
            table.delete(
                projects.delete_own_slug(subject.organization_id, slug, subject.subject_id), Unrecorded.CLEANUP
            )
    return page.next_sk


# Audits


def resolve_findings(subject: Subject, after: str | None) -> str | None:
    """Resolves the findings of a deleted audit, because no run will, except those that people have decided on since."""
    page = subject.page(keys.INBOX_PREFIX, after)
    found = [it for it in page.items if (it.get("auditRun") or {}).get("auditId") == subject.subject_id]
    for batch in batched(found, events.MOST_SUBJECTS, strict=False):
        item_ids = [InboxItemId.stored(it["itemId"]) for it in batch]
        messages.dispatch(*publications.end_findings(item_ids, "Its audit was deleted.", subject.since))
    return page.next_sk


# Repositories


def remove_uses(subject: Subject, after: str | None) -> str | None:
    """Removes the repository from the vendors of the projects that it isn't linked to."""
    page = subject.page(keys.VENDOR_PREFIX, after)
    repository_id = RepositoryId.stored(subject.subject_id)
    repository = repositories.find_repository(repository_id)
    for vendor in map(VendorItem.from_item, page.items):
        if repository is None or repository.find_link(vendor.project_id) is None:
            code_uses.forget_uses(vendor, repository_id)
    return page.next_sk


def remove_history(subject: Subject, after: str | None) -> str | None:
    """Deletes the history of the repository's findings, the records of its reports, and which scans are its latest."""
    page = table.query(keys.finding_history_pk(subject.subject_id), after=after, limit=_PAGE, consistent=True)
    _delete(page.items)
    _forget_scans(subject.subject_id)
    return page.next_sk


def _forget_scans(repository_id: str) -> None:
    """Deletes the entries of the repository's latest scans, and its scheduled comparison."""
    prefix = keys.latest_scan(repository_id, "").sk
    _delete(table.query(keys.latest_scans_pk(repository_id), prefix=prefix, consistent=True).items)
    table.delete(Delete(keys.due_comparison(repository_id)), Unrecorded.CLEANUP)


# Organizations


def remove_members(subject: Subject, after: str | None) -> str | None:
    """Deletes memberships, and clears the organization as the members' default."""
    page = subject.page(keys.MEMBER_PREFIX, after)
    # Memberships go first, so that no user can set the default again; the roster goes last, because it leads to both.
    members = [MemberItem.from_item(item) for item in page.items]
    table.delete_all((member.membership_key for member in members), Unrecorded.CLEANUP)
    for member in members:
        organizations.forget_default(member.user_id, subject.organization_id)
    _delete(page.items)
    return page.next_sk


def remove_keys(subject: Subject, after: str | None) -> str | None:
    """Deletes API keys. The organization's deletion has already deleted their secrets, in its own transaction."""
    page = subject.page(keys.KEY_PREFIX, after)
    stored = map(ApiKeyItem.from_item, page.items)
    table.delete_all((secret for key in stored for secret in key.secret_keys), Unrecorded.CLEANUP)
    _delete(page.items)
    return page.next_sk


def remove_invitations(subject: Subject, after: str | None) -> str | None:
    """Deletes invitations, with the locks on their addresses."""
    page = subject.page(keys.INVITATION_PREFIX, after)
    table.delete_all((InvitationItem.from_item(item).lock_key for item in page.items), Unrecorded.CLEANUP)
    _delete(page.items)
    return page.next_sk


def remove_repositories(subject: Subject, after: str | None) -> str | None:
    """Deletes repositories with their finding histories, to which scans may add until the final pass."""
    page = subject.page(keys.REPOSITORY_PREFIX, after)
    for item in page.items:
        table.delete_partition(keys.finding_history_pk(item["repositoryId"]), Unrecorded.CLEANUP)
        _forget_scans(item["repositoryId"])
    if subject.final:
        _delete(page.items)
    return page.next_sk


def release_installations(subject: Subject, after: str | None) -> str | None:
    """Releases installations of the GitHub App through which no repository is connected anymore."""
    page = subject.page(keys.INSTALLATION_PREFIX, after)
    if page.items:
        is_deleted = subject.attribute is None
        connected = [] if is_deleted else repositories.list_all_repositories(subject.organization_id, consistent=True)
        used = {repository.installation_id for repository in connected}
        for item in page.items:
            if item["number"] not in used:
                installations.release(subject.organization_id, item["number"], item["version"])
    return page.next_sk


def remove_audits(subject: Subject, after: str | None) -> str | None:
    """Deletes website audits with the entries of their schedules."""
    page = subject.page(keys.AUDIT_PREFIX, after)
    entries = (AuditItem.from_item(item).schedule_key for item in page.items)
    table.delete_all((key for key in entries if key), Unrecorded.CLEANUP)
    _delete(page.items)
    return page.next_sk


def remove_commented(subject: Subject, after: str | None) -> str | None:
    """Deletes what leads people to their comments in the organization."""
    page = subject.page(keys.COMMENTER_PREFIX, after)
    people = {item["userId"] for item in page.items}
    table.delete_all((keys.commented(it, subject.organization_id) for it in people), Unrecorded.CLEANUP)
    _delete(page.items)
    return page.next_sk


def remove_reports(subject: Subject, after: str | None) -> str | None:
    """Deletes the feedback that was sent with the organization's API keys."""
    return feedback.delete_reports_of(subject.organization_id, after)


def remove_everything_else(subject: Subject, after: str | None) -> str | None:
    """Deletes all other items of the organization. Ledger entries are kept and get an expiry date."""
    page = subject.page("", after)
    kept = (keys.LEDGER_PREFIX,) if subject.final else (keys.LEDGER_PREFIX, keys.REPOSITORY_PREFIX, keys.SCAN_PREFIX)
    _delete(item for item in page.items if not item["sk"].startswith(kept))
    expires = expiry(settings.ledger_retention_days)
    entries = [it for it in page.items if it["sk"].startswith(keys.LEDGER_PREFIX) and "expiresAt" not in it]
    if expires:
        # An entry never changes, so overwriting it with the read value is safe.
        table.put_all(({**entry, **expires} for entry in entries), Unrecorded.CLEANUP)
    return page.next_sk


def remove_log(subject: Subject, after: str | None) -> str | None:
    """Deletes the organization's audit log, month by month. The position is the next month to look at."""
    month = after or subject.since[:7]
    page = table.query(keys.log_pk(subject.organization_id, month), limit=_PAGE, consistent=True)
    _delete(page.items)
    if page.next_sk is not None:
        return month
    year, number = int(month[:4]), int(month[5:])
    following = f"{year + number // 12}-{number % 12 + 1:02d}"
    return following if following <= clock.month() else None


OF_PROJECT: tuple[Step, ...] = (
    remove_requests,
    remove_scans,
    remove_inbox_items,
    remove_links,
    remove_vendors,
    remove_audit_runs,
    remove_slugs,
)
OF_REPOSITORY: tuple[Step, ...] = (
    remove_requests,
    remove_scans,
    remove_inbox_items,
    remove_history,
    remove_uses,
    release_installations,
)
OF_ORGANIZATION: tuple[Step, ...] = (
    remove_members,
    remove_keys,
    remove_invitations,
    remove_requests,
    remove_scans,
    remove_inbox_items,
    remove_repositories,
    release_installations,
    remove_audits,
    remove_audit_runs,
    remove_commented,
    remove_reports,
    remove_everything_else,
    # Last, because the steps before it end scans, which has entries.
    remove_log,
)
