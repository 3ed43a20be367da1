"""Code host repositories that are connected to an organization, and the projects linked to them.

Only the operator connects, links, and disconnects. The repository's item also names its requested or running scan: see
`store.scans`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane.core import clock, ids
from controlplane.store import deletions, keys
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import (
    Check,
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    Put,
    StoreError,
    Throttled,
    Update,
    table,
)

MAX_LINKS = 10
_TRIES = 8


class UnknownRepository(StoreError):
    """The repository doesn't exist or was disconnected."""


class ProjectGone(StoreError):
    """The project to link doesn't exist or was deleted."""


class LinkLimitReached(StoreError):
    """The repository has the maximum number of linked projects."""


class NotLinked(StoreError):
    """The project is not linked to the repository."""


class Link(NamedTuple):
    """A project built from the repository. A branch of None means the repository's default branch."""

    project_id: str
    production_branch: str | None
    root_directory: str | None
    pull_request_scans_enabled: bool


class RepositoryItem(NamedTuple):
    repository_id: str
    organization_id: str
    installation_id: int
    owner: str
    name: str
    html_url: str
    default_branch: str | None
    visibility: str
    connected_at: str
    links: tuple[Link, ...]
    preview_used: bool

    @property
    def location(self) -> ids.Located:
        located = ids.locate(ids.REPOSITORY, self.repository_id)
        if located is None:
            raise LookupError("a repository's item holds no repository id")
        return located

    def find_link(self, project_id: str) -> Link | None:
        return next((link for link in self.links if link.project_id == project_id), None)


class RepositoryPage(NamedTuple):
    repositories: list[RepositoryItem]
    next_sk: str | None


class HostedRepository(NamedTuple):
    """A repository as the code host describes it."""

    installation_id: int
    owner: str
    name: str
    html_url: str
    default_branch: str | None
    visibility: str


def read_repository(item: Mapping[str, Any]) -> RepositoryItem:
    """Returns the repository that the stored attributes describe."""
    return RepositoryItem(
        item["repositoryId"],
        item["organizationId"],
        item["installationId"],
        item["owner"],
        item["name"],
        item["htmlUrl"],
        item["defaultBranch"],
        item["visibility"],
        item["connectedAt"],
        tuple(_read_link(link) for link in item["links"]),
        item["previewUsed"],
    )


def _read_link(link: Mapping[str, Any]) -> Link:
    return Link(link["projectId"], link["productionBranch"], link["rootDirectory"], link["pullRequestScansEnabled"])


def _written(links: Iterable[Link]) -> list[dict[str, Any]]:
    return [
        {
            "projectId": link.project_id,
            "productionBranch": link.production_branch,
            "rootDirectory": link.root_directory,
            "pullRequestScansEnabled": link.pull_request_scans_enabled,
        }
        for link in links
    ]


def list_repositories(organization_id: str, limit: int, after: str | None) -> RepositoryPage:
    """Returns one page of the organization's repositories, the most recently connected first."""
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.REPOSITORY_PREFIX,
        newest_first=True,
        limit=limit,
        after=after,
    )
    return RepositoryPage([read_repository(item) for item in page.items], page.next_sk)


def find_linked_projects(repositories: Iterable[RepositoryItem]) -> dict[str, ProjectItem]:
    """Returns the projects linked to these repositories, by id, without deleted ones."""
    located = {
        link.project_id: ids.locate(ids.PROJECT, link.project_id)
        for repository in repositories
        for link in repository.links
    }
    items = table.batch_get([keys.project(*place) for place in located.values() if place])
    return {item["projectId"]: ProjectItem.from_item(item) for item in items if item}


def get_repository(repository_id: str) -> RepositoryItem:
    """Returns the repository, with a consistent read. Raises UnknownRepository."""
    located = ids.locate(ids.REPOSITORY, repository_id)
    item = table.get(keys.repository(*located)) if located else None
    if item is None:
        raise UnknownRepository
    return read_repository(item)


