"""The pages of connected repositories: their list, their links to projects, and disconnecting one."""

from collections.abc import Mapping

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.code_host.github import people
from controlplane.code_host.items import RepositoryItem
from controlplane.organizations.store import Membership
from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import organizations, repositories
from dashboard.forms import NotAcceptable
from dashboard.page_parameters import Done, OrganizationSlug, RepositoryPath, SignedIn, Submits, Text
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE = {
    "linked": "The project is linked.",
    "changed": "The link is changed.",
    "unlinked": "The project is unlinked.",
    "disconnected": "The repository is disconnected.",
}


@router.get("/organizations/{organizationSlug}/repositories", operation_id="showRepositories")
async def show_repositories(
    session: SignedIn, organization_slug: OrganizationSlug, after: Text = None, done: Done = ""
) -> Response:
    """Lists the connected repositories. Admins and owners can connect others."""
    organization = organizations.get_organization(organization_slug, session.account)
    is_admin = organizations.is_admin(organization)
    connected = repositories.list_connected(organization.organization_id, after)
    return page(
        "repositories",
        session,
        done=_DONE.get(done),
        organization=organization,
        repositories=connected.repositories,
        next_after=connected.repositories[-1].repository_id if connected.next_sk else None,
        is_admin=is_admin,
        is_offered=is_admin and people.is_configured(),
    )


@router.get("/organizations/{organizationSlug}/repositories/{repositoryId}", operation_id="showRepository")
async def show_repository(
    session: SignedIn, organization_slug: OrganizationSlug, repository_id: RepositoryPath, done: Done = ""
) -> Response:
    """Shows the repository's links to projects. Admins and owners can change them."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.account)
    return _repository(session, organization, repository, done=_DONE.get(done))


@router.post("/organizations/{organizationSlug}/repositories/{repositoryId}/links", operation_id="saveRepositoryLink")
async def save_link(session: Submits, organization_slug: OrganizationSlug, repository_id: RepositoryPath) -> Response:
    """Links a project, or changes or removes its link."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.account)
    change = repositories.unlink if session.form.get("action") == "unlink" else repositories.save_link
    try:
        done = change(organization, repository, session.form, session.user_id)
    except NotAcceptable as failure:
        return _repository(session, organization, repository, failure=failure, entered=session.form)
    return redirect(_address(organization, f"/{repository.repository_id}?done={done}"))


@router.get(
    "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect", operation_id="showDisconnection"
)
async def show_disconnection(
    session: SignedIn, organization_slug: OrganizationSlug, repository_id: RepositoryPath
) -> Response:
    """Explains what disconnecting the repository deletes."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.account)
    organizations.require_admin(organization)
    return page("repository_disconnect", session, organization=organization, repository=repository)


@router.post(
    "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect", operation_id="confirmDisconnection"
)
async def confirm_disconnection(
    session: Submits, organization_slug: OrganizationSlug, repository_id: RepositoryPath
) -> Response:
    """Disconnects the repository."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.account)
    repositories.disconnect(organization, repository, session.user_id)
    return redirect(_address(organization, "?done=disconnected"))


def _address(organization: Membership, rest: str) -> str:
    return address(f"/organizations/{organization.slug}/repositories{rest}")


def _repository(
    session: WebSession,
    organization: Membership,
    repository: RepositoryItem,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
    entered: Mapping[str, str] | None = None,
) -> Response:
    shown = repositories.get_shown(organization, repository)
    next_scans = {link.project_id: link.next_scheduled_scan(repository.repository_id) for link, _ in shown.links}
    return page(
        "repository",
        session,
        failure=failure,
        done=done,
        **shown._asdict(),
        entered=entered or {},
        forms={link.project_id: repositories.form_of(link) for link, _ in shown.links},
        is_admin=organizations.is_admin(organization),
        next_scans={project: clock.timestamp(it) for project, it in next_scans.items() if it is not None},
        schedules=repositories.SCHEDULES,
        priorities=repositories.PRIORITIES,
    )
