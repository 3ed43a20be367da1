"""The pages of repositories: their list, their links to projects, disconnecting one, and connecting others."""

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.code_host import repositories
from controlplane.code_host.github.app_pages import is_configured
from controlplane.code_host.github.connecting import GrantedRepository
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.repositories import UnknownRepository
from controlplane.organizations import store as organizations
from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError, Forbidden, NotFound
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from dashboard.code_host import connecting, forms
from dashboard.code_host.connecting import Offers
from dashboard.forms import ONCE, NotAcceptable
from dashboard.pages import page, redirect, redirect_within
from dashboard.parameters import AdminSees, AdminSubmits, MemberSees, RepositoryPath, SignedIn

router = ControlRouter(tags=["Pages"], include_in_schema=False)

PER_PAGE = 50
_PROJECTS = 100
_DONE = {
    "linked": "The project is linked. Start its first scan below.",
    "not-started": "The project is created and linked, but no scan started, because one of this repository is running. "
    "Start it once that one has ended.",
    "changed": "The link is changed.",
    "unlinked": "The project is unlinked.",
    "disconnected": "The repository is disconnected.",
}


@router.get("/organizations/{organizationSlug}/repositories")
async def show_repositories(session: MemberSees) -> Response:
    """Lists the connected repositories. Admins and owners can connect others."""
    organization_id = session.organization.organization_id
    codec = CursorCodec(session.parameters.get("after"), "showRepositories", organization_id)
    connected = repositories.list_repositories(organization_id, PER_PAGE, codec.after, consistent=True)
    return page(
        "repositories",
        session,
        done=_DONE,
        repositories=connected.items,
        next_cursor=codec.cursor(connected.next_sk),
        is_offered=session.is_admin and is_configured(),
    )


@router.get("/organizations/{organizationSlug}/repositories/{repositoryId}")
async def show_repository(session: MemberSees, repository_id: RepositoryPath) -> Response:
    """Shows the repository's links to projects. Admins and owners can change them."""
    return _repository(session, _get_repository(session, repository_id))


@router.post("/organizations/{organizationSlug}/repositories/{repositoryId}/links")
async def save_repository_link(session: AdminSubmits, repository_id: RepositoryPath) -> Response:
    """Links a project, or changes or removes its link."""
    repository = _get_repository(session, repository_id)
    change = forms.unlink if session.form.get("action") == "unlink" else forms.save_link
    try:
        done = change(repository, session.form, session.user_id)
    except NotAcceptable as failure:
        return _repository(session, repository, failure)
    return redirect_within(session.organization, f"/repositories/{repository.repository_id}?done={done}")


@router.get("/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect")
async def show_disconnection(session: AdminSees, repository_id: RepositoryPath) -> Response:
    """Explains what disconnecting the repository deletes."""
    return page("repository_disconnect", session, repository=_get_repository(session, repository_id))


@router.post("/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect")
async def confirm_disconnection(session: AdminSubmits, repository_id: RepositoryPath) -> Response:
    """Disconnects the repository."""
    repositories.disconnect_repository(session.own(RepositoryId, repository_id, UnknownRepository), session.user_id)
    return redirect_within(session.organization, "/repositories?done=disconnected")


@router.get("/organizations/{organizationSlug}/github")
async def connect_github(session: AdminSees) -> Response:
    """Leads to GitHub: to install our App or, with `installed`, to confirm who the person is.

    With `new`, the request follows a form, which can't redirect to another origin. So a page leads on.
    """
    is_installed = "installed" in session.parameters
    target = connecting.begin(session.organization.organization_id, session.secret, is_installed=is_installed)
    return page("github_next", session, leads_on_to=target) if "new" in session.parameters else redirect(target)


