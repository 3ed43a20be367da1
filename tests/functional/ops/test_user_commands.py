"""`assent-ops user`."""

import pytest

from controlplane.store import users
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.world import World, table_dump


class TestCreate:
    def test_makes_an_account_and_says_what_it_is(self, ops: Ops):
        made = ops("user", "create", "Ada@Example.com", "--name", "Ada").document
        assert made == {
            "userId": made["userId"],
            "email": "ada@example.com",
            "name": "Ada",
            "image": None,
            "savedOrganizationId": None,
            "createdAt": "2026-03-04T05:06:07.000Z",
        }
        profile = users.find_user_by_email("ada@example.com")
        assert profile is not None
        assert profile["userId"] == made["userId"]

    def test_an_address_has_one_account_whatever_its_case(self, ops: Ops, world: World):
        world.person("ada@example.com")
        before = table_dump()
        outcome = ops("user", "create", "ADA@example.com", "--name", "Ada")
        assert outcome.exit_code == 4
        assert outcome.error["code"] == "CONFLICT"
        assert table_dump() == before

    @pytest.mark.parametrize(
        "email",
        [
            "",
            "ada",
            "ada@",
            "@example.com",
            "a da@example.com",
            "a\x1b@b.example",
            "a@b@c",
            "ada@localhost",
            " ada@example.com",
            "x" * 64 + "@" + "a.b" * 70 + ".example",
        ],
    )
    def test_what_is_no_address_is_a_wrong_command_line(self, ops: Ops, email: str):
        outcome = ops("user", "create", email, "--name", "Ada")
        assert outcome.exit_code == 2
        assert outcome.error["code"] == "USAGE"
        assert table_dump() == []

    @pytest.mark.parametrize("name", ["", "  ", "a\x1b[31mb", "x" * 101])
    def test_a_name_is_what_the_api_takes_as_one(self, ops: Ops, name: str):
        outcome = ops("user", "create", "ada@example.com", "--name", name)
        assert outcome.exit_code == 2
        assert table_dump() == []


class TestShow:
    def test_finds_by_address_and_by_id(self, ops: Ops, world: World):
        company = world.company()
        by_id = ops("user", "show", company.owner.user_id).document
        assert by_id == ops("user", "show", company.owner.email.upper()).document
        assert by_id["organizations"] == [
            {"organizationId": company.organization_id, "slug": company.slug, "name": "Acme", "role": "owner"}
        ]

    @pytest.mark.parametrize("reference", ["nobody@example.com", "usr_0000000000000000", "usr_", "nobody", "", "USR#x"])
    def test_exit_code_3_for_nobody(self, ops: Ops, reference: str):
        outcome = ops("user", "show", reference)
        assert outcome.exit_code == 3
        assert outcome.error["code"] == "NOT_FOUND"

    def test_what_strangers_wrote_drives_no_terminal_and_is_no_markup(self, plain: Ops):
        users.create_user("ada@example.com", "[red]Ada[/red]\x1b]0;owned\x07")
        shown = plain("user", "show", "ada@example.com")
        assert "[red]Ada[/red]\\u001b]0;owned\\u0007" in shown.stdout
        assert "\x1b" not in shown.stdout


class TestSetOrganization:
    def test_is_used_where_a_request_names_none(self, ops: Ops, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        assert api.get("/v1/me", first.owner.token).data["activeOrganizationId"] is None
        shown = ops("user", "set-organization", first.owner.email, second.slug).document
        assert shown["savedOrganizationId"] == second.organization_id
        assert api.get("/v1/me", first.owner.token).data["activeOrganizationId"] == second.organization_id

    def test_is_refused_outside_their_memberships(self, ops: Ops, world: World):
        company, stranger = world.company(), world.person()
        before = table_dump()
        assert ops("user", "set-organization", stranger.email, company.slug).exit_code == 1
        assert table_dump() == before

    def test_exit_code_3_for_no_organization_and_for_nobody(self, ops: Ops, world: World):
        company = world.company()
        assert ops("user", "set-organization", company.owner.email, "nowhere").exit_code == 3
        assert ops("user", "set-organization", "nobody@example.com", company.slug).exit_code == 3
