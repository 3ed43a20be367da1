"""Installations and repositories: what they are called now, and whether our App still has access to them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from controlplane.code_host import installations, repositories
from controlplane.code_host.github import client, connecting
from controlplane.code_host.github.errors import AccessLost, InvalidName, RepositoryGone
from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.code_host.repositories import UnknownRepository
from controlplane.platform.queues.messages import HostEvent


def find_connected(event: HostEvent) -> list[RepositoryItem]:
    """Returns the repositories that the event is about, in all organizations that are connected to it.

    One that was connected by name is looked up at GitHub first. Raises the errors of `github`.
    """
    connected = installations.list_by_installation(event.installation_id)
    if any(it.hosted_id is None for it in connected):
        refresh(event)
        connected = installations.list_by_installation(event.installation_id)
    return [it for it in connected if it.hosted_id == event.hosted_id and it.access_lost_at is None]


def refresh(event: HostEvent, catch_up: Callable[[RepositoryItem], None] | None = None) -> None:
    """Reads the installation's repositories from GitHub, and stores what has changed.

    catch_up: called with each repository that our App has access to again, before that is stored.

    A repository that was transferred is no longer among them. Its new owner has another installation, whose consent we
    don't have, so it has to be connected again. Raises the errors of `github`.
    """
    connected = installations.list_by_installation(event.installation_id)
    if not connected:
        return
    try:
        granted = connecting.list_granted(event.installation_id)
    except AccessLost:
        granted = []
    by_id = {it.hosted_id: it for it in granted}
    by_name = {f"{it.owner}/{it.name}".lower(): it for it in granted}
    for repository in connected:
        found = _find(repository, by_id, by_name)
        if found is None:
            installations.lose_access(repository)
        else:
            if catch_up is not None and repository.access_lost_at is not None:
                catch_up(replace(repository, owner=found.owner, name=found.name))
            with suppress(UnknownRepository):
                repositories.describe(repository.repository_id, found)


def _find(
    repository: RepositoryItem, by_id: dict[int | None, HostedRepository], by_name: dict[str, HostedRepository]
) -> HostedRepository | None:
    """Returns the repository at GitHub, by its id. One that was connected by name may have been renamed since."""
    if repository.hosted_id is not None:
        return by_id.get(repository.hosted_id)
    found = by_name.get(f"{repository.owner}/{repository.name}".lower())
    if found is not None or not by_id:
        return found
    try:
        hosted = client.connect(repository.installation_id).get_repository(repository.owner, repository.name)
    except (AccessLost, RepositoryGone, InvalidName):
        return None
    return by_id.get(hosted.repository_id)
