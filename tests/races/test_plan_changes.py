"""A plan change reaches every key, including one that is created concurrently."""

from collections.abc import Callable
from functools import partial

import pytest

from controlplane.core import tokens
from controlplane.store import api_keys, billing, keys
from controlplane.store.api_keys import MintedKey
from tests.races.stage import Stage
from tests.races.yields import came_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Crashed, Trial
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


class Customer:
    """An organization on the pro plan with two keys."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.company = world.company("pro")
        self.created: list[MintedKey] = [
            api_keys.create_key(self.company.organization_id, "deploy", self.company.owner.user_id, "test")
            for _ in range(2)
        ]

    def change_plan(self, plan: str) -> None:
        billing.change_plan(self.company.organization_id, plan)

    def downgrade(self) -> None:
        self.change_plan("free")

    def upgrade(self) -> None:
        self.change_plan("enterprise")

    def call(self) -> Reply:
        return self.api.get("/v1/me", self.created[0].secret)

    def create(self) -> Reply:
        path = f"/v1/api-keys?organizationId={self.company.organization_id}"
        return self.api.post(path, self.company.owner.token, json_body={"name": "deploy"})

    def roll(self) -> Reply:
        return self.api.post(self._path("/roll"), self.company.owner.token)

    def create_unbranded(self) -> Reply:
        path = f"/v1/projects?organizationId={self.company.organization_id}"
        region = self.api.get("/v1/regions").data[0]["id"]
        body = {"name": "Shop", "region": region, "consent": {"branding": "none"}}
        return self.api.post(path, self.company.owner.token, json_body=body)

    def delete(self) -> Reply:
        return self.api.delete(self._path(""), self.company.owner.token)

    def _path(self, rest: str) -> str:
        return f"/v1/api-keys/{self.created[0].item.key_id}{rest}"


type Act = Callable[[Customer], Reply | None]
type Replies = list[Reply | None]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs two acts in every order. Calls `check` with the replies."""

    def run(acts: list[Act], check: Callable[[Customer, Replies], None]) -> None:
        def scenario(world: World) -> Race:
            customer = Customer(world, stage.api)
            return Race(
                [partial(act, customer) for act in acts],
                lambda outcomes: check(customer, [it.get() for it in outcomes]),
            )

        stage.race(scenario)

    return run


class TestEveryOrder:
    def test_calls_are_accepted_before_the_downgrade_and_rejected_after_it(self, race: Callable[..., None]) -> None:
        seen: set[int] = set()

        def check(customer: Customer, replies: Replies) -> None:
            reply = replies[1]
            assert reply is not None
            seen.add(reply.status)
            assert customer.call().status == 402

        race([Customer.downgrade, Customer.call], check)
        assert seen == {200, 402}

    @pytest.mark.parametrize("act", [Customer.create, Customer.roll], ids=["create", "roll"])
    def test_a_key_created_during_the_downgrade_does_not_work_after_it(
        self, act: Act, race: Callable[..., None]
    ) -> None:
        def check(customer: Customer, replies: Replies) -> None:
            reply = replies[1]
            assert reply is not None
            if reply.status != 402:
                assert customer.api.get("/v1/me", reply.data["key"]).status == 402

        race([Customer.downgrade, act], check)

    @pytest.mark.parametrize("act", [Customer.create, Customer.roll], ids=["create", "roll"])
    def test_a_key_has_the_rate_of_the_plan_at_its_creation(
        self, act: Act, stage: Stage, race: Callable[..., None]
    ) -> None:
        seen: set[int] = set()

        def check(customer: Customer, replies: Replies) -> None:
            reply = replies[1]
            assert reply is not None
            assert reply.data["rateLimit"] == (3_000 if came_first(stage.ran, 0) else 1_500)
            seen.add(reply.data["rateLimit"])

        race([Customer.upgrade, act], check)
        assert seen == {1_500, 3_000}

    def test_a_key_deleted_during_the_change_stays_deleted(self, race: Callable[..., None]) -> None:
        def check(customer: Customer, replies: Replies) -> None:
            reply = replies[1]
            assert reply is not None
            assert reply.status == 200
            assert customer.call().status == 401

        race([Customer.upgrade, Customer.delete], check)

    def test_branding_is_removed_only_if_the_plan_allows_it_at_the_write(
        self, stage: Stage, race: Callable[..., None]
    ) -> None:
        def check(customer: Customer, replies: Replies) -> None:
            reply = replies[1]
            assert reply is not None
            assert reply.status == (402 if came_first(stage.ran, 0) else 201)
            if reply.status == 402:
                assert reply.code == "PLAN_REQUIRED"

        race([Customer.downgrade, Customer.create_unbranded], check)

    def test_the_later_of_two_changes_applies_to_every_key(self, stage: Stage, race: Callable[..., None]) -> None:
        def check(customer: Customer, replies: Replies) -> None:
            organization, _ = billing.get_billing(customer.company.organization_id)
            assert organization.plan == ("free" if came_first(stage.ran, 0) else "enterprise")

        # An invariant compares the keys' plans with the organization's.
        race([Customer.upgrade, Customer.downgrade], check)


def test_threads_call_and_create_keys_while_the_plan_changes(stage: Stage) -> None:
    customer = Customer(stage.fresh(), stage.api)
    acts = [*[customer.call] * 6, *[customer.create] * 2, customer.downgrade, customer.upgrade]
    for outcome in run_repeatedly(acts, times=5):
        reply = outcome.get()
        assert reply is None or reply.status in {200, 201, 402}, reply.text
    stage.check_invariants()


def test_a_plan_change_is_complete_and_repeatable_after_every_fault(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        customer = Customer(world, stage.api)

        def check(case: Case) -> None:
            items = stage.check_invariants()
            assert case.first.error is None or isinstance(case.first.error, Crashed | Exception)
            case.second.get()
            plans = {items[keys.key_secret(tokens.digest(created.secret))]["plan"] for created in customer.created}
            assert plans == {"free"}

        return Trial(customer.downgrade, check)

    assert stage.faults(scenario) > 15
