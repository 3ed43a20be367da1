"""A refresh token works once, a revoked credential stays revoked, and the index always lists the live credentials."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api_keys import leaked
from controlplane.api_keys.leaked import Leak
from controlplane.people import credential_index, device_approvals, revocations, sessions
from controlplane.platform.core import clock
from ops import accounts
from tests.functional.device_auth.devices import REVOKE, Device, refresh, request_code, works
from tests.races.faults import check_first
from tests.races.schedules import every_call
from tests.races.stage import RACE_TIME, Stage, clock_advanced, faults, race
from tests.support.api import Reply
from tests.support.rings import BEFORE, MIXED_FLEETS, use_ring_of_thread
from tests.support.world import World


class Owner:
    """A user with a device, and a session that revokes it. The device may not have redeemed its code yet."""

    def __init__(self, world: World, stage: Stage, *, redeemed: bool = True) -> None:
        self.api, self.person = stage.api, world.person()
        with clock_advanced(1):
            self.session = sessions.create(self.person.user_id)
        with clock_advanced(2):
            self.device: Device = request_code(stage.api, deviceName="laptop").approved(self.person.user_id)
        self.pair: dict[str, Any] = self.device.redeem().data if redeemed else {}
        (self.entry,) = [it for it in self.entries() if it.kind == "device"]

    def entries(self) -> list[credential_index.CredentialItem]:
        return credential_index.list_credentials(self.person.user_id, 100).items

    def call(self) -> Reply:
        return self.api.get("/v1/me", self.pair["accessToken"])

    def redeem(self) -> Reply:
        return self.device.redeem()

    def refresh(self) -> Reply:
        return refresh(self.api, self.pair["refreshToken"])

    def deny(self) -> object:
        """Denies the request, unless it is decided."""
        try:
            return device_approvals.deny(self.device.user_code, self.person.user_id)
        except device_approvals.AlreadyDecided as failure:
            return failure

    def revoke(self) -> object:
        return revocations.revoke_credential(self.entry, "test")

    def revoke_on_the_pages(self) -> Reply:
        return self.api.delete(f"/v1/me/sessions/{self.entry.session_id}", self.session)

    def revoke_by_token(self, kind: str = "refreshToken") -> Reply:
        return self.api.post(REVOKE, json_body={"token": self.pair[kind]})

    def revoke_all(self) -> object:
        return accounts.revoke_credentials(self.person.user_id)

    def works(self, pair: dict[str, Any]) -> bool:
        return works(self.api, pair["accessToken"])

    def check_dead(self, *pairs: dict[str, Any]) -> None:
        for pair in filter(None, [self.pair, *pairs]):
            assert not self.works(pair)
            assert refresh(self.api, pair["refreshToken"]).status == 401
        assert not [it for it in self.entries() if it.kind == "device"]


@race()
def test_two_refreshes_of_one_token_get_the_same_pair(world, stage):
    owner = Owner(world, stage)
    one, other = (reply.data for reply in (yield [owner.refresh] * 2))
    assert one == other
    assert owner.works(one)
    assert refresh(stage.api, one["refreshToken"]).status == 200


@pytest.mark.parametrize("mixed", MIXED_FLEETS, ids=["added later", "added first", "switched later", "switched first"])
@race()
def test_two_versions_that_refresh_one_token_return_the_same_pair(world, stage, mixed, monkeypatch):
    """During a rotation of the signing secret, functions with the old and the new current key run concurrently."""
    set_secret = use_ring_of_thread(monkeypatch)
    set_secret(BEFORE)
    owner = Owner(world, stage)
    replies = yield [lambda secret=secret: (set_secret(secret), owner.refresh())[1] for secret in mixed]
    one, other = (reply.data for reply in replies)
    assert one == other
    assert owner.works(one)
    set_secret(mixed[0])
    assert refresh(stage.api, one["refreshToken"]).status == 200


@race(ends={200, 401})
def test_refreshing_a_token_and_its_successor_leaves_one_live_family_or_none(world, stage):
    owner = Owner(world, stage)
    second = owner.refresh().data
    repeated, next_one = yield [owner.refresh, lambda: refresh(stage.api, second["refreshToken"])]
    alive = [owner.works(reply.data) for reply in (repeated, next_one) if reply.status == 200]
    alive += [owner.works(owner.pair), owner.works(second)]
    if repeated.status == 200:
        assert (repeated.data, next_one.status) == (second, 200)
    assert alive == [repeated.status == 200] * len(alive)
    return repeated.status


REVOCATIONS: dict[str, Callable[[Owner], Any]] = {
    "of its entry": Owner.revoke,
    "by its access token": lambda owner: owner.revoke_by_token("accessToken"),
    "by its refresh token": Owner.revoke_by_token,
}


@pytest.mark.parametrize("how", REVOCATIONS)
@race()
def test_a_revocation_during_a_refresh_leaves_no_live_token(world, stage, how):
    owner = Owner(world, stage)
    refreshed, _ = yield [owner.refresh, lambda: REVOCATIONS[how](owner)]
    assert refreshed.status in {200, 401}
    owner.check_dead(refreshed.data if refreshed.status == 200 else {})


@pytest.mark.parametrize("kind", ["accessToken", "refreshToken"])
@race()
def test_a_leak_report_during_a_refresh_leaves_no_live_token(world, stage, kind):
    revoke = leaked.revoke_token if kind == "accessToken" else leaked.revoke_refresh_token
    owner = Owner(world, stage)
    leak = lambda: revoke(owner.pair[kind], Leak("commit", None))  # noqa: E731
    refreshed, *reported = yield [owner.refresh, leak, leak]
    assert sorted(reported) == [False, True]
    assert refreshed.status in {200, 401}
    owner.check_dead(refreshed.data if refreshed.status == 200 else {})


@race(yields_at=every_call)
def test_a_revocation_during_a_request_leaves_no_token_behind(world, stage):
    owner = Owner(world, stage)
    called, _ = yield [owner.call, owner.revoke_by_token]
    assert called.status in {200, 401}
    owner.check_dead()


@race()
def test_a_revocation_during_use_leaves_neither_token_nor_entry(world, stage, monkeypatch):
    """The use is in a new hour, when it is also recorded in the index."""
    monkeypatch.setattr(clock, "source", lambda: RACE_TIME)
    owner = Owner(world, stage)
    monkeypatch.setattr(clock, "source", lambda: RACE_TIME + 3_590)
    called, _ = yield [owner.call, owner.revoke]
    assert called.status in {200, 401}
    owner.check_dead()


@race()
def test_two_concurrent_revocations_count_as_one(world, stage):
    owner = Owner(world, stage)
    yield [owner.revoke] * 2
    owner.check_dead()


@pytest.mark.parametrize("revoke", [Owner.revoke, Owner.revoke_all])
@race()
def test_a_revocation_during_a_redemption_leaves_no_live_token(world, stage, revoke):
    owner = Owner(world, stage, redeemed=False)
    redeemed, _ = yield [owner.redeem, lambda: revoke(owner)]
    assert redeemed.status in {200, 403}
    owner.check_dead(redeemed.data if redeemed.status == 200 else {})
    assert works(stage.api, owner.session) is (revoke is Owner.revoke)


@race()
def test_either_the_withdrawal_or_the_denial_of_an_approval_succeeds(world, stage):
    owner = Owner(world, stage, redeemed=False)
    yield [owner.deny, owner.revoke]
    assert owner.redeem().status == 403
    owner.check_dead()


@faults(20, breaks=every_call)
def test_under_every_fault_a_retried_refresh_gets_its_pair(world, stage):
    owner = Owner(world, stage)
    case = yield owner.refresh
    came, again = check_first(case, 200), case.second.get()
    assert again.status == 200
    assert not came or came.data == again.data
    assert owner.works(again.data)
    assert refresh(stage.api, again.data["refreshToken"]).status == 200


@pytest.mark.parametrize(
    ("revoke", "redeemed"),
    [
        (Owner.revoke_by_token, True),
        (Owner.revoke_on_the_pages, True),
        (Owner.revoke_on_the_pages, False),
        (Owner.revoke_all, True),
    ],
)
@faults(20, breaks=every_call)
def test_under_every_fault_a_retried_revocation_succeeds(world, stage, revoke, redeemed):
    owner = Owner(world, stage, redeemed=redeemed)
    second = owner.refresh().data if redeemed else {}
    case = yield lambda: revoke(owner)
    again = case.second.get()
    if revoke is not Owner.revoke_all:
        check_first(case, 200)
        assert again.status in ({200, 404} if revoke is Owner.revoke_on_the_pages else {200})
    assert redeemed or owner.redeem().status == 403
    owner.check_dead(second)
    assert works(stage.api, owner.session) is (revoke is not Owner.revoke_all)


@pytest.mark.parametrize("step", ["sign in", "approve", "redeem", "refresh"])
@faults(breaks=every_call)
def test_under_every_fault_a_credential_is_listed_as_far_as_it_got(world, stage, step):
    """After a crash between two steps, every live credential is listed, and every listed one can be revoked."""
    user_id = world.person().user_id
    device, pair = request_code(stage.api), {}
    if step in {"redeem", "refresh"}:
        device.approved(user_id)
    if step == "refresh":
        pair = device.redeem().data
    acts: dict[str, Callable[[], Any]] = {
        "sign in": lambda: sessions.create(user_id),
        "approve": lambda: device_approvals.approve(device.user_code, user_id, ["projects.read"]),
        "redeem": device.redeem,
        "refresh": lambda: refresh(stage.api, pair["refreshToken"]),
    }
    case = yield acts[step]
    accounts.revoke_credentials(user_id)
    for outcome in (case.first, case.second):
        secret = outcome.value.data["accessToken"] if getattr(outcome.value, "status", 0) == 200 else outcome.value
        assert not isinstance(secret, str) or not works(stage.api, secret)
    assert not credential_index.list_credentials(user_id, 10).items
    assert device.redeem().status in {400, 401, 403, 409}
