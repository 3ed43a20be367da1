"""The overview of an organization: what is left to set up, and what has happened lately."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

from fastapi import Response

from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.github.app_pages import is_configured
from controlplane.findings import inbox, vendors
from controlplane.findings.inbox import InboxPage
from controlplane.findings.items import Status
from controlplane.organizations.store import Membership, NotMember, UnknownOrganization
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import read_all
from controlplane.projects import store as projects
from controlplane.scans import reads
from controlplane.scans.items import ScanItem
from dashboard.pages import page
from dashboard.parameters import MemberSees

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# The category of consent libraries among the vendors of an inventory.
CONSENT_CATEGORY = "consent-management"
_LATEST = 5
# Counted exactly up to this number.
_FINDINGS = 50
_REVIEWED: tuple[Status, ...] = ("accepted", "dismissed", "resolved")


class Step(NamedTuple):
    """A step from an empty organization to reviewed findings. `path` is relative to the organization's pages.

    of_members: whether members can take it.
    """

    name: str
    path: str
    is_done: bool
    of_members: bool = True


@router.get("/organizations/{organizationSlug}")
async def show_organization(session: MemberSees) -> Response:
    """Shows what is left to set up, the open findings, and the latest scans and projects."""
    here = session.organization
    role = "a member" if here.role == "member" else f"an {here.role}"
    done = {"created": "Your organization is ready.", "joined": f"You are now {role} of {here.name}."}
    return page("organization", session, done=done, **_get_overview(here))


def _get_overview(organization: Membership) -> dict[str, Any]:
    """Returns the page's content, in two round trips. Raises NotMember if it was deleted in the meantime.

    findings: the number of open ones by priority, or None if there are more than are counted. steps: empty if all of
    them are done. Members see only what is left for them to do.
    """
    own = organization.organization_id
    try:
        (stored, credit), made, connected, scanned, opened, *reviewed = read_all(
            lambda: billing.get_billing(own),
            lambda: projects.list_projects(own, _LATEST, None),
            lambda: repositories.list_repositories(own, 1, None),
            lambda: reads.list_scans(own, _LATEST, None),
            lambda: inbox.list_items(own, "open", _FINDINGS, None),
            *((lambda status=status: inbox.list_items(own, status, 1, None)) for status in _REVIEWED),
        )
    except UnknownOrganization:
        raise NotMember from None
    completed = any(scan.status == "completed" for scan in scanned.items)
    has_source = bool(connected.items) or stored.keys > 0
    # The page with the code that installs the consent library.
    consent = f"/projects/{made.items[0].slug}/consent" if made.items else "/projects/new"
    steps = [
        Step("source", "/github" if is_configured() else "/repositories", has_source, of_members=False),
        Step("project", "/projects/new", stored.projects > 0),
        Step("scan", "/scans", bool(scanned.items), of_members=bool(connected.items)),
        Step("consent", consent, _has_consent([opened, *reviewed], scanned.items)),
        Step("review", "/inbox", any(page.items for page in reviewed) or (completed and not opened.items)),
    ]
    if all(step.is_done for step in steps):
        steps = []
    elif organization.role == "member":
        steps = [step for step in steps if step.of_members and not step.is_done]
    counted = Counter(item.priority for item in opened.items)
    return {
        "plan": PLANS[stored.plan],
        "credits": credit.credits,
        "projects_count": stored.projects,
        "projects": made.items,
        "scans": scanned.items,
        "findings": None if opened.next_position else {it: counted[it] for it in get_args(Priority)},
        "steps": steps,
    }


def _has_consent(findings: Iterable[InboxPage], scanned: Iterable[ScanItem]) -> bool:
    """Returns whether the consent library reported a vendor on a website, or a scan lists such a library."""
    if any(vendors.is_detection(item) for page in findings for item in page.items):
        return True
    inventories = reads.list_readable_inventories([scan for scan in scanned if scan.status == "completed"])
    return any(vendor.category == CONSENT_CATEGORY for inventory in inventories for vendor in inventory.vendors)