def connect_repository(organization_id: str, hosted: HostedRepository) -> RepositoryItem:
    """Connects the repository to the organization, or updates its description if it is already connected."""
    name_key = keys.repository_name(organization_id, hosted.owner, hosted.name)
    local = ids.new_local()
    repository_id = ids.owned(ids.REPOSITORY, organization_id, local)
    item = {
        **keys.repository(organization_id, local)._asdict(),
        "repositoryId": repository_id,
        "organizationId": organization_id,
        **_described(hosted),
        "connectedAt": clock.timestamp(),
        "links": [],
        "previewUsed": False,
    }
    absent = "attribute_not_exists(pk)"
    legs: dict[str, Leg] = {
        "organization": Check(keys.organization(organization_id), "attribute_exists(pk)"),
        "name": Put({**name_key._asdict(), "repositoryId": repository_id}, absent),
        "repository": Put(item, absent),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        connected = refusal.items.get("name")
        if connected is None:
            raise
        if connected["repositoryId"] != repository_id:  # otherwise our own write, whose response was lost
            return _describe_anew(connected["repositoryId"], hosted)
    return read_repository(item)


def _described(hosted: HostedRepository) -> dict[str, Any]:
    return {
        "installationId": hosted.installation_id,
        "owner": hosted.owner,
        "name": hosted.name,
        "htmlUrl": hosted.html_url,
        "defaultBranch": hosted.default_branch,
        "visibility": hosted.visibility,
    }


def _describe_anew(repository_id: str, hosted: HostedRepository) -> RepositoryItem:
    values = _described(hosted)
    located = ids.locate(ids.REPOSITORY, repository_id)
    if located is None:
        raise LookupError("a name points to no repository")
    change = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
    return read_repository(table.update(Update(keys.repository(*located), change, "attribute_exists(pk)", values)))


def link_project(repository_id: str, link: Link) -> RepositoryItem:
    """Links the project or updates its link. Raises UnknownRepository, ProjectGone, LinkLimitReached."""
    project = ids.locate(ids.PROJECT, link.project_id)
    if project is None or not repository_id[4:].startswith(project.organization_id[4:]):
        raise ProjectGone

    def linked(repository: RepositoryItem) -> tuple[Link, ...]:
        links = repository.links
        others = [other for other in links if other.project_id != link.project_id]
        if len(others) >= MAX_LINKS:
            # Links to deleted projects are removed in the background and don't count toward the limit until then.
            existing = find_linked_projects([repository])
            others = [other for other in others if other.project_id in existing]
        if len(others) >= MAX_LINKS:
            raise LinkLimitReached
        place = next((number for number, other in enumerate(links) if other.project_id == link.project_id), len(others))
        return (*others[:place], link, *others[place:])

    for _ in range(_TRIES):
        before = get_repository(repository_id)
        after = linked(before)
        legs: dict[str, Leg] = {
            "project": Check(keys.project(*project), "attribute_exists(pk)"),
            "repository": _relinked(before, after),
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg == "project":
                raise ProjectGone from None
        else:
            return before._replace(links=after)
    raise Throttled("the repository keeps changing")


def unlink_project(repository_id: str, project_id: str) -> RepositoryItem:
    """Removes the project's link. Returns the updated repository. Raises UnknownRepository, NotLinked."""
    for _ in range(_TRIES):
        before = get_repository(repository_id)
        links = tuple(link for link in before.links if link.project_id != project_id)
        if links == before.links:
            raise NotLinked
        try:
            return read_repository(table.update(_relinked(before, links)))
        except ConditionFailed as failure:
            if failure.item and read_repository(failure.item).links == links:
                return read_repository(failure.item)  # our own write, whose response was lost
    raise Throttled("the repository keeps changing")


def disconnect_repository(repository_id: str) -> RepositoryItem:
    """Disconnects the repository. Returns the repository as it was. Raises UnknownRepository.

    Its scans end and are deleted in the background with their findings and inbox items. Connecting it again creates a
    new repository.
    """
    repository = get_repository(repository_id)
    name = keys.repository_name(repository.organization_id, repository.owner, repository.name)
    legs: dict[str, Leg] = {
        "repository": Delete(keys.repository(*repository.location), "attribute_exists(pk)"),
        "name": Delete(name, "attribute_not_exists(pk) OR #repositoryId = :id", {"id": repository_id}),
        "deletion": deletions.work_item(repository_id),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg != "repository":
            raise
        raise UnknownRepository from None
    return repository


def _relinked(before: RepositoryItem, links: tuple[Link, ...]) -> Update:
    values = {"links": _written(links), "seen": _written(before.links)}
    return Update(keys.repository(*before.location), "SET #links = :links", "#links = :seen", values)
