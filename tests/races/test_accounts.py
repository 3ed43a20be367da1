"""Account deletion, concurrent with actions of the user or another owner, leaves no access and at least one owner."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.access import sign_in
from controlplane.erasure import deletions
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import device, device_approvals, sessions, token_families, users
from controlplane.platform.core.ids import MemberId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from ops.accounts import delete_account, revoke_credentials
from tests.functional.device_auth.devices import VERIFIER, challenge_of
from tests.races.faults import Kind
from tests.races.schedules import every_call
from tests.races.stage import Stage, clock_advanced, faults, race
from tests.races.yields import only_transactions
from tests.support.api import Reply
from tests.support.cleanup import finish_deletions
from tests.support.world import Company, Person, World

ADA = "ada@example.com"


class Account:
    """An owner, A, whose account is deleted, and another owner, B. A signs in at an issuer and has a device."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.api, self.world = stage.api, world
        self.identity = sign_in.Claims(
            issuer="https://issuer.example", subject="a", email=ADA, email_verified=True, name="Ada", image=None
        )
        self.user_id = sign_in.sign_in(self.identity).user_id
        self.company: Company = world.company()
        self.a = world.member(self.company, "owner", Person(self.user_id, ADA, "Ada", world.token(self.user_id)))
        self.b = self.company.owner
        with clock_advanced(1):
            issued = device.create("assent-cli", challenge_of(VERIFIER), ["projects.read"], "laptop", "198.51.100.7")
        device_approvals.approve(issued.user_code, self.user_id, ["projects.read"])
        request: Any = device.find(issued.device_code)
        self.pair = device.redeem(request)

    def delete(self) -> Any:
        """Deletes the account as an operator does. Returns what was deleted."""
        return delete_account(self.user_id, users.find_user(self.user_id))

    def delete_own(self) -> int:
        """Deletes the account on the pages: access has ended when the request returns, without the sweep."""
        return deletions.delete_own_account(organizations.get_account(self.user_id), self.user_id)

    def demote_b(self) -> Reply:
        path = f"/v1/members/{MemberId.of_user(self.company.organization_id, self.b.user_id)}"
        return self.api.patch(path, self.b.token, json_body={"role": "member"})

    def refresh(self) -> str:
        return token_families.rotate(self.pair.refresh_token).access_token

    def begin_session(self) -> str:
        return sessions.create(self.user_id)

    def status(self, secret: str | None = None) -> int:
        return self.api.get("/v1/me", secret or self.a.token).status

    def items(self) -> list[dict[str, Any]]:
        return list(table.client.scan(TableName=table.name, ConsistentRead=True)["Items"])

    def check_gone(self) -> None:
        """Checks that only what may remains: who created a key or made a change, and counts that expire in minutes."""
        assert not [
            item
            for item in self.items()
            if self.user_id in str(item)
            and not (item["sk"]["S"].startswith("KEY#") or item["pk"]["S"].startswith(("AUDITLOG#", "TRIES#")))
        ]

    def owners(self) -> list[bool]:
        """Returns whether A and B are owners."""
        found = [table.get(keys.member(self.company.organization_id, it.user_id)) for it in (self.a, self.b)]
        return [item is not None and item["role"] == "owner" for item in found]


@pytest.mark.parametrize("at_once", [None, deletions.MEMBERSHIPS_OF_ACCOUNT, 0], ids=["operator", "one", "later"])
@race(LastOwnerOf, ends={200, 403})
def test_of_two_owners_one_is_deleted_or_the_other_steps_down(world, stage, monkeypatch, at_once):
    if at_once is not None:
        monkeypatch.setattr(deletions, "MEMBERSHIPS_OF_ACCOUNT", at_once)
    account = Account(world, stage)
    deletion, demotion = yield [account.delete if at_once is None else account.delete_own, account.demote_b]
    assert sorted(account.owners()) == [False, True]
    assert isinstance(deletion, LastOwnerOf) is (demotion.status == 200)
    if demotion.status == 200:
        assert users.find_user(account.user_id) is not None
        # Nothing was changed on the pages, not even the credentials.
        assert at_once is None or account.status() == 200
    else:
        assert deletion["memberships"] == 1 if at_once is None else finish_deletions() == 1
        account.check_gone()
    return demotion.status


