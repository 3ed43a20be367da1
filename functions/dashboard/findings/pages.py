"""The pages of the inbox: its list with decisions on many findings at once, and the page of a finding.

Each page of the list reads a bounded part of the inbox, and shows the items that match the filters, the most urgent or
the most recently updated first. The next page continues from there, so a search never reads the whole inbox at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.code_host import repositories
from controlplane.findings import conversations, inbox, issue_attempts, lists, vendors
from controlplane.findings.batches import Outcome
from controlplane.findings.inbox import InboxPage, NotAssignable, StaleVersion, UnknownItem
from controlplane.findings.issue_attempts import IssueProgress
from controlplane.findings.items import Status
from controlplane.findings.lists import MOST_READ, MOST_SORTED, UNASSIGNED, Wanted
from controlplane.organizations import members
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import InboxItemId, ProjectId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_all
from controlplane.projects import store as projects
from dashboard import once
from dashboard.code_host.forms import list_choices
from dashboard.findings import triage
from dashboard.findings.filters import PRIORITIES, STATUSES, Filters
from dashboard.findings.groups import group_findings
from dashboard.findings.highlighting import highlight
from dashboard.findings.history import FORMER_MEMBER, list_events
from dashboard.findings.triage import Decision
from dashboard.forms import NotAcceptable
from dashboard.pages import page, redirect_within
from dashboard.parameters import AdminSubmits, ItemPath, MemberSees, MemberSubmits, MemberSubmitsMany

router = ControlRouter(tags=["Pages"], include_in_schema=False)

ITEMS_PER_PAGE, GROUPED_PER_PAGE = 50, 100
# The number of items in a status is counted up to this.
MOST_COUNTED = 50
_PROJECTS = 100
# Members that can be chosen on a page. The API assigns any.
_MEMBERS = 100
_DONE = {
    "open": "The finding is open again.",
    "accepted": "The finding is accepted.",
    "dismissed": "The finding is dismissed.",
    "resolved": "The finding is resolved.",
    "undo": "The finding has its former status again.",
    "assign": "The assignee is changed.",
    "comment": "The comment is added.",
    "deleted": "The comment is deleted.",
    "issue": "The finding has an issue now.",
    "pending": "GitHub is being asked. Reload this page in a moment.",
    "approved": "The vendor is approved for this project.",
    "ignored": "The vendor is ignored for this project.",
}


class Count(NamedTuple):
    """A number of findings: exact, or a lower bound."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.number}{'' if self.is_exact else '+'}"


@router.get("/organizations/{organizationSlug}/inbox")
async def show_inbox(session: MemberSees) -> Response:
    """Lists the organization's findings, most urgent first. The query has the filters, the order, and the cursor."""
    return _inbox(session)


@router.post("/organizations/{organizationSlug}/inbox")
async def decide_findings(session: MemberSubmitsMany) -> Response:
    """Changes the status of up to 100 findings, or restores their former status. Shows the outcome above the list.

    Doesn't redirect, because the outcome of each finding is shown. Sending the form again changes nothing.
    """
    try:
        decision, chosen = Decision.read(session.form), triage.read_chosen(session.form)
    except NotAcceptable as failure:
        return _inbox(session, failure)
    outcomes = triage.decide_all(session.organization.organization_id, chosen, decision, session.user_id)
    return _inbox(session, decision=decision, outcomes=outcomes)


@router.get("/organizations/{organizationSlug}/inbox/{itemId}")
async def show_finding(session: MemberSees, item_id: ItemPath) -> Response:
    """Shows a finding with its evidence, its fix, and its history."""
    return _finding(session, _get_progress(session, item_id))


