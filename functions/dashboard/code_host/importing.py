"""The form that scans a repository of GitHub: connects it, creates its project, links both, and starts the first scan.

Each step is a transaction of its own. The project is created after the repository is connected, and no step is undone:
if a later one fails, the page says what was made.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from controlplane.access.web_session import WebSession
from controlplane.code_host import installations, repositories
from controlplane.code_host.github.connecting import GrantedRepository
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.repositories import AlreadyLinked, ProjectGone, UnknownRepository
from controlplane.organizations.items import OrganizationItem
from controlplane.platform.core.errors import RoleRequired
from controlplane.platform.core.ids import ProjectId, ScanRequestId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.table.table import Leg
from controlplane.projects import rules
from controlplane.scans import reads, requests
from controlplane.scans.requests import RepositoryNotLinked, ScanInProgress
from dashboard import once
from dashboard.code_host.forms import read_project
from dashboard.forms import NotAcceptable
from dashboard.projects import forms as project_forms
from dashboard.projects.forms import NewProject

_SCANS = "/scans/"
_FULL = f"A repository can have {repositories.MAX_LINKS} linked projects. Choose one of them, or unlink one first."


def suggest(chosen: GrantedRepository, organization: OrganizationItem) -> dict[str, str]:
    """Returns the form's fields for this repository. A website is suggested if a project can have its address."""
    candidates = (_host_of(chosen.homepage), chosen.hosted.name if "." in chosen.hosted.name else "")
    fields = {
        "name": chosen.hosted.name,
        "websites": next((it for it in candidates if it and _is_website(it)), ""),
        "scan_on_push": "yes",
    }
    if PLANS[organization.plan].pull_request_scans:
        fields["pull_request_scans_enabled"] = "yes"
    return fields


def import_repository(session: WebSession, chosen: GrantedRepository) -> str:
    """Does what the form asks for. Returns the path of the organization's page that shows how far it came.

    Raises NotAcceptable, UnsupportedRegion, InstallationTaken, ProjectLimitReached, RoleRequired, and the errors of
    `create_once`.
    """
    organization_id, form = session.organization.organization_id, session.form
    target = read_project(form) if form.get("project_id") else project_forms.read_new_project(form)

    def run(legs: Mapping[str, Leg]) -> str:
        repository = installations.connect_granted(organization_id, chosen.hosted, session.user_id)
        if isinstance(target, NewProject):
            _require_room(repository)
            project = project_forms.create_project(organization_id, target, legs)
            try:
                linked = _link(repository, project.project_id, session, {})
            except (ProjectGone, UnknownRepository, RoleRequired, NotAcceptable):
                return f"/projects/{project.slug}?done=not-linked"
            return _start(linked, project.project_id, session.user_id)
        try:
            linked = _link(repository, target, session, legs)
        except ProjectGone:
            raise NotAcceptable("This project doesn't exist anymore. Choose another one.") from None
        return _start(linked, target, session.user_id)

    return once.create_once(session, "importRepository", run)


async def find_started(path: str) -> str:
    """Returns the scan's page instead of its request's, as soon as the scan exists."""
    if not path.startswith(_SCANS):
        return path
    request_id = ScanRequestId.stored(path.removeprefix(_SCANS))
    outcome, _ = await reads.wait_for_request(request_id)
    return f"{_SCANS}{outcome.scan.scan_id if outcome.scan is not None else request_id}?done=started"


def _host_of(homepage: str) -> str:
    """Returns the host, or an empty text if the homepage, which can be any text, isn't an address."""
    try:
        return urlsplit(homepage).netloc
    except ValueError:
        return ""


def _is_website(text: str) -> bool:
    try:
        return bool(rules.parse_addresses([], [text]))
    except rules.UnusableOrigin:
        return False


def _require_room(repository: RepositoryItem) -> None:
    """Raises NotAcceptable if the repository has as many linked projects as it can have. Deleted ones don't count."""
    most = repositories.MAX_LINKS
    if len(repository.links) >= most and len(repositories.find_linked_projects([repository])) >= most:
        raise NotAcceptable(_FULL)


def _link(
    repository: RepositoryItem, project_id: ProjectId, session: WebSession, legs: Mapping[str, Leg]
) -> RepositoryItem:
    """Links the project. Keeps the link that it may have. Raises ProjectGone, UnknownRepository, RoleRequired.

    Raises NotAcceptable if the repository has too many linked projects.
    """
    form = session.form
    link = Link(project_id, None, None, "pull_request_scans_enabled" in form, "scan_on_push" in form)
    try:
        return repositories.create_link(repository, link, session.user_id, legs)
    except AlreadyLinked:
        return repositories.get_repository(repository.repository_id)
    except repositories.LinkLimitReached:
        raise NotAcceptable(_FULL) from None


def _start(repository: RepositoryItem, project_id: ProjectId, user_id: str) -> str:
    try:
        request, _ = requests.request_scan(repository, project_id, user_id, {})
    except (ScanInProgress, UnknownRepository, RepositoryNotLinked):
        return f"/repositories/{repository.repository_id}?done=not-started"
    return f"{_SCANS}{request.request_id}"
