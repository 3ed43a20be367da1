"""A revoked credential stays revoked, whatever runs concurrently, and the index always lists the live ones."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core import clock
from controlplane.store import credential_index, device_approvals, revocations, sessions, users
from ops import accounts
from tests.functional.device_auth.devices import Device, refresh, request_code, works
from tests.races.stage import RACE_TIME, Stage, clock_advanced
from tests.races.verdicts import check_first
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.world import Person, World

pytestmark = pytest.mark.races

SESSIONS = "/v1/me/sessions"


class Owner:
    """A user with a device, and a session that revokes it. The device may not have redeemed its code yet."""

    def __init__(self, world: World, stage: Stage, *, redeemed: bool = True) -> None:
        self.stage = stage
        self.person: Person = world.person()
        with clock_advanced(1):
            self.session = sessions.create(self.person.user_id)
        with clock_advanced(2):
            self.device: Device = request_code(stage.api, deviceName="laptop").approved(self.person.user_id)
        self.pair: dict[str, Any] = self.device.redeem().data if redeemed else {}
        (self.entry,) = [it for it in self.entries() if it.kind == "device"]

    def entries(self) -> list[credential_index.CredentialItem]:
        return credential_index.list_credentials(self.person.user_id, 100).credentials

    def revoke(self) -> Any:
        return self.stage.api.delete(f"{SESSIONS}/{self.entry.session_id}", self.session)

    def revoke_all(self) -> accounts.RevokedCounts:
        return accounts.revoke_credentials(self.person.user_id)

    def check_dead(self, pair: dict[str, Any]) -> None:
        assert not works(self.stage.api, pair["accessToken"])
        assert refresh(self.stage.api, pair["refreshToken"]).status == 401

    def check_gone(self) -> None:
        assert not [it for it in self.entries() if it.kind == "device"]


class TestRevocation:
    def test_a_revocation_during_use_leaves_neither_token_nor_entry(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The use is in a new hour, when it is also recorded in the index."""

        def scenario(world: World) -> Race:
            monkeypatch.setattr(clock, "source", lambda: RACE_TIME)
            owner = Owner(world, stage)
            monkeypatch.setattr(clock, "source", lambda: RACE_TIME + 3_590)

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[0].get().status in {200, 401}
                owner.check_dead(owner.pair)
                owner.check_gone()

            credential = owner.entry
            acts = [
                lambda: stage.api.get("/v1/me", owner.pair["accessToken"]),
                lambda: revocations.revoke_credential(credential, "test"),
            ]
            return Race(acts, check)

        stage.race(scenario)

    def test_a_revocation_during_a_refresh_leaves_no_live_token(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage)

            def check(outcomes: list[Outcome]) -> None:
                refreshed = outcomes[0].get()
                assert outcomes[1].error is None
                owner.check_dead(owner.pair)
                if refreshed.status == 200:
                    owner.check_dead(refreshed.data)
                owner.check_gone()

            credential = owner.entry
            acts = [
                lambda: refresh(stage.api, owner.pair["refreshToken"]),
                lambda: revocations.revoke_credential(credential, "test"),
            ]
            return Race(acts, check)

        stage.race(scenario)

    def test_two_concurrent_revocations_count_as_one(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage)

            def check(outcomes: list[Outcome]) -> None:
                assert [outcome.error for outcome in outcomes] == [None, None]
                owner.check_dead(owner.pair)
                owner.check_gone()

            credential = owner.entry
            return Race([lambda: revocations.revoke_credential(credential, "test")] * 2, check)

        stage.race(scenario)

    def test_a_revocation_during_a_redemption_leaves_no_live_token(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage, redeemed=False)

            def check(outcomes: list[Outcome]) -> None:
                redeemed = outcomes[0].get()
                assert redeemed.status in {200, 403}
                assert outcomes[1].error is None
                if redeemed.status == 200:
                    owner.check_dead(redeemed.data)
                owner.check_gone()

            credential = owner.entry
            return Race([owner.device.redeem, lambda: revocations.revoke_credential(credential, "test")], check)

        stage.race(scenario)

    def test_revoking_everything_during_a_redemption_leaves_no_live_token(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage, redeemed=False)

            def check(outcomes: list[Outcome]) -> None:
                redeemed = outcomes[0].get()
                assert outcomes[1].error is None
                if redeemed.status == 200:
                    owner.check_dead(redeemed.data)
                assert not works(stage.api, owner.session)
                assert owner.entries() == []

            return Race([owner.device.redeem, owner.revoke_all], check)

        stage.race(scenario)

    def test_either_the_withdrawal_or_the_denial_of_an_approval_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owner = Owner(world, stage, redeemed=False)

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[1].error is None
                assert outcomes[0].error is None or isinstance(outcomes[0].error, device_approvals.AlreadyDecided)
                assert owner.device.redeem().status == 403
                owner.check_gone()

            credential = owner.entry
            acts = [
                lambda: device_approvals.deny(owner.device.user_code, owner.person.user_id),
                lambda: revocations.revoke_credential(credential, "test"),
            ]
            return Race(acts, check)

        stage.race(scenario)