@router.post("/organizations/{organizationSlug}/inbox/{itemId}")
async def decide_finding(session: MemberSubmits, item_id: ItemPath) -> Response:
    """Changes the status of a finding, or restores its former one."""
    found = _get_progress(session, item_id)
    try:
        decision = Decision.read(session.form)
        triage.decide(found.item, decision, session.form.get("version", ""), session.user_id)
    except StaleVersion as failure:
        return _finding(session, _get_progress(session, item_id), failure, stale=Decision.read(session.form))
    except (NotAcceptable, NotAssignable) as failure:
        return _finding(session, found, failure)
    return _done(session, item_id, decision.action)


@router.post("/organizations/{organizationSlug}/inbox/{itemId}/comments")
async def comment_on_finding(session: MemberSubmits, item_id: ItemPath) -> Response:
    """Adds a comment to a finding, or deletes the one that the form names."""
    found = _get_progress(session, item_id)
    item, user_id, deleted = found.item, session.user_id, session.form.get("delete")
    try:
        if deleted:
            conversations.delete_comment(item, deleted, user_id, session.organization.role)
        else:
            text = triage.read_comment(session.form)
            once.create_once(
                session,
                f"commentOnPage {item.item_id}",
                lambda legs: conversations.add_comment(item, text, user_id, legs).id,
            )
    except ApiError as failure:
        return _finding(session, found, failure)
    return _done(session, item_id, "deleted" if deleted else "comment")


@router.post("/organizations/{organizationSlug}/inbox/{itemId}/issue")
async def open_issue(session: AdminSubmits, item_id: ItemPath) -> Response:
    """Opens an issue for a finding on GitHub, or links the one that the form names."""
    found = _get_progress(session, item_id)
    try:
        is_open = await triage.open_issue(found.item, session.user_id, session.form.get("existing", "").strip() or None)
    except ApiError as failure:
        return _finding(session, found, failure)
    return _done(session, item_id, "issue" if is_open else "pending")


@router.post("/organizations/{organizationSlug}/inbox/{itemId}/vendor")
async def decide_finding_vendor(session: AdminSubmits, item_id: ItemPath) -> Response:
    """Approves or ignores the vendor of a finding on a website."""
    found = _get_progress(session, item_id)
    try:
        state = triage.decide_vendor(found.item, session.form, session.user_id)
    except NotAcceptable as failure:
        return _finding(session, found, failure)
    return _done(session, item_id, state)


def _get_progress(session: WebSession, item_id: str) -> IssueProgress:
    """Returns one of the organization's items with the state of its issue, in one round trip. Raises UnknownItem."""
    own_id = InboxItemId.parse(item_id)
    progress = issue_attempts.find_progress(own_id) if own_id else None
    if progress is None or progress.item.organization_id != session.organization.organization_id:
        raise UnknownItem
    return progress


def _done(session: WebSession, item_id: str, done: str) -> Response:
    return redirect_within(session.organization, f"/inbox/{item_id}{Filters.read(session.parameters).query(done=done)}")


