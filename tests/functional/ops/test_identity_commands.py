"""`assent-ops user` identities, move-identity, set-email."""

import pytest

from controlplane.store import identities, keys, organizations, sessions, sign_in, users
from controlplane.store.identities import Subject
from controlplane.store.sign_in import AnotherIdentity, Claims
from controlplane.store.table import table
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import World, get_profile, table_dump

ISSUER = "https://issuer.example"


def identity(subject: str, email: str = "ada@example.com") -> Claims:
    return Claims(issuer=ISSUER, subject=subject, email=email, email_verified=True, name="Ada", image=None)


@pytest.fixture
def user_id() -> str:
    return sign_in.sign_in(identity("old")).user_id


class TestIdentities:
    def test_user_identities_lists_issuer_and_subject(self, ops: Ops, user_id: str):
        (shown,) = ops("user", "identities", user_id).document
        assert (shown["issuer"], shown["subject"]) == (ISSUER, "old")

    def test_an_account_without_a_sign_in_has_none(self, ops: Ops, world: World):
        assert ops("user", "identities", world.person().email).document == []

    def test_user_identities_exits_3_for_an_unknown_user(self, ops: Ops):
        assert ops("user", "identities", "unknown@example.com").exit_code == 3


class TestToSubject:
    def move(self, ops: Ops, *more: str):
        return ops("user", "move-identity", "ada@example.com", "old", "--to-subject", "new", "--yes", *more)

    def test_moving_an_identity_admits_the_new_subject_and_rejects_the_old_one(self, ops: Ops, api: Api, user_id: str):
        session = sessions.create(user_id)
        with pytest.raises(AnotherIdentity):
            sign_in.sign_in(identity("new"))
        document = self.move(ops).document
        assert (document["userId"], document["subject"], document["tokens"]) == (user_id, "new", 1)
        assert api.get("/v1/me", session).status == 401
        assert sign_in.sign_in(identity("new")).user_id == user_id
        with pytest.raises(AnotherIdentity):
            sign_in.sign_in(identity("old"))

    def test_moving_an_identity_can_be_repeated(self, ops: Ops, user_id: str):
        self.move(ops)
        before = table_dump()
        assert self.move(ops).document["tokens"] == 0
        assert table_dump() == before

    def test_moving_an_identity_that_several_issuers_have_requires_the_issuer(self, ops: Ops, user_id: str):
        other = Subject("https://other.example", "old")
        table.transact(identities.first_legs(other, user_id), PREPARED)
        before = table_dump()
        assert self.move(ops).exit_code == 3
        assert table_dump() == before
        assert self.move(ops, "--issuer", ISSUER).exit_code == 0

    def test_moving_an_identity_exits_4_if_the_subject_has_an_account(self, ops: Ops, user_id: str):
        sign_in.sign_in(identity("new", "grace@example.com"))
        before = table_dump()
        assert self.move(ops).exit_code == 4
        assert table_dump() == before

    def test_moving_an_identity_exits_3_for_an_identity_of_another_account(self, ops: Ops, world: World, user_id: str):
        world.person("grace@example.com")
        words = ("user", "move-identity", "grace@example.com", "old", "--to-subject", "new", "--yes")
        assert ops(*words).exit_code == 3
        assert ops(*words, "--issuer", ISSUER).exit_code == 3

    def test_moving_an_identity_asks_first_and_takes_one_target(self, ops: Ops, user_id: str):
        before = table_dump()
        assert ops("user", "move-identity", user_id, "old", "--to-subject", "new").exit_code == 2
        assert ops("user", "move-identity", user_id, "old", "--yes").exit_code == 2
        words = ("--to-subject", "new", "--to-user", user_id, "--yes")
        assert ops("user", "move-identity", user_id, "old", *words).exit_code == 2
        assert ops("user", "move-identity", user_id, "old", "--to-user", user_id, "--yes").exit_code == 2
        assert table_dump() == before


class TestToUser:
    def test_an_identity_moved_to_a_user_signs_in_to_that_account(self, ops: Ops, api: Api, world: World, user_id: str):
        other = world.person("grace@example.com")
        session = sessions.create(user_id)
        words = ("user", "move-identity", user_id, "old", "--to-user", other.email, "--yes")
        assert ops(*words).document["userId"] == other.user_id
        assert api.get("/v1/me", session).status == 401
        assert identities.list_identities(user_id) == []
        assert sign_in.sign_in(identity("old", "grace@example.com")).user_id == other.user_id
        assert ops(*words).document["userId"] == other.user_id

    def test_moving_to_a_user_exits_4_if_the_account_has_an_identity_of_the_issuer(self, ops: Ops, user_id: str):
        other = sign_in.sign_in(identity("other", "grace@example.com")).user_id
        before = table_dump()
        words = ("user", "move-identity", user_id, "old", "--to-user", other, "--yes")
        assert ops(*words).exit_code == 4
        assert table_dump() == before


class TestSetEmail:
    def test_set_email_changes_the_account_and_its_rosters(self, ops: Ops, user_id: str):
        made = organizations.create_organization("Acme", "acme", user_id)
        shown = ops("user", "set-email", "ada@example.com", "Countess@example.com", "--yes").document
        assert shown["email"] == "countess@example.com"
        assert table.get(keys.member(made.organization_id, user_id))["email"] == "countess@example.com"
        assert users.find_user_by_email("ada@example.com") is None
        assert get_profile("countess@example.com").user_id == user_id

    def test_set_email_frees_the_old_address(self, ops: Ops, user_id: str):
        ops("user", "set-email", user_id, "former@example.com", "--yes")
        assert sign_in.sign_in(identity("new")).user_id != user_id

    def test_set_email_refuses_a_taken_or_invalid_address(self, ops: Ops, world: World, user_id: str):
        world.person("grace@example.com")
        before = table_dump()
        assert ops("user", "set-email", user_id, "grace@example.com", "--yes").exit_code == 4
        assert ops("user", "set-email", user_id, "\u212aate@example.com", "--yes").exit_code == 2
        assert ops("user", "set-email", user_id, "new@example.com").exit_code == 2
        assert table_dump() == before
