"""The pages of connected repositories: their list, their links to projects, and disconnecting one."""

from collections.abc import Mapping

from fastapi import Response

from controlplane.core import clock
from controlplane.core.errors import ApiError
from controlplane.core.roles import RANK
from controlplane.github import people
from controlplane.http.app import ControlRouter
from controlplane.http.web_session import WebSession
from controlplane.store.organizations import Membership
from controlplane.store.repositories import RepositoryItem
from dashboard import organizations, repositories
from dashboard.page_parameters import OrganizationSlug, RepositoryPath, SignedIn, Submits
from dashboard.pages import page

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations/{organizationSlug}/repositories", operation_id="showRepositories")
async def show_repositories(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Lists the connected repositories. Admins and owners can connect others."""
    return _repositories(session, organizations.get_organization(organization_slug, session.user_id))


@router.get("/organizations/{organizationSlug}/repositories/{repositoryId}", operation_id="showRepository")
async def show_repository(
    session: SignedIn, organization_slug: OrganizationSlug, repository_id: RepositoryPath
) -> Response:
    """Shows the repository's links to projects. Admins and owners can change them."""
    return _repository(session, *repositories.get_repository(organization_slug, repository_id, session.user_id))


@router.post("/organizations/{organizationSlug}/repositories/{repositoryId}/links", operation_id="saveRepositoryLink")
async def save_link(session: Submits, organization_slug: OrganizationSlug, repository_id: RepositoryPath) -> Response:
    """Links a project, or changes or removes its link."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.user_id)
    change = repositories.unlink if session.form.get("action") == "unlink" else repositories.save_link
    try:
        updated, done = change(organization, repository, session.form, session.user_id)
    except repositories.NotAcceptable as failure:
        return _repository(session, organization, repository, failure=failure, entered=session.form)
    return _repository(session, organization, updated, done=done)


@router.get(
    "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect", operation_id="showDisconnection"
)
async def show_disconnection(
    session: SignedIn, organization_slug: OrganizationSlug, repository_id: RepositoryPath
) -> Response:
    """Explains what disconnecting the repository deletes."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.user_id)
    organizations.require_admin(organization)
    return page("repository_disconnect", session, organization=organization, repository=repository)


@router.post(
    "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect", operation_id="confirmDisconnection"
)
async def confirm_disconnection(
    session: Submits, organization_slug: OrganizationSlug, repository_id: RepositoryPath
) -> Response:
    """Disconnects the repository."""
    organization, repository = repositories.get_repository(organization_slug, repository_id, session.user_id)
    repositories.disconnect(organization, repository, session.user_id)
    return _repositories(session, organization, done=f"{repository.owner}/{repository.name} is disconnected.")


def _repositories(session: WebSession, organization: Membership, done: str | None = None) -> Response:
    is_admin = RANK[organization.role] >= RANK["admin"]
    return page(
        "repositories",
        session,
        done=done,
        organization=organization,
        repositories=repositories.list_connected(organization.organization_id),
        is_admin=is_admin,
        is_offered=is_admin and people.is_configured(),
    )


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
        is_admin=RANK[organization.role] >= RANK["admin"],
        next_scans={project: clock.timestamp(it) for project, it in next_scans.items() if it is not None},
        schedules=repositories.SCHEDULES,
        priorities=repositories.PRIORITIES,
    )
