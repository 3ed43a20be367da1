"""A repository is renamed at the code host while it is connected again or disconnected, or another one takes its name.

`names_of_repositories_lead_to_them` is what must hold in the end: a name that leads nowhere can't be connected again.
"""

from collections.abc import Callable

import pytest

from controlplane.store import repositories
from controlplane.store.repositories import UnknownRepository
from controlplane.store.repository_items import RepositoryItem
from tests.races.stage import Stage
from tests.support.audits import describe
from tests.support.schedules import Race
from tests.support.world import Company, World

pytestmark = pytest.mark.races


class Shop:
    """An organization with the repositories "shop" and "blog". The code host renames them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.company: Company = world.company()
        self.shop, self.blog = (self.connect(name) for name in ("shop", "blog"))

    def connect(self, name: str) -> RepositoryItem:
        return self.world.connected_repository(self.company, linked=False, name=name)

    def names(self) -> dict[str, str]:
        """Returns the names of the connected repositories, by ID."""
        found = repositories.list_all_repositories(self.company.organization_id, consistent=True)
        return {repository.repository_id: repository.name for repository in found}

    def connects_again(self) -> str:
        try:
            return self.connect("shop").repository_id
        except UnknownRepository:
            return "renamed"

    def disconnects(self) -> None:
        repositories.disconnect_repository(self.shop.repository_id)


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(acts: Callable[[Shop], list], check: Callable[[Shop, list], None]) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            return Race(acts(shop), lambda outcomes: check(shop, [outcome.get() for outcome in outcomes]))

        stage.race(scenario)

    return run


def is_disconnected(shop: Shop, _: list) -> None:
    assert shop.shop.repository_id not in shop.names()
    again = shop.connect("shop")
    assert shop.names()[again.repository_id] == "shop"


def test_a_repository_that_is_renamed_while_it_is_disconnected_leaves_no_name(race: Callable[..., None]):
    race(lambda shop: [shop.disconnects, lambda: describe(shop.shop, name="store")], is_disconnected)


def test_a_repository_whose_name_another_one_takes_is_disconnected_without_it(race: Callable[..., None]):
    def check(shop: Shop, outcomes: list) -> None:
        assert shop.names() == {shop.blog.repository_id: "shop"}

    race(lambda shop: [shop.disconnects, lambda: describe(shop.blog, name="shop")], check)


def test_a_repository_that_is_connected_again_under_its_former_name_has_one_name(race: Callable[..., None]):
    def check(shop: Shop, outcomes: list) -> None:
        connected, _ = outcomes
        assert shop.names()[shop.shop.repository_id] in {"store", "shop"}
        assert connected in {*shop.names(), "renamed"}

    race(lambda shop: [shop.connects_again, lambda: describe(shop.shop, name="store")], check)