@pytest.mark.parametrize("act", ["refresh", "begin_session"])
@race(token_families.UnknownRefreshToken, users.UnknownUser)
def test_no_credential_of_the_account_works_that_is_made_while_an_operator_deletes_it(world, stage, act):
    account = Account(world, stage)
    deleted, secret = yield [account.delete, getattr(account, act)]
    assert deleted["memberships"] == 1
    account.check_gone()
    assert not isinstance(secret, str) or account.status(secret) == 401


# Between the deletion of the identity and that of the account, the address still has the account.
@race(sign_in.AnotherIdentity)
def test_a_concurrent_sign_in_gets_a_new_account_or_none(world, stage):
    account = Account(world, stage)
    yield [account.delete, lambda: sign_in.sign_in(account.identity)]
    assert users.find_user(account.user_id) is None
    # The next sign-in never gets the deleted account, whatever the concurrent one got.
    assert sign_in.sign_in(account.identity).user_id != account.user_id


@race(yields_at=only_transactions)
def test_two_concurrent_deletions_by_operators_count_as_one(world, stage):
    account = Account(world, stage)
    deleted = yield [account.delete] * 2
    assert sum(counted["memberships"] for counted in deleted) == 1
    account.check_gone()


@race()
def test_a_concurrent_sign_in_keeps_no_earlier_credential(world, stage):
    account = Account(world, stage)
    yield [lambda: revoke_credentials(account.user_id), account.begin_session]
    assert account.status() == 401
    with pytest.raises(token_families.UnknownRefreshToken):
        account.refresh()


@pytest.mark.parametrize("role", ["owner", "member"])
@race(invitees.InvitationGone)
def test_a_membership_that_begins_concurrently_ends(world, stage, role):
    """If it makes the person an owner, no organization is left to an owner that doesn't exist."""
    account = Account(world, stage)
    made = world.invitation(world.company(), ADA, role)
    deletion, _ = yield [
        account.delete_own,
        lambda: invitees.accept_invitation(made.invitation_id, account.user_id),
    ]
    assert isinstance(deletion, int)
    assert organizations.get_account(account.user_id).memberships == []
    finish_deletions()
    account.check_gone()


@race(token_families.UnknownRefreshToken, users.UnknownUser)
def test_no_credential_works_that_is_made_while_a_person_deletes_the_account(world, stage):
    account = Account(world, stage)
    _, *given = yield [account.delete_own, account.begin_session, account.refresh]
    secrets = [it for it in given if isinstance(it, str)] + [account.a.token, account.pair.access_token]
    assert {account.status(secret) for secret in secrets} == {401}
    assert not any(it["pk"]["S"].startswith(("FAMILY#", "DC#")) for it in account.items())


@race()
def test_two_concurrent_deletions_by_the_person_count_as_one(world, stage):
    account = Account(world, stage)
    yield [account.delete_own] * 2
    assert finish_deletions() == 1
    account.check_gone()


@faults(50, breaks=every_call)
def test_a_deletion_interrupted_anywhere_is_finished_by_the_next(world, stage):
    account = Account(world, stage)
    case = yield account.delete
    case.second.get()
    account.check_gone()
    assert account.owners() == [False, True]


@faults(15, kinds=frozenset({Kind.CRASH}), breaks=every_call)
def test_a_deletion_with_organizations_interrupted_anywhere_is_finished_by_the_next(world, stage):
    company = world.company()
    world.key(company)
    user_id = company.owner.user_id
    case = yield lambda: delete_account(user_id, users.find_user(user_id), with_organizations=True)
    case.second.get()
    finish_deletions()
    assert not any(
        user_id in str(item) or company.organization_id in str(item)
        for key, item in stage.check_invariants().items()
        if not (key.sk if key.pk.startswith("ORG#") else key.pk).startswith(("SLUG#", "LEDGER#"))
    )


@faults(30, breaks=every_call)
def test_a_persons_deletion_interrupted_anywhere_is_finished_by_the_sweep_or_changes_nothing(world, stage):
    account = Account(world, stage)
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    case = yield account.delete_own, nothing
    finish_deletions()
    if users.find_user(account.user_id) is None:
        account.check_gone()
    else:
        assert case.first.error is not None
        assert account.owners()[0]
        assert account.status() == 200
