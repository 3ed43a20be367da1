"""Connected repositories as the code host has them: their names, and whether our App still has access to them."""

from contextlib import suppress

from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, Update, table


def list_by_installation(installation_id: int) -> list[RepositoryItem]:
    """Returns the repositories of all organizations that are connected through the installation.

    The index that finds them lags behind: it may miss a repository that was connected in the last seconds.
    """
    page = table.query(installation_id, prefix=keys.REPOSITORY_PREFIX, index=keys.REPOSITORIES_BY_INSTALLATION)
    items = table.batch_get([Key(item["pk"], item["sk"]) for item in page.items])
    repositories = [RepositoryItem.from_item(item) for item in items if item]
    return [it for it in repositories if it.installation_id == installation_id]


def describe(repository_id: RepositoryId, hosted: HostedRepository) -> None:
    """Stores the code host's facts about the repository. Its links and scans stay, also if it was renamed.

    Does nothing if the repository was disconnected, or is connected through another installation now.
    """
    retry_on_conflict(lambda: _describe(repository_id, hosted), "the repository")


def _describe(repository_id: RepositoryId, hosted: HostedRepository) -> None:
    item = table.get(keys.repository(*repository_id.location))
    stored = RepositoryItem.from_item(item) if item else None
    if stored is None or stored.installation_id != hosted.installation_id:
        return
    values = hosted.described
    if stored.access_lost_at is None and values == stored.described:
        return
    legs: dict[str, Leg] = {
        "repository": Update(
            keys.repository(*repository_id.location),
            f"{set_expression(values)} REMOVE #accessLostAt",
            "#installationId = :installationId AND #owner = :readOwner AND #name = :readName",
            {**values, "readOwner": stored.owner, "readName": stored.name},
        )
    }
    organization_id = repository_id.organization_id
    before = keys.repository_name(organization_id, stored.owner, stored.name)
    after = keys.repository_name(organization_id, hosted.owner, hosted.name)
    if before != after:
        # No two repositories have the same name at the code host, so another one that has it here was renamed, too.
        legs["name"] = Put({**after._asdict(), "repositoryId": repository_id})
        named = table.get(before)
        if named is not None and named["repositoryId"] == repository_id:
            legs["formerName"] = Delete(before, "#repositoryId = :id", {"id": repository_id})
    record = stored.recorded(
        Action.REPOSITORY_UPDATE,
        before={**stored.described, "accessLostAt": stored.access_lost_at},
        after={**values, "accessLostAt": None},
    )
    try:
        table.transact(legs, record)
    except LegFailed:
        raise WriteConflict from None


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
