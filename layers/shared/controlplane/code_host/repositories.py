"""Code host repositories that are connected to an organization, and the projects linked to them."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from controlplane.code_host.items import HostedRepository, Link, LinkSettings, RepositoryItem
from controlplane.organizations.store import admin_check
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, NotFound, RoleRequired, known
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.queues import comparisons, deletion_items
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, QueryPage, Recorded, Update, table
from controlplane.projects.items import ProjectItem

MAX_LINKS = 10


class UnknownRepository(NotFound):
    """The repository doesn't exist or was disconnected."""


class ProjectGone(NotFound):
    message = "The repository's organization has no project with this ID."


class LinkLimitReached(Conflict):
    message = f"The repository has the maximum of {MAX_LINKS} linked projects. Unlink one first."

    def __init__(self) -> None:
        super().__init__(details={"reason": "link_limit", "limit": MAX_LINKS})


class NotLinked(NotFound):
    message = "The project isn't linked to this repository. Link it first."


class AlreadyLinked(Conflict):
    message = "The project is already linked to this repository. Change the link with PATCH."


def list_repositories(
    organization_id: str, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[RepositoryItem]:
    """Returns one page of the organization's repositories, the most recently connected first."""
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.REPOSITORY_PREFIX,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    )
    return page.read(RepositoryItem.from_item)


def list_all_repositories(organization_id: str, *, consistent: bool = False) -> list[RepositoryItem]:
    """Returns all repositories of the organization, which are connected one at a time."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.REPOSITORY_PREFIX, consistent=consistent)
    return [RepositoryItem.from_item(item) for item in page.items]


def find_linked_projects(
    repositories: Iterable[RepositoryItem], known: Iterable[ProjectItem] = ()
) -> dict[str, ProjectItem]:
    """Returns the projects linked to these repositories, by id, without deleted ones.

    known: projects that were just read, which aren't read again.
    """
    found: dict[str, ProjectItem] = {project.project_id: project for project in known}
    project_ids = dict.fromkeys(link.project_id for repository in repositories for link in repository.links)
    missing = [project_id for project_id in project_ids if project_id not in found]
    items = table.batch_get([keys.project(*project_id.location) for project_id in missing])
    return found | {item["projectId"]: ProjectItem.from_item(item) for item in items if item}


def find_repository(repository_id: RepositoryId) -> RepositoryItem | None:
    """Returns the repository, with a consistent read, or None if it doesn't exist."""
    return table.find(keys.repository(*repository_id.location), RepositoryItem.from_item)


def get_repository(repository_id: RepositoryId) -> RepositoryItem:
    """Returns the repository, with a consistent read. Raises UnknownRepository."""
    return known(find_repository(repository_id), UnknownRepository)


def connect_repository(
    organization_id: str, hosted: HostedRepository, extra_legs: Mapping[str, Leg] | None = None
) -> RepositoryItem:
    """Connects the repository to the organization, or updates its description if it is already connected.

    `extra_legs` come first in either transaction. Raises LegFailed if one of them fails, or the organization is gone;
    UnknownRepository if it is disconnected or renamed at the same time.
    """
    repository = RepositoryItem(
        repository_id=RepositoryId.of(organization_id, ids.new_local()),
        **asdict(hosted),
        connected_at=clock.timestamp(),
        links=(),
        preview_used=False,
    )
    name_key = keys.repository_name(organization_id, hosted.owner, hosted.name)
    absent = "attribute_not_exists(pk)"
    legs: dict[str, Leg] = {
        **(extra_legs or {}),
        "organization": Check(keys.organization(organization_id), "attribute_exists(pk)"),
        "name": Put({**name_key._asdict(), "repositoryId": repository.repository_id}, absent),
        "repository": Put(repository.to_item(), absent),
    }
    try:
        table.transact(legs, repository.recorded(Action.REPOSITORY_CONNECT, after=hosted.described))
    except LegFailed as failure:
        if failure.leg != "name":
            raise
        connected = RepositoryId.stored((failure.item or {})["repositoryId"])
        if connected != repository.repository_id:  # if equal, our own write, whose response was lost
            named = Check(name_key, "#repositoryId = :id", {"id": connected})
            return describe(connected, hosted, {**(extra_legs or {}), "name": named})
    return repository


