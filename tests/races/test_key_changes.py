"""A key that is changed, rolled with a grace period, or revoked at the same time as others act on it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controlplane.core import tokens
from controlplane.store import api_keys, billing, leaked_keys
from controlplane.store.leaked_keys import Leak
from tests.races.stage import Stage
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

LIMITS = {"scopes": ["inbox.read"]}
WIDE = {"inbox.read", "projects.read"}


class Owner:
    """The owner of an organization with a key, which was rolled with a grace period if `rolled`."""

    def __init__(self, world: World, api: DirectApi, *, rolled: bool = False) -> None:
        self.api = api
        self.company = world.company()
        made = api_keys.create_key(self.company.organization_id, "deploy", self.company.owner.user_id, "test")
        self.secrets = [made.secret]
        self.key_id = self.first_id = made.item.key_id
        if rolled:
            made = api_keys.roll_key(self.key_id, self.company.owner.user_id, "test", grace_seconds=3600)
            self.secrets.append(made.secret)
            self.key_id = made.item.key_id

    def roll(self) -> Reply:
        return self.api.post(self._path("/roll"), self.company.owner.token, json_body={"gracePeriodSeconds": 3600})

    def delete(self) -> Reply:
        return self.api.delete(self._path(""), self.company.owner.token)

    def end_grace(self) -> Reply:
        return self.api.delete(self._path("", self.first_id), self.company.owner.token)

    def previous(self) -> dict[str, Any] | None:
        """Returns what the list shows of the old secret of the one key."""
        (key,) = self.api.get(f"/v1/api-keys?organizationId={self.company.organization_id}", self.token).data
        shown: dict[str, Any] | None = key["previous"]
        return shown

    def limit(self) -> Reply:
        return self.api.patch(self._path(""), self.company.owner.token, json_body=LIMITS)

    def rename(self) -> Reply:
        return self.api.patch(self._path(""), self.company.owner.token, json_body={"name": "Deploys"})

    def limit_otherwise(self) -> Reply:
        return self.api.patch(self._path(""), self.company.owner.token, json_body={"scopes": ["projects.read"]})

    def call(self) -> Reply:
        return self.api.get("/v1/me", self.secrets[0])

    def leak(self) -> bool:
        return leaked_keys.revoke(tokens.digest(self.secrets[0]), Leak("commit", None))

    def downgrade(self) -> None:
        billing.change_plan(self.company.organization_id, "free")

    def scopes_of(self, secret: str) -> set[str] | None:
        """Returns the scopes with which the secret works, or None if it doesn't."""
        reply = self.api.get("/v1/me", secret)
        return {*reply.data["scopes"]} if reply.status == 200 else None

    @property
    def token(self) -> str:
        return self.company.owner.token

    def _path(self, rest: str, key_id: str | None = None) -> str:
        return f"/v1/api-keys/{key_id or self.key_id}{rest}?organizationId={self.company.organization_id}"