def test_a_session_created_during_the_deletion_of_its_account_does_not_work(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        user_id = world.person().user_id

        def check(outcomes: list[Outcome]) -> None:
            session = outcomes[0]
            if session.error is None:
                assert not works(stage.api, session.value)
            else:
                assert isinstance(session.error, users.UnknownUser)
            assert outcomes[1].error is None
            assert not credential_index.list_credentials(user_id, 10).credentials

        acts = [
            lambda: sessions.create(user_id),
            lambda: accounts.delete_account(user_id, users.find_user(user_id)),
        ]
        return Race(acts, check)

    stage.race(scenario)


class TestEveryFault:
    """After a crash between two steps, every live credential is listed, and every listed one can be revoked."""

    def test_under_every_fault_a_listed_session_can_be_revoked(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            user_id = world.person().user_id

            def check(case: Case) -> None:
                accounts.revoke_credentials(user_id)
                for outcome in (case.first, case.second):
                    if outcome.error is None:
                        assert not works(stage.api, outcome.value)

            return Trial(lambda: sessions.create(user_id), check)

        assert stage.faults(scenario) > 10

    @pytest.mark.parametrize("step", ["approve", "redeem", "refresh"])
    def test_under_every_fault_a_device_is_listed_as_far_as_it_got(self, step: str, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            person = world.person()
            requester = request_code(stage.api)
            pair: dict[str, Any] = {}
            if step != "approve":
                requester.approved(person.user_id)
            if step == "refresh":
                pair = requester.redeem().data
            acts: dict[str, Callable[[], Any]] = {
                "approve": lambda: device_approvals.approve(requester.user_code, person.user_id, ["projects.read"]),
                "redeem": requester.redeem,
                "refresh": lambda: refresh(stage.api, pair["refreshToken"]),
            }

            def check(case: Case) -> None:
                accounts.revoke_credentials(person.user_id)
                for outcome in (case.first, case.second):
                    if outcome.error is None and getattr(outcome.value, "status", 0) == 200:
                        assert not works(stage.api, outcome.value.data["accessToken"])
                assert requester.redeem().status in {401, 403, 409}
                assert not credential_index.list_credentials(person.user_id, 10).credentials

            return Trial(acts[step], check)

        assert stage.faults(scenario) > 20

    @pytest.mark.parametrize("redeemed", [True, False])
    def test_under_every_fault_a_retried_revocation_succeeds(self, redeemed: bool, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            owner = Owner(world, stage, redeemed=redeemed)

            def check(case: Case) -> None:
                check_first(case, 200)
                again = case.second.get()
                assert again.status in {200, 404}
                if redeemed:
                    owner.check_dead(owner.pair)
                else:
                    assert owner.device.redeem().status == 403
                owner.check_gone()

            return Trial(owner.revoke, check)

        assert stage.faults(scenario) > 20

    def test_under_every_fault_revoking_everything_again_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            owner = Owner(world, stage)

            def check(case: Case) -> None:
                assert case.second.error is None
                owner.check_dead(owner.pair)
                assert not works(stage.api, owner.session)
                assert owner.entries() == []

            return Trial(owner.revoke_all, check)

        assert stage.faults(scenario) > 40
