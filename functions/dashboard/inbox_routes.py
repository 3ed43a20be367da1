"""The pages of the inbox: its list with decisions on many findings at once, and the page of a finding."""

from urllib.parse import parse_qsl

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.findings.changes import Outcome
from controlplane.findings.inbox import StaleVersion
from controlplane.findings.lists import MOST_READ
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import inbox, triage
from dashboard.forms import NotAcceptable
from dashboard.highlighting import highlight
from dashboard.inbox import Filters, FoundItem
from dashboard.organizations import get_organization, is_admin
from dashboard.page_parameters import InboxItemPath, OrganizationSlug, SignedIn, Submits, SubmitsMany
from dashboard.pages import address, page, redirect
from dashboard.triage import Decision

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# The messages with which a finding's page confirms a form, after the redirect.
_DONE = {
    "open": "The finding is open again.",
    "accepted": "The finding is accepted.",
    "dismissed": "The finding is dismissed.",
    "resolved": "The finding is resolved.",
    "undo": "The finding has its former status again.",
    "issue": "The finding has an issue now.",
    "pending": "GitHub is being asked. Reload this page in a moment.",
    "approved": "The vendor is approved for this project.",
    "ignored": "The vendor is ignored for this project.",
}


@router.get("/organizations/{organizationSlug}/inbox", operation_id="showInbox")
async def show_inbox(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Lists the organization's findings, most recently updated first. The query has the filters and the cursor."""
    return _inbox(session, get_organization(organization_slug, session.account))


@router.post("/organizations/{organizationSlug}/inbox", operation_id="decideFindings")
async def decide_findings(session: SubmitsMany, organization_slug: OrganizationSlug) -> Response:
    """Changes the status of up to 50 findings, or restores their former status. Shows the outcome above the list.

    Doesn't redirect, because the outcome of each finding is shown. Sending the form again changes nothing.
    """
    try:
        decision, chosen = Decision.read(session.form), triage.read_chosen(session.form)
    except NotAcceptable as failure:
        return _inbox(session, get_organization(organization_slug, session.account), failure)
    organization, items = triage.find_chosen(organization_slug, chosen, session.account)
    outcomes = triage.decide_all(chosen, items, decision, session.user_id)
    return _inbox(session, organization, decision=decision, outcomes=outcomes)


@router.get("/organizations/{organizationSlug}/inbox/{itemId}", operation_id="showFinding")
async def show_finding(session: SignedIn, organization_slug: OrganizationSlug, item_id: InboxItemPath) -> Response:
    """Shows a finding with its evidence, its fix, and its history."""
    return _finding(session, inbox.get_item(organization_slug, item_id, session.account))


@router.post("/organizations/{organizationSlug}/inbox/{itemId}", operation_id="decideFinding")
async def decide_finding(session: Submits, organization_slug: OrganizationSlug, item_id: InboxItemPath) -> Response:
    """Changes the status of a finding, or restores its former one."""
    found = inbox.get_item(organization_slug, item_id, session.account)
    try:
        decision = Decision.read(session.form)
    except NotAcceptable as failure:
        return _finding(session, found, failure)
    try:
        triage.decide(found.item, decision, session.form.get("version", ""), session.user_id)
    except StaleVersion as failure:
        current = inbox.get_item(organization_slug, item_id, session.account)
        return _finding(session, current, failure, stale=decision)
    except triage.NothingToUndo as failure:
        return _finding(session, found, failure)
    return _done(session, organization_slug, item_id, decision.action)


@router.post("/organizations/{organizationSlug}/inbox/{itemId}/issue", operation_id="openIssue")
async def open_issue(session: Submits, organization_slug: OrganizationSlug, item_id: InboxItemPath) -> Response:
    """Opens an issue for a finding on GitHub, or links the one that the form names."""
    found = inbox.get_item(organization_slug, item_id, session.account)
    try:
        is_open = await triage.open_issue(found, session.user_id, session.form.get("existing", "").strip() or None)
    except ApiError as failure:
        return _finding(session, found, failure)
    return _done(session, organization_slug, item_id, "issue" if is_open else "pending")


@router.post("/organizations/{organizationSlug}/inbox/{itemId}/vendor", operation_id="decideFindingVendor")
async def decide_vendor(session: Submits, organization_slug: OrganizationSlug, item_id: InboxItemPath) -> Response:
    """Approves or ignores the vendor of a finding on a website."""
    found = inbox.get_item(organization_slug, item_id, session.account)
    try:
        state = triage.decide_vendor(found, session.form.get("decision", ""), session.user_id)
    except NotAcceptable as failure:
        return _finding(session, found, failure)
    return _done(session, organization_slug, item_id, state)


def _query(session: WebSession) -> dict[str, str]:
    return dict(parse_qsl(session.query))  # decodable, and without repeated names: the route class has checked it


def _done(session: WebSession, organization_slug: str, item_id: str, done: str) -> Response:
    query = Filters.read(_query(session)).query(done=done)
    return redirect(address(f"/organizations/{organization_slug}/inbox/{item_id}{query}"))


def _inbox(
    session: WebSession,
    organization: Membership,
    failure: ApiError | None = None,
    *,
    decision: Decision | None = None,
    outcomes: list[Outcome] | None = None,
) -> Response:
    query, outcomes = _query(session), outcomes or []
    shown = inbox.list_inbox(organization, Filters.read(query), query.get("cursor"), triage.people_of(outcomes))
    return page(
        "inbox",
        session,
        failure=failure,
        **shown._asdict(),
        has_cursor="cursor" in query,
        project_options=[(project.project_id, project.name) for project in shown.projects],
        repository_options=[(name, name) for name in shown.repositories],
        decision=decision,
        outcomes=outcomes,
        reason=session.form.get("reason", "") if failure else "",
        most_read=MOST_READ,
        per_page=inbox.ITEMS_PER_PAGE,
    )


def _finding(
    session: WebSession, found: FoundItem, failure: ApiError | None = None, stale: Decision | None = None
) -> Response:
    query = _query(session)
    shown = inbox.get_shown(found)
    return page(
        "inbox_item",
        session,
        failure=failure,
        done=_DONE.get(query.get("done", "")),
        **shown._asdict(),
        events=inbox.list_events(shown),
        highlight=highlight,
        filters=Filters.read(query),
        is_admin=is_admin(found.organization),
        can_undo=query.get("done") in inbox.STATUSES and triage.is_undoable(found.item, session.user_id),
        stale=stale,
        reason=session.form.get("reason", "") if failure else "",
        existing=session.form.get("existing", "") if failure else "",
    )