type Act = Callable[[Owner], Reply | bool | None]
type Check = Callable[[Owner, list[Any]], None]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs acts in every order, and calls `check` with the replies. used: the key was used in this minute."""

    def run(acts: list[Act], check: Check, *, rolled: bool = False, used: bool = False) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage.api, rolled=rolled)
            if used:
                owner.call()
            return Race(
                [partial(act, owner) for act in acts], lambda outcomes: check(owner, [it.get() for it in outcomes])
            )

        stage.race(scenario)

    return run


def test_a_request_during_a_roll_with_a_grace_period_succeeds(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        assert [reply.status for reply in replies] == [200, 200]
        replaced = replies[1].headers.get("x-key-replaced-by")
        assert replaced in {None, replies[0].data["keyId"]}

    race([Owner.roll, Owner.call], check)


def test_a_limit_is_not_lost_in_a_roll(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        limited, rolled = replies
        assert rolled.status == 200
        expected = {"inbox.read"} if limited.status == 200 else None
        for secret in (owner.secrets[0], rolled.data["key"]):
            scopes = owner.scopes_of(secret)
            assert scopes == expected if expected else scopes is not None and scopes > WIDE
        assert limited.status in {200, 404}

    race([Owner.limit, Owner.roll], check)


def test_revoking_in_the_grace_period_ends_both_secrets(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        assert replies[0].status == 200
        assert [owner.scopes_of(secret) for secret in owner.secrets] == [None, None]

    race([Owner.delete, Owner.call], check, rolled=True)
    race([Owner.delete, Owner.limit], check, rolled=True)


def test_a_key_that_is_revoked_during_its_roll_has_no_working_secret(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        deleted, rolled = replies
        assert deleted.status == 200
        assert rolled.status in {200, 404}
        # The older secret ends with the second roll, too. After it, the revoked key is the replaced one.
        assert [owner.scopes_of(secret) for secret in owner.secrets] == [None, None]
        assert rolled.status == 404 or owner.scopes_of(rolled.data["key"]) is not None

    race([Owner.delete, Owner.roll], check, rolled=True)


def test_the_end_of_a_grace_period_leaves_the_new_key(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Any]) -> None:
        assert replies[0].status == 200
        assert [owner.scopes_of(secret) is not None for secret in owner.secrets] == [False, True]
        assert owner.previous() is None

    race([Owner.end_grace, Owner.call], check, rolled=True)
    race([Owner.end_grace, Owner.rename], check, rolled=True)


def test_a_grace_period_ends_once(race: Callable[..., None]) -> None:
    def ended(owner: Owner, replies: list[Reply]) -> None:
        assert sorted(reply.status for reply in replies) == [200, 404]
        assert [owner.scopes_of(secret) is not None for secret in owner.secrets] == [False, True]

    def deleted(owner: Owner, replies: list[Reply]) -> None:
        assert (replies[0].status in {200, 404}, replies[1].status) == (True, 200)
        assert [owner.scopes_of(secret) for secret in owner.secrets] == [None, None]

    def rolled(owner: Owner, replies: list[Reply]) -> None:
        assert (replies[0].status in {200, 404}, replies[1].status) == (True, 200)
        assert [owner.scopes_of(secret) is not None for secret in owner.secrets] == [False, True]
        assert owner.scopes_of(replies[1].data["key"]) is not None

    def leaked(owner: Owner, replies: list[Any]) -> None:
        assert (replies[0].status, replies[1]) in {(200, False), (404, True)}
        assert [owner.scopes_of(secret) is not None for secret in owner.secrets] == [False, True]

    race([Owner.end_grace, Owner.end_grace], ended, rolled=True)
    race([Owner.end_grace, Owner.delete], deleted, rolled=True)
    race([Owner.end_grace, Owner.roll], rolled, rolled=True)
    race([Owner.end_grace, Owner.leak], leaked, rolled=True)


def test_a_use_during_a_roll_is_shown_if_it_came_after_it(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        rolled, used = replies
        assert (rolled.status, used.status) == (200, 200)
        shown = owner.previous()
        assert shown is not None
        assert (shown["lastUsedAt"] is not None) == ("x-key-replaced-by" in used.headers)

    race([Owner.roll, Owner.call], check)
    race([Owner.roll, Owner.call], check, used=True)


def test_two_changes_of_different_fields_are_both_made(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        assert [reply.status for reply in replies] == [200, 200]
        found = owner.api.get(f"/v1/api-keys/{owner.key_id}", owner.company.owner.token).data
        assert (found["name"], found["scopes"]) == ("Deploys", ["inbox.read"])

    race([Owner.limit, Owner.rename], check)


def test_of_two_limits_that_exclude_each_other_the_second_is_rejected(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Reply]) -> None:
        assert sorted(reply.status for reply in replies) == [200, 400]
        (made,) = (reply for reply in replies if reply.status == 200)
        assert owner.scopes_of(owner.secrets[0]) == {*made.data["scopes"]}

    race([Owner.limit, Owner.limit_otherwise], check)


def test_a_downgrade_reaches_the_old_secret_of_a_concurrent_roll(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Any]) -> None:
        assert owner.call().code == "PLAN_REQUIRED"

    race([Owner.downgrade, Owner.roll], check)


def test_a_leaked_secret_never_survives_a_concurrent_roll(race: Callable[..., None]) -> None:
    def check(owner: Owner, replies: list[Any]) -> None:
        assert replies[0] is True
        assert owner.scopes_of(owner.secrets[0]) is None
        rolled = replies[1]
        assert rolled.status == 404 or owner.scopes_of(rolled.data["key"]) is not None

    race([Owner.leak, Owner.roll], check)


def test_threads_use_a_key_while_it_is_rolled_and_limited(stage: Stage) -> None:
    owner = Owner(stage.fresh(), stage.api, rolled=True)
    for outcome in run_repeatedly([*[owner.call] * 6, owner.limit, owner.rename], times=5):
        assert outcome.get().status == 200
    stage.check_invariants()
    assert [owner.scopes_of(secret) for secret in owner.secrets] == [{"inbox.read"}, {"inbox.read"}]
