"""Installations of our GitHub App, each of which one organization connects repositories through.

A person connects repositories after proving access to the installation. It then belongs to the organization until the
organization has disconnected all of its repositories, or the same person connects a repository of it elsewhere. GitHub
tells us the names of an installation's repositories, whether our App still has access, and for how long it limits our
requests.
"""

from contextlib import suppress

from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.organizations.store import UnknownOrganization, role_check
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, RoleRequired
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, Delete, Leg, LegFailed, Put, Unrecorded, Update, table


class InstallationTaken(Conflict):
    message = (
        "This installation of the GitHub app belongs to another organization. Disconnect its repositories there "
        "first, or ask the person who connected them to connect this one."
    )


def connect_granted(organization_id: str, hosted: HostedRepository, user_id: str) -> RepositoryItem:
    """Connects a repository for an admin who has proved access to its installation.

    The transaction also makes the installation the organization's, if it is free, the organization's already, or was
    connected by the same person. Raises InstallationTaken, RoleRequired, UnknownOrganization, UnknownRepository.
    """
    number, version = hosted.installation_id, ids.new_local()
    owned = {"organization": organization_id, "user": user_id}
    claim = {"organizationId": organization_id, "connectedBy": user_id, "version": version}
    legs: dict[str, Leg] = {
        "caller": role_check(user_id, organization_id, "admin"),
        "installation": Put(
            {**keys.installation(number)._asdict(), **claim},
            "attribute_not_exists(pk) OR #organizationId = :organization OR #connectedBy = :user",
            owned,
        ),
        "own": Put(
            {
                **keys.organization_installation(organization_id, number)._asdict(),
                "number": number,
                "version": version,
            }
        ),
    }
    try:
        return repositories.connect_repository(organization_id, hosted, legs)
    except LegFailed as failure:
        errors = {"caller": RoleRequired, "installation": InstallationTaken, "organization": UnknownOrganization}
        raise failure.mapped(errors) from None


def find_organization(installation_id: int) -> str | None:
    """Returns the organization that the installation belongs to, or None."""
    item = table.get(keys.installation(installation_id))
    return item["organizationId"] if item else None


def release(organization_id: str, installation_id: int, version: str) -> None:
    """Makes the installation free, unless a repository was connected through it since `version` was read."""
    unchanged, values = "#version = :version", {"version": version}
    # The organization's own entry is deleted last: a retry finds the installation by it.
    for key in (keys.installation(installation_id), keys.organization_installation(organization_id, installation_id)):
        with suppress(ConditionFailed):
            table.delete(Delete(key, unchanged, values), Unrecorded.CLEANUP)


def use_state(digest: str, expires_at: int) -> bool:
    """Marks the state of a GitHub callback as used. Returns False if it was used before."""
    item = {**keys.used_github_state(digest)._asdict(), "expiresAt": expires_at}
    try:
        table.put(Put(item, "attribute_not_exists(pk)"), Unrecorded.CREDENTIAL)
    except ConditionFailed:
        return False
    return True


def limit(installation_id: int, seconds: int) -> None:
    """Records that the installation's requests are limited for that long. A longer limit isn't shortened."""
    until = int(clock.now()) + seconds
    item = {**keys.host_limit(installation_id)._asdict(), "until": until, "expiresAt": until}
    with suppress(ConditionFailed):
        table.put(Put(item, "attribute_not_exists(pk) OR #until < :until", {"until": until}), Unrecorded.COUNTER)


def seconds_left(installation_id: int) -> int:
    """Returns how long the installation's requests are still limited. 0: they aren't."""
    item = table.get(keys.host_limit(installation_id))
    return max(0, item["until"] - int(clock.now())) if item else 0


def list_by_installation(installation_id: int) -> list[RepositoryItem]:
    """Returns the repositories of all organizations that are connected through the installation.

    The index that finds them lags behind: it may miss a repository that was connected in the last seconds.
    """
    page = table.query(installation_id, prefix=keys.REPOSITORY_PREFIX, index=keys.REPOSITORIES_BY_INSTALLATION)
    items = table.batch_get([Key(item["pk"], item["sk"]) for item in page.items])
    repositories = [RepositoryItem.from_item(item) for item in items if item]
    return [it for it in repositories if it.installation_id == installation_id]


def lose_access(repository: RepositoryItem) -> None:
    """Records that our App no longer has access to the repository. Keeps the time at which it was first noticed."""
    now = clock.timestamp()
    update = Update(
        repository.key,
        "SET #accessLostAt = :now",
        "#installationId = :installation AND attribute_not_exists(#accessLostAt)",
        {"now": now, "installation": repository.installation_id},
    )
    record = repository.recorded(Action.REPOSITORY_LOSE_ACCESS, after={"accessLostAt": now})
    with suppress(LegFailed):
        table.transact({"repository": update}, record)
