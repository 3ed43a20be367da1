"""An installation of the GitHub App belongs to one organization at a time, and a used one isn't released."""

from collections.abc import Callable

import pytest

from controlplane.core.errors import Forbidden
from controlplane.store import installations, keys, members, repositories
from controlplane.store.installations import InstallationTaken
from controlplane.store.repository_items import HostedRepository
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.races.yields import came_first
from tests.support.schedules import Race
from tests.support.world import Company, World

pytestmark = pytest.mark.races

INSTALLATION = 4711


def hosted(name: str) -> HostedRepository:
    return HostedRepository(
        hosted_id=len(name),
        installation_id=INSTALLATION,
        owner="acme",
        name=name,
        html_url=f"https://github.com/acme/{name}",
        default_branch="main",
        visibility="private",
    )


def connects(company: Company, name: str, user_id: str | None = None) -> Callable[[], str]:
    """Returns an act that connects the repository, and returns what came of it."""

    def connect() -> str:
        try:
            installations.connect_granted(company.organization_id, hosted(name), user_id or company.owner.user_id)
        except (InstallationTaken, Forbidden) as failure:
            return type(failure).__name__
        return "connected"

    return connect


def releases(company: Company) -> Callable[[], None]:
    """Returns an act that releases the installation if nothing is connected through it, as the cleanup does."""
    entry = table.get(keys.organization_installation(company.organization_id, INSTALLATION))
    assert entry is not None

    def release() -> None:
        if not repositories.list_all_repositories(company.organization_id, consistent=True):
            installations.release(company.organization_id, INSTALLATION, entry["version"])

    return release


def names(company: Company) -> list[str]:
    found = repositories.list_all_repositories(company.organization_id, consistent=True)
    return sorted(repository.name for repository in found)


def owner_of_installation() -> str | None:
    item = table.get(keys.installation(INSTALLATION))
    return item["organizationId"] if item else None


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(begin: Callable[[World], tuple[list, Callable[[list], None]]]) -> None:
        def scenario(world: World) -> Race:
            acts, check = begin(world)

            return Race(acts, lambda outcomes: check([outcome.get() for outcome in outcomes]))

        stage.race(scenario)

    return run


def test_one_of_two_organizations_gets_an_installation(race: Callable[..., None]):
    def begin(world: World) -> tuple[list, Callable[[list], None]]:
        first, second = world.company(), world.company()

        def check(outcomes: list) -> None:
            assert sorted(outcomes) == ["InstallationTaken", "connected"]
            winner = first if outcomes[0] == "connected" else second
            assert owner_of_installation() == winner.organization_id
            assert sorted(names(first) + names(second)) == ["shop" if winner is first else "blog"]

        return [connects(first, "shop"), connects(second, "blog")], check

    race(begin)


def test_an_installation_is_not_released_while_a_repository_is_connected(race: Callable[..., None]):
    def begin(world: World) -> tuple[list, Callable[[list], None]]:
        company = world.company()
        connects(company, "shop")()
        (repository,) = repositories.list_all_repositories(company.organization_id)
        repositories.disconnect_repository(repository.repository_id)

        def check(_: list) -> None:
            assert names(company) == ["blog"]
            assert owner_of_installation() == company.organization_id
            assert table.get(keys.organization_installation(company.organization_id, INSTALLATION))

        return [connects(company, "blog"), releases(company)], check

    race(begin)


def test_a_former_admin_connects_nothing(stage: Stage, race: Callable[..., None]):
    def begin(world: World) -> tuple[list, Callable[[list], None]]:
        company = world.company()
        admin = world.member(company, "admin")
        member, _ = members.find_member_and_caller(company.organization_id, admin.user_id, company.owner.user_id)
        assert member is not None

        def check(outcomes: list) -> None:
            assert outcomes[0] == ("Forbidden" if came_first(stage.ran, 1) else "connected")
            assert names(company) == (["shop"] if outcomes[0] == "connected" else [])
            assert (owner_of_installation() is not None) == (outcomes[0] == "connected")

        demotes = lambda: members.change_role(member, "member", company.owner.user_id, "owner")  # noqa: E731
        return [connects(company, "shop", admin.user_id), demotes], check

    race(begin)