def describe(
    repository_id: RepositoryId, hosted: HostedRepository, extra_legs: Mapping[str, Leg] | None = None
) -> RepositoryItem:
    """Stores the code host's facts about the repository. Its links and scans stay, also if it was renamed.

    extra_legs: those of a person who connects it again; they check its name, and come first. Without them, nothing
    changes if the repository is connected through another installation now. Raises UnknownRepository.
    """
    values = hosted.described

    def update() -> RepositoryItem:
        stored = get_repository(repository_id)
        before, after = {**stored.described, "accessLostAt": stored.access_lost_at}, {**values, "accessLostAt": None}
        if extra_legs is None and (before == after or stored.installation_id != hosted.installation_id):
            return stored
        read = {f"read{name}": value for name, value in stored.described.items()}
        legs: dict[str, Leg] = {
            **(_rename_legs(stored, hosted) if extra_legs is None else extra_legs),
            "repository": Update(
                stored.key,
                f"{set_expression(values)} REMOVE #accessLostAt",
                " AND ".join(f"#{name} = :read{name}" for name in stored.described),
                {**values, **read},
            ),
        }
        errors = dict.fromkeys(("repository", "newName", "formerName"), WriteConflict) | {"name": UnknownRepository}
        table.transact(legs, stored.recorded(Action.REPOSITORY_UPDATE, before=before, after=after), errors)
        return replace(stored, **asdict(hosted), access_lost_at=None)

    return retry_on_conflict(update, "the repository")


def _rename_legs(stored: RepositoryItem, hosted: HostedRepository) -> dict[str, Leg]:
    """Returns the legs that move the claim to the repository's name, if it was renamed."""
    before = keys.repository_name(stored.organization_id, stored.owner, stored.name)
    after = keys.repository_name(stored.organization_id, hosted.owner, hosted.name)
    if before == after:
        return {}
    # No two repositories have the same name at the code host, so another one that has it here was renamed, too.
    legs: dict[str, Leg] = {"newName": Put({**after._asdict(), "repositoryId": stored.repository_id})}
    named = table.get(before)
    if named is not None and named["repositoryId"] == stored.repository_id:
        legs["formerName"] = Delete(before, "#repositoryId = :id", {"id": stored.repository_id})
    return legs


def link_project(repository_id: RepositoryId, link: Link) -> RepositoryItem:
    """Links the project or replaces its link. Raises UnknownRepository, ProjectGone, LinkLimitReached."""
    return _change_links(
        get_repository(repository_id), link.project_id, lambda repository: _with_link(repository, link)
    )


def create_link(
    repository: RepositoryItem, link: Link, caller_id: str, extra_legs: Mapping[str, Leg]
) -> RepositoryItem:
    """Links the project for an admin. `extra_legs` come first in the transaction. Returns the updated repository.

    Raises AlreadyLinked, UnknownRepository, ProjectGone, LinkLimitReached, RoleRequired.
    """

    def add(repository: RepositoryItem) -> tuple[Link, ...]:
        if repository.find_link(link.project_id) is not None:
            raise AlreadyLinked
        return _with_link(repository, link)

    return _change_links(repository, link.project_id, add, caller_id, extra_legs)


def update_link(
    repository: RepositoryItem, project_id: ProjectId, settings: LinkSettings, caller_id: str
) -> RepositoryItem:
    """Changes settings of the project's link for an admin; the others keep their values. Returns the repository.

    Raises NotLinked, UnknownRepository, ProjectGone, RoleRequired.
    """

    def change(repository: RepositoryItem) -> tuple[Link, ...]:
        return _with_link(repository, known(repository.find_link(project_id), NotLinked)._replace(**settings))

    return _change_links(repository, project_id, change, caller_id)


def _change_links(
    repository: RepositoryItem,
    project_id: ProjectId,
    change: Callable[[RepositoryItem], tuple[Link, ...]],
    caller_id: str | None = None,
    extra_legs: Mapping[str, Leg] | None = None,
) -> RepositoryItem:
    """Replaces the links by those that `change` returns, if the project exists and the caller, if any, is an admin.

    If the links have changed since the repository was read, it is read again. Raises UnknownRepository, ProjectGone,
    RoleRequired, and the errors of `change`.
    """
    if project_id.organization_id != repository.organization_id:
        raise ProjectGone
    repository_id = repository.repository_id

    def write() -> RepositoryItem:
        nonlocal repository
        links = change(repository)
        legs: dict[str, Leg] = {
            **(extra_legs or {}),
            **admin_check(caller_id, repository_id.organization_id),
            "project": Check(keys.project(*project_id.location), "attribute_exists(pk)"),
            "repository": _replace_links(repository, links),
            **next(link for link in links if link.project_id == project_id).schedule_legs(repository_id),
        }
        try:
            _transact(legs, _link_record(repository, links, project_id))
        except WriteConflict:
            repository = get_repository(repository_id)
            raise
        return replace(repository, links=links)

    return retry_on_conflict(write, "the repository")