def _inbox(
    session: WebSession,
    failure: ApiError | None = None,
    *,
    decision: Decision | None = None,
    outcomes: Sequence[Outcome] = (),
) -> Response:
    """Shows the page after the cursor, in one round trip, and one more each if findings are assigned or grouped.

    Raises InvalidPayload for another list's cursor.
    """
    organization_id, filters = session.organization.organization_id, Filters.read(session.parameters)
    binding = (filters.status, *filters.pairs, *filters.pairs.values())
    codec = CursorCodec(session.parameters.get("cursor"), "showInbox", organization_id, *binding)
    wanted = filters.wanted_by(session.user_id)
    per_page = GROUPED_PER_PAGE if filters.group else ITEMS_PER_PAGE
    found, own_projects, own_repositories, names, roster, *counts = read_all(
        lambda: lists.find(organization_id, filters.known_status, wanted, per_page, codec.after, sort=filters.sort),
        lambda: projects.list_projects(organization_id, _PROJECTS, None).items,
        lambda: list_choices(organization_id),
        lambda: members.find_names(organization_id, _list_people(outcomes)),
        lambda: members.list_members(organization_id, _MEMBERS, None).items,
        *(_counting(organization_id, status) for status in STATUSES),
    )
    assigned = conversations.with_assignees(found.items)
    return page(
        "inbox",
        session,
        failure,
        filters=filters,
        items=found.items,
        assignees={it.item_id: it.assignee for it in assigned if it.assignee},
        groups=group_findings(found.items, filters.group) if filters.group else [],
        statuses=_limit_counts(counts),
        priorities=_count_priorities(found.part, wanted, is_first=codec.after is None),
        read=len(found.part.items),
        cursor=codec.cursor(found.next_position),
        has_cursor=codec.after is not None,
        project_options=[(project.project_id, project.name) for project in own_projects],
        repository_options=[(name, name) for name in sorted({repository.name for repository in own_repositories})],
        assignee_options=[("me", "Me"), (UNASSIGNED, "Unassigned"), *((it.user_id, it.name) for it in roster)],
        names=names,
        roster=roster,
        decision=decision,
        outcomes=outcomes,
        most_read=MOST_SORTED if filters.sort == "priority" else MOST_READ,
        per_page=per_page,
    )


def _counting(organization_id: str, status: Status) -> Callable[[], int]:
    return lambda: inbox.count_items(organization_id, status, MOST_COUNTED + 1)


def _limit_counts(counts: Iterable[int]) -> dict[Status, Count]:
    """Returns the number of items in each status, up to a limit. counts: the numbers, up to one more."""
    return {
        status: Count(min(number, MOST_COUNTED), number <= MOST_COUNTED)
        for status, number in zip(STATUSES, counts, strict=True)
    }


def _count_priorities(listed: InboxPage, wanted: Wanted, *, is_first: bool) -> dict[str, Count]:
    """Returns the number of the items that were read for this page and match all other filters, by priority."""
    any_priority = wanted._replace(priority="")
    counted = Counter(item.priority for item in listed.items if any_priority.matches(item))
    return {it: Count(counted[it], is_first and listed.next_position is None) for it in PRIORITIES}


def _list_people(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns the IDs of the users who changed findings in the meantime."""
    changed = [it.item.history[-1].by for it in outcomes if it.failure and it.item]
    return [user_id for user_id in changed if user_id]


def _finding(
    session: WebSession, progress: IssueProgress, failure: ApiError | None = None, stale: Decision | None = None
) -> Response:
    """Shows the item with its related records, which takes one more round trip."""
    item, seen = progress.item, progress.item.runtime_vendor
    people = {change.by for change in item.history if change.by} | conversations.people_of(item.comments)
    project, repository, vendor, known, roster, (item,) = read_all(
        lambda: projects.find_project(ProjectId.stored(item.project_id)) if item.project_id else None,
        lambda: repositories.find_repository(item.repository_id) if item.repository_id else None,
        lambda: vendors.find_vendor(ProjectId.stored(seen.project_id), seen.vendor_id) if seen else None,
        lambda: members.find_members(item.organization_id, people),
        lambda: members.list_members(item.organization_id, _MEMBERS, None).items,
        lambda: conversations.with_assignees([item]),
    )
    names = {user_id: member.name for user_id, member in known.items()}
    can_undo = session.parameters.get("done") in STATUSES and triage.is_undoable(item, session.user_id)
    return page(
        "inbox_item",
        session,
        failure,
        done=_DONE,
        item=item,
        progress=progress,
        project=project,
        repository=repository,
        vendor=vendor,
        names=names,
        events=list_events(item, vendor, names),
        roster=roster,
        user_id=session.user_id,
        comments=[it._replace(text=conversations.shown_text(it, known, FORMER_MEMBER)) for it in item.comments],
        longest_comment=conversations.LONGEST_COMMENT,
        highlight=highlight,
        filters=Filters.read(session.parameters),
        can_undo=can_undo,
        stale=stale,
    )
