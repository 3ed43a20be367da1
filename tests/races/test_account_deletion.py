"""Account deletion, concurrent with actions of the user or another owner, leaves no access and at least one owner."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core.ids import MemberId
from controlplane.rules import accounts
from controlplane.store import (
    deletions,
    device,
    device_approvals,
    invitees,
    keys,
    organizations,
    sessions,
    sign_in,
    token_families,
    users,
)
from controlplane.store.table import table
from ops.accounts import LastOwnerOf, RevokedCounts, delete_account, revoke_credentials
from tests.races.stage import Stage, clock_advanced
from tests.races.yields import only_transactions
from tests.support.asgi import DirectApi
from tests.support.cleanup import finish_deletions
from tests.support.faults import Case, Crashed, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.world import Company, Person, World

pytestmark = pytest.mark.races

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


class DeletedAccount:
    """An owner, A, whose account is deleted, and another owner, B. A signs in at an issuer and has a device."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.identity = sign_in.Claims(
            issuer="https://issuer.example",
            subject="a",
            email="ada@example.com",
            email_verified=True,
            name="Ada",
            image=None,
        )
        self.profile = sign_in.sign_in(self.identity)
        self.user_id = self.profile.user_id
        self.world = world
        self.company: Company = world.company()
        token = world.token(self.user_id)
        self.a = world.member(self.company, "owner", Person(self.user_id, "ada@example.com", "Ada", token))
        self.b = self.company.owner
        with clock_advanced(1):
            issued = device.create("assent-cli", CHALLENGE, ["projects.read"], "laptop", "198.51.100.7")
        device_approvals.approve(issued.user_code, self.user_id, ["projects.read"])
        request = device.find(issued.device_code)
        assert request is not None
        self.pair = device.redeem(request)

    def delete(self) -> Callable[[], dict[str, Any]]:
        return lambda: delete_account(self.user_id, users.find_user(self.user_id))

    def delete_own(self) -> Callable[[], None]:
        return lambda: accounts.delete_own_account(organizations.get_account(self.user_id), self.user_id)

    def demote_b(self) -> Any:
        path = f"/v1/members/{MemberId.of_user(self.company.organization_id, self.b.user_id)}"
        return self.api.patch(path, self.b.token, json_body={"role": "member"})

    def is_gone(self) -> bool:
        return not any(self.user_id in str(item) for item in self.items() if not _may_stay(item))

    def items(self) -> list[dict[str, Any]]:
        return list(table.client.scan(TableName=table.name, ConsistentRead=True)["Items"])

    def role(self, user_id: str) -> str | None:
        item = table.get(keys.member(self.company.organization_id, user_id))
        return item["role"] if item else None


def _may_stay(item: dict[str, Any]) -> bool:
    """Returns True for items that may remain: who created a key or made a change, and counts that expire in minutes."""
    return item["sk"]["S"].startswith("KEY#") or item["pk"]["S"].startswith(("AUDITLOG#", "TRIES#"))


def race(stage: Stage, acts: Callable[[DeletedAccount], list[Callable[[], Any]]], check: Callable[..., None]) -> None:
    """Runs the acts in every order. Calls `check` with the outcomes."""

    def scenario(world: World) -> Race:
        account = DeletedAccount(world, stage.api)
        return Race(acts(account), lambda outcomes: check(account, outcomes))

    stage.race(scenario)


def test_of_two_owners_one_is_deleted_or_the_other_steps_down(stage: Stage) -> None:
    def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
        deletion, demotion = outcomes
        roles = [account.role(account.user_id), account.role(account.b.user_id)]
        assert roles.count("owner") == 1
        if demotion.get().status == 200:
            assert isinstance(deletion.error, LastOwnerOf)
            assert users.find_user(account.user_id) is not None
        else:
            assert demotion.get().status == 403
            assert deletion.get()["memberships"] == 1
            assert account.is_gone()

    race(stage, lambda account: [account.delete(), account.demote_b], check)


def test_a_token_that_is_refreshed_concurrently_does_not_work(stage: Stage) -> None:
    def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
        deletion, refresh = outcomes
        assert deletion.error is None
        assert account.is_gone()
        if refresh.error is None:
            assert account.api.get("/v1/me", refresh.value.access_token).status == 401
        else:
            assert isinstance(refresh.error, token_families.UnknownRefreshToken)

    race(stage, lambda account: [account.delete(), lambda: token_families.rotate(account.pair.refresh_token)], check)


def test_a_concurrent_sign_in_gets_a_new_account_or_none(stage: Stage) -> None:
    def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
        deletion, signed_in = outcomes
        assert deletion.error is None
        assert users.find_user(account.user_id) is None
        # Between the deletion of the identity and that of the account, the address still has the account.
        assert signed_in.error is None or isinstance(signed_in.error, sign_in.AnotherIdentity)
        # The next sign-in never gets the deleted account, whatever the concurrent one got.
        later = sign_in.sign_in(account.identity)
        assert later.user_id != account.user_id

    race(stage, lambda account: [account.delete(), lambda: sign_in.sign_in(account.identity)], check)