def _link_record(repository: RepositoryItem, links: tuple[Link, ...], project_id: ProjectId) -> Recorded:
    """Returns the entry of a change of a link in the audit log. The project's id is the entry's name."""
    before: dict[str, Any] = {
        link.project_id: to_map(link) for link in repository.links if link.project_id == project_id
    }
    after: dict[str, Any] = {link.project_id: to_map(link) for link in links if link.project_id == project_id}
    action = Action.LINK_DELETE if not after else Action.LINK_UPDATE if before else Action.LINK_CREATE
    return repository.recorded(action, before=before, after=after)


def _transact(legs: Mapping[str, Leg], record: Recorded) -> None:
    """Writes the legs. Raises RoleRequired, ProjectGone, and LegFailed for a leg of the caller.

    Raises WriteConflict if the links have changed, or the repository is gone.
    """
    table.transact(legs, record, {"caller": RoleRequired, "project": ProjectGone, "repository": WriteConflict})


def _with_link(repository: RepositoryItem, link: Link) -> tuple[Link, ...]:
    """Returns the links with this one, in place of the project's current link, if any. Raises LinkLimitReached."""
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


def unlink_project(
    repository_id: RepositoryId, project_id: ProjectId, caller_id: str | None = None, *, is_deleted: bool = False
) -> RepositoryItem:
    """Removes the project's link. If there is a caller, it must be an admin. Returns the updated repository.

    The project's vendors forget the repository in the background, and its packages are compared with the advisories
    again, unless the project is deleted.
    Raises UnknownRepository, NotLinked, RoleRequired.
    """

    def write() -> RepositoryItem:
        repository = get_repository(repository_id)
        links = tuple(link for link in repository.links if link.project_id != project_id)
        if links == repository.links:
            raise NotLinked
        legs: dict[str, Leg] = {
            **admin_check(caller_id, repository_id.organization_id),
            "repository": _replace_links(repository, links),
        }
        if not is_deleted:
            legs["deletion"] = deletion_items.work_item(f"{deletion_items.UNLINKED}{repository_id}")
            legs["comparison"] = comparisons.due_leg(repository_id)
        _transact(legs, _link_record(repository, links, project_id))
        return replace(repository, links=links)

    return retry_on_conflict(write, "the repository")


def _replace_links(repository: RepositoryItem, links: tuple[Link, ...]) -> Update:
    """Returns the leg that replaces the links if they haven't changed since the repository was read."""
    values = {
        "links": [to_map(link) for link in links],
        "readLinks": [to_map(link) for link in repository.links],
    }
    return Update(repository.key, "SET #links = :links", "#links = :readLinks", values)


def disconnect_repository(repository_id: RepositoryId, caller_id: str | None = None) -> RepositoryItem:
    """Disconnects the repository. If there is a caller, it must be an admin. Returns the repository as it was.

    Its scans end and are deleted in the background with their findings and inbox items. Connecting it again creates a
    new repository. Raises UnknownRepository, RoleRequired.
    """

    def write() -> RepositoryItem:
        repository = get_repository(repository_id)
        name = keys.repository_name(repository.organization_id, repository.owner, repository.name)
        read = {"readOwner": repository.owner, "readName": repository.name}
        legs: dict[str, Leg] = {
            **admin_check(caller_id, repository_id.organization_id),
            "repository": Delete(repository.key, "#owner = :readOwner AND #name = :readName", read),
            "deletion": deletion_items.work_item(repository_id),
        }
        record = repository.recorded(Action.REPOSITORY_DISCONNECT, before=repository.described)
        own = Delete(name, "attribute_not_exists(pk) OR #repositoryId = :id", {"id": repository_id})
        for of_name in ({"name": own}, {}):  # without it, if another repository has the name now
            with suppress(LegFailed):
                _transact({**legs, **of_name}, record)
                return repository
        raise WriteConflict

    return retry_on_conflict(write, "the repository")
