"""An organization never has more than 50 keys, in whatever order its members create, roll, and delete them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from controlplane.core import ids, tokens
from controlplane.core.ids import KeyId
from controlplane.store import api_keys, codec, keys
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Company, World

pytestmark = pytest.mark.races


class Owner:
    """The owner of an organization with this many keys, and their requests."""

    def __init__(self, world: World, api: DirectApi, existing: int) -> None:
        self.api = api
        self.company = world.company()
        self.created = api_keys.create_key(self.company.organization_id, "first", self.company.owner.user_id, "test")
        add_copies(self.company, self.created.item, existing - 1)

    def create(self) -> Reply:
        return self.api.post(self._path(""), self.company.owner.token, json_body={"name": "deploy"})

    def roll(self) -> Reply:
        return self.api.post(self._path(f"/{self.created.item.key_id}/roll"), self.company.owner.token)

    def delete(self) -> Reply:
        return self.api.delete(self._path(f"/{self.created.item.key_id}"), self.company.owner.token)

    def secret_status(self, secret: str) -> int:
        """Returns the status of a call with this secret."""
        return self.api.get("/v1/me", secret).status

    def _path(self, rest: str) -> str:
        return f"/v1/api-keys{rest}?organizationId={self.company.organization_id}"


def add_copies(company: Company, original: ApiKeyItem, copies: int) -> None:
    """Adds this number of keys to the organization, in a few writes."""
    secret = table.get(keys.key_secret(original.digest))
    organization = table.get(keys.organization(company.organization_id))
    assert secret is not None
    assert organization is not None
    items = [{**organization, "keys": organization["keys"] + copies}]
    for _ in range(copies):
        digest = tokens.digest(tokens.mint("assent"))
        key_id = KeyId.of(company.organization_id, ids.new_local())
        items.append(replace(original, key_id=key_id, digest=digest).to_item())
        items.append({**secret, **keys.key_secret(digest)._asdict(), "keyId": key_id})
    for start in range(0, len(items), 25):
        puts = [{"PutRequest": {"Item": codec.encode_item(put)}} for put in items[start : start + 25]]
        table.client.batch_write_item(RequestItems={table.name: puts})


type Act = Callable[[Owner], Reply]
type Replies = list[Reply]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs acts of one owner in every order. Calls `check` with the replies."""

    def run(existing: int, acts: list[Act], check: Callable[[Owner, Replies], None]) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage.api, existing)
            return Race(
                [partial(act, owner) for act in acts], lambda outcomes: check(owner, [it.get() for it in outcomes])
            )

        stage.race(scenario)

    return run


class TestEveryOrder:
    def test_one_of_three_creations_at_49_keys_succeeds(self, race: Callable[..., None]) -> None:
        def check(owner: Owner, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [201, 409, 409]
            assert {reply.code for reply in replies if reply.status == 409} == {"KEY_LIMIT_REACHED"}

        race(49, [Owner.create] * 3, check)

    def test_one_of_two_creations_at_49_keys_succeeds(self, race: Callable[..., None]) -> None:
        def check(owner: Owner, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [201, 409]

        race(49, [Owner.create] * 2, check)

    def test_a_creation_at_50_keys_succeeds_only_after_a_deletion(self, race: Callable[..., None]) -> None:
        statuses: set[int] = set()

        def check(owner: Owner, replies: Replies) -> None:
            statuses.add(replies[0].status)
            assert replies[1].status == 200
            assert owner.secret_status(owner.created.secret) == 401

        race(50, [Owner.create, Owner.delete], check)
        assert statuses == {201, 409}

    def test_a_roll_at_50_keys_never_makes_room(self, race: Callable[..., None]) -> None:
        def check(owner: Owner, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [409, 200]

        race(50, [Owner.create, Owner.roll], check)

    @pytest.mark.parametrize("second", [Owner.roll, Owner.delete], ids=["roll", "delete"])
    @pytest.mark.parametrize("first", [Owner.roll, Owner.delete], ids=["roll", "delete"])
    def test_one_key_is_replaced_or_revoked_once(self, first: Act, second: Act, race: Callable[..., None]) -> None:
        def check(owner: Owner, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 404]
            assert owner.secret_status(owner.created.secret) == 401
            for reply in replies:
                if reply.status == 200 and "key" in reply.data:
                    assert owner.secret_status(reply.data["key"]) == 200

        race(2, [first, second], check)


def test_sixteen_threads_create_exactly_50_keys(stage: Stage) -> None:
    world = stage.fresh()
    company = world.company()
    path = f"/v1/api-keys?organizationId={company.organization_id}"

    def create() -> Reply:
        return stage.api.post(path, company.owner.token, json_body={"name": "deploy"})

    replies: Replies = [outcome.get() for outcome in run_repeatedly([create] * 16, times=10)]
    # A constantly contended item may be throttled temporarily; the cap decides all other requests.
    assert Counter(reply.status for reply in replies) == {201: 50, 409: 110}
    secrets = {reply.data["key"] for reply in replies if reply.status == 201}
    assert len(secrets) == 50
    stored = stage.check_invariants()
    assert all(keys.key_secret(tokens.digest(secret)) in stored for secret in secrets)


class TestEveryFault:
    @pytest.fixture
    def break_calls(self, stage: Stage) -> Callable[[Act, Callable[[Owner, Case], None]], int]:
        def run(act: Act, check: Callable[[Owner, Case], None]) -> int:
            def scenario(world: World) -> Trial:
                owner = Owner(world, stage.api, 2)

                def check_run(case: Case) -> None:
                    check(owner, case)

                return Trial(lambda: act(owner), check_run)

            return stage.faults(scenario)

        return run

    def test_a_creation_is_complete_or_absent(self, break_calls: Callable[..., int]) -> None:
        def check(owner: Owner, case: Case) -> None:
            first = check_first(case, 201)
            assert case.second.get().status == 201
            if first is not None and first.status == 201:
                assert owner.secret_status(first.data["key"]) == 200

        assert break_calls(Owner.create, check) > 20

    def test_a_roll_leaves_one_valid_secret(self, break_calls: Callable[..., int]) -> None:
        def check(owner: Owner, case: Case) -> None:
            first = check_first(case, 200)
            if first is not None and first.status == 200:
                assert case.second.get().status == 404  # the key was deleted
                assert owner.secret_status(first.data["key"]) == 200
            else:
                assert case.second.get().status in {200, 404}
            assert owner.secret_status(owner.created.secret) == 401

        assert break_calls(Owner.roll, check) > 20

    def test_a_deletion_revokes_the_key_permanently(self, break_calls: Callable[..., int]) -> None:
        def check(owner: Owner, case: Case) -> None:
            first = check_first(case, 200)
            expected = {404} if first is not None and first.status == 200 else {200, 404}
            assert case.second.get().status in expected
            assert owner.secret_status(owner.created.secret) == 401

        assert break_calls(Owner.delete, check) > 20