def test_two_concurrent_deletions_count_as_one(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        account = DeletedAccount(world, stage.api)

        def check(outcomes: list[Outcome]) -> None:
            assert [outcome.error for outcome in outcomes] == [None, None]
            assert sum(outcome.value["memberships"] for outcome in outcomes) == 1
            assert account.is_gone()

        return Race([account.delete(), account.delete()], check)

    stage.race(scenario, yields_at=only_transactions)


def test_a_concurrent_sign_in_keeps_no_earlier_credential(stage: Stage) -> None:
    def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
        assert isinstance(outcomes[0].get(), RevokedCounts)
        assert account.api.get("/v1/me", account.a.token).status == 401
        with pytest.raises(token_families.UnknownRefreshToken):
            token_families.rotate(account.pair.refresh_token)

    race(
        stage,
        lambda account: [lambda: revoke_credentials(account.user_id), lambda: sessions.create(account.user_id)],
        check,
    )


def test_a_deletion_interrupted_anywhere_is_finished_by_the_next(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        account = DeletedAccount(world, stage.api)

        def check(case: Case) -> None:
            if case.fault.kind is Kind.CRASH:
                assert isinstance(case.first.error, Crashed)
            assert case.second.error is None
            assert account.is_gone()
            assert account.role(account.b.user_id) == "owner"

        return Trial(account.delete(), check)

    assert stage.faults(scenario) > 50


def test_a_deletion_with_organizations_interrupted_anywhere_is_finished_by_the_next(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        company = world.company()
        world.key(company)
        user_id = company.owner.user_id

        def check(case: Case) -> None:
            assert case.second.error is None
            finish_deletions()
            kept = ("SLUG#", "LEDGER#")
            assert not any(
                user_id in str(item) or company.organization_id in str(item)
                for key, item in stage.check_invariants().items()
                if not (key.sk if key.pk.startswith("ORG#") else key.pk).startswith(kept)
            )

        return Trial(lambda: delete_account(user_id, users.find_user(user_id), with_organizations=True), check)

    assert stage.faults(scenario, kinds=frozenset({Kind.CRASH})) > 15


class TestOwnDeletion:
    """A person deletes the account on the pages: access has ended when the request returns, without the sweep."""

    @pytest.mark.parametrize("at_once", [deletions.MEMBERSHIPS_OF_ACCOUNT, 0])
    def test_of_two_owners_one_is_deleted_or_the_other_steps_down(
        self, at_once: int, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deletions, "MEMBERSHIPS_OF_ACCOUNT", at_once)

        def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
            deletion, demotion = outcomes
            roles = [account.role(account.user_id), account.role(account.b.user_id)]
            assert roles.count("owner") == 1
            if demotion.get().status == 200:
                # Nothing was changed, not even the credentials.
                assert isinstance(deletion.error, LastOwnerOf)
                assert account.api.get("/v1/me", account.a.token).status == 200
            else:
                deletion.get()
                finish_deletions()
                assert account.is_gone()

        race(stage, lambda account: [account.delete_own(), account.demote_b], check)

    @pytest.mark.parametrize("role", ["owner", "member"])
    def test_a_membership_that_begins_concurrently_ends(self, role: organizations.Role, stage: Stage) -> None:
        """If it makes the person an owner, no organization is left to an owner that doesn't exist."""

        def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
            deletion, joining = outcomes
            deletion.get()
            assert organizations.get_account(account.user_id).memberships == []
            finish_deletions()
            assert account.is_gone()
            assert joining.error is None or isinstance(joining.error, invitees.InvitationGone)

        def acts(account: DeletedAccount) -> list[Callable[[], Any]]:
            other = account.world.company()
            made = account.world.invitation(other, "ada@example.com", role)
            return [
                account.delete_own(),
                lambda: invitees.accept_invitation(made.invitation_id, account.user_id),
            ]

        race(stage, acts, check)

    def test_a_credential_that_is_created_or_refreshed_concurrently_does_not_work(self, stage: Stage) -> None:
        def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
            deletion, signed_in, refreshed = outcomes
            deletion.get()
            given = [
                signed_in.value if signed_in.error is None else None,
                refreshed.value.access_token if refreshed.error is None else None,
                account.a.token,
                account.pair.access_token,
            ]
            for secret in filter(None, given):
                assert account.api.get("/v1/me", secret).status == 401
            assert not any(it["pk"]["S"].startswith(("FAMILY#", "DC#")) for it in account.items())

        race(
            stage,
            lambda account: [
                account.delete_own(),
                lambda: sessions.create(account.user_id),
                lambda: token_families.rotate(account.pair.refresh_token),
            ],
            check,
        )

    def test_two_concurrent_deletions_count_as_one(self, stage: Stage) -> None:
        def check(account: DeletedAccount, outcomes: list[Outcome]) -> None:
            assert [outcome.error for outcome in outcomes] == [None, None]
            assert finish_deletions() == 1
            assert account.is_gone()

        race(stage, lambda account: [account.delete_own(), account.delete_own()], check)

    def test_a_deletion_interrupted_anywhere_is_finished_by_the_sweep_or_changes_nothing(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            account = DeletedAccount(world, stage.api)

            def check(case: Case) -> None:
                finish_deletions()
                if users.find_user(account.user_id) is None:
                    assert account.is_gone()
                else:
                    assert case.first.error is not None
                    assert account.role(account.user_id) == "owner"
                    assert account.api.get("/v1/me", account.a.token).status == 200

            return Trial(account.delete_own(), check, again=lambda: None)

        assert stage.faults(scenario) > 30