@router.get("/github/callback")
async def finish_github(session: SignedIn) -> Response:
    """Offers the repositories that the person may connect. A single one is chosen already.

    Without a code, GitHub wasn't asked who the person is: redirects there, and back to this page.
    """
    given = session.parameters
    state, number = connecting.open_state(given.get("state", ""), session.secret), given.get("installation_id", "")
    installation_id = int(number) if number.isascii() and number.isdigit() and len(number) < 17 else None
    session.enter(organizations.find_membership(session.user_id, state.organization_id), "admin")
    if "code" not in given:
        return redirect(connecting.confirm(state, installation_id, session.secret))
    offers = connecting.finish(state, given["code"], installation_id, session.secret)
    if len(offers.repositories) == 1:
        return _import(session, offers, offers.repositories[0])
    return _offers(session, offers)


@router.post("/organizations/{organizationSlug}/repositories")
async def connect_repository(session: AdminSubmits) -> Response:
    """Connects the chosen repository, links it to a new or an existing project, and leads to its first scan.

    Changes nothing for the button that chooses a repository, which leads to that form, or another one.
    """
    from dashboard.code_host import importing  # noqa: PLC0415 (60 ms that only this form needs)

    organization_id, given = session.organization.organization_id, session.form
    offers = connecting.open_offers(organization_id, given.get("offers", ""), session.secret)
    if not given.get("repository"):
        return _offers(session, offers)
    chosen = offers.choose(given["repository"])
    if ONCE not in given:
        return _import(session, offers, chosen)
    try:
        path = importing.import_repository(session, chosen)
    except (Forbidden, NotFound):
        raise
    except ApiError as failure:
        return _import(session, offers, chosen, failure)
    return redirect_within(session.organization, await importing.find_started(path))


def _get_repository(session: WebSession, text: str) -> RepositoryItem:
    return repositories.get_repository(session.own(RepositoryId, text, UnknownRepository))


def _repository(session: WebSession, repository: RepositoryItem, failure: ApiError | None = None) -> Response:
    """Shows the repository with its links, and up to 100 other projects of the organization."""
    linked, own = read_both(
        lambda: repositories.find_linked_projects([repository]),
        lambda: projects.list_projects(repository.organization_id, _PROJECTS, None).items,
    )
    links = [(link, linked[link.project_id]) for link in repository.links if link.project_id in linked]
    return page(
        "repository",
        session,
        failure,
        done=_DONE,
        repository=repository,
        links=links,
        unlinked=[it for it in own if it.project_id not in linked],
        forms={link.project_id: forms.fields_of(link) for link, _ in links},
        next_scans={link.project_id: _next_scan(repository, link) for link, _ in links},
        schedules=forms.SCHEDULES,
        priorities=forms.PRIORITIES,
    )


def _next_scan(repository: RepositoryItem, link: Link) -> str | None:
    seconds = link.next_scheduled_scan(repository.repository_id)
    return None if seconds is None else clock.timestamp(seconds)


def _offers(session: WebSession, offers: Offers) -> Response:
    """Lists the offered repositories, with the connected ones of the same names."""
    connected = forms.list_choices(session.organization.organization_id)
    by_name = {it.full_name.lower(): it for it in connected}
    entries = [(it.hosted, by_name.get(f"{it.hosted.owner}/{it.hosted.name}".lower())) for it in offers.repositories]
    return page("github", session, entries=entries, offers=offers.sealed)


def _import(
    session: WebSession, offers: Offers, chosen: GrantedRepository, failure: ApiError | None = None
) -> Response:
    """Shows the form that scans the chosen repository, with suggestions, or what was entered if it failed."""
    from dashboard.code_host import importing  # noqa: PLC0415 (see connect_repository)

    organization_id = session.organization.organization_id
    organization, own = read_both(
        lambda: organizations.get_organization(organization_id),
        lambda: projects.list_projects(organization_id, _PROJECTS, None).items,
    )
    return page(
        "repository_new",
        session,
        failure,
        hosted=chosen.hosted,
        offers=offers,
        plan=PLANS[organization.plan],
        is_full=organization.projects >= PLANS[organization.plan].projects,
        projects=own,
        fields=session.form if failure else importing.suggest(chosen, organization),
    )
