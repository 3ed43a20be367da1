"""`assent-ops user`."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import (
    codec,
    device,
    device_approvals,
    keys,
    mail_addresses,
    mail_choices,
    organizations,
    sessions,
    sign_in,
    token_families,
    users,
)
from controlplane.store.table import Put, table
from tests.functional.device_auth.devices import get_request
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.populated_organization import kinds_containing
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


class TestCreate:
    def test_user_create_creates_an_account_and_prints_it(self, ops: Ops):
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
        assert profile.user_id == made["userId"]

    def test_an_address_has_one_account_in_any_letter_case(self, ops: Ops, world: World):
        world.person("ada@example.com")
        before = table_dump()
        outcome = ops("user", "create", "ADA@example.com", "--name", "Ada")
        assert outcome.exit_code == 4
        assert outcome.error["code"] == "CONFLICT"
        assert table_dump() == before

    @each(
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
            "\u212aate@corp.example",
            " ada@example.com",
            "x" * 64 + "@" + "a.b" * 70 + ".example",
        ],
    )
    def test_user_create_exits_2_for_an_invalid_address(self, ops: Ops, email: str):
        outcome = ops("user", "create", email, "--name", "Ada")
        assert outcome.exit_code == 2
        assert outcome.error["code"] == "USAGE"
        assert table_dump() == []

    @each("name", ["", "  ", "a\x1b[31mb", "x" * 101])
    def test_user_create_takes_the_same_names_as_the_api(self, ops: Ops, name: str):
        outcome = ops("user", "create", "ada@example.com", "--name", name)
        assert outcome.exit_code == 2
        assert table_dump() == []


class TestShow:
    def test_user_show_finds_by_address_and_by_id(self, ops: Ops, world: World):
        company = world.company()
        by_id = ops("user", "show", company.owner.user_id).document
        assert by_id == ops("user", "show", company.owner.email.upper()).document
        assert by_id["organizations"] == [
            {"organizationId": company.organization_id, "slug": company.slug, "name": "Acme", "role": "owner"}
        ]

    @each("reference", ["unknown@example.com", "usr_0000000000000000", "usr_", "unknown", "", "USR#x"])
    def test_user_show_exits_3_for_an_unknown_user(self, ops: Ops, reference: str):
        outcome = ops("user", "show", reference)
        assert outcome.exit_code == 3
        assert outcome.error["code"] == "NOT_FOUND"

    def test_user_show_escapes_control_characters_and_markup(self, ops_text: Ops):
        users.create_user("ada@example.com", "[red]Ada[/red]\x1b]0;owned\x07")
        shown = ops_text("user", "show", "ada@example.com")
        assert "[red]Ada[/red]\\u001b]0;owned\\u0007" in shown.stdout
        assert "\x1b" not in shown.stdout


class TestSetOrganization:
    def test_the_set_organization_is_used_by_default(self, ops: Ops, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        assert api.get("/v1/me", first.owner.token).data["activeOrganizationId"] == first.organization_id
        shown = ops("user", "set-organization", first.owner.email, second.slug).document
        assert shown["savedOrganizationId"] == second.organization_id
        assert api.get("/v1/me", first.owner.token).data["activeOrganizationId"] == second.organization_id

    def test_set_organization_refuses_one_without_a_membership(self, ops: Ops, world: World):
        company, stranger = world.company(), world.person()
        before = table_dump()
        assert ops("user", "set-organization", stranger.email, company.slug).exit_code == 1
        assert table_dump() == before

    def test_set_organization_exits_3_for_an_unknown_organization_or_user(self, ops: Ops, world: World):
        company = world.company()
        assert ops("user", "set-organization", company.owner.email, "nowhere").exit_code == 3
        assert ops("user", "set-organization", "unknown@example.com", company.slug).exit_code == 3


class Guest:
    """A person with every kind of credential: a sign-in, a session, a token, a device, and a pending device request."""

    def __init__(self, world: World) -> None:
        self.email = "ada@example.com"
        self.identity = sign_in.Claims(
            issuer="https://issuer.example",
            subject="subject",
            email=self.email,
            email_verified=True,
            name="Ada",
            image=None,
        )
        self.user_id = sign_in.sign_in(self.identity).user_id
        self.waiting = self._approved("laptop")
        pair = device.redeem(get_request(self._approved("desktop")))
        self.refresh_token = pair.refresh_token
        self.bearers = [sessions.create(self.user_id), world.token(self.user_id), pair.access_token]

    def _approved(self, name: str) -> str:
        issued = device.create(
            "assent-cli", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", ["projects.read"], name, "::1"
        )
        device_approvals.approve(issued.user_code, self.user_id, ["projects.read"])
        return issued.device_code

    def statuses(self, api: Api) -> list[int]:
        return [api.get("/v1/me", bearer).status for bearer in self.bearers]

    def assert_out(self, api: Api) -> None:
        assert self.statuses(api) == [401, 401, 401]
        waiting = device.find(self.waiting)
        assert waiting is None or waiting.status == "denied"
        with pytest.raises(token_families.UnknownRefreshToken):
            token_families.rotate(self.refresh_token)


def recorded(act: Callable[[], Any]) -> list[str]:
    """Returns the operations that a command calls on the table, in order."""
    operations: list[str] = []

    def around(call: Call, proceed: Proceed) -> Any:
        operations.append(call.operation)
        return proceed()

    with intercepted(table.client, around):
        assert act().exit_code == 0
    return operations


@pytest.fixture
def guest(world: World) -> Guest:
    return Guest(world)


class TestRevoke:
    def test_user_revoke_ends_every_credential_at_once(self, ops: Ops, api: Api, guest: Guest):
        assert guest.statuses(api) == [200, 200, 200]
        done = ops("user", "revoke", guest.email, "--yes").document
        # A session and a token; a device that redeemed its code, and one that hasn't yet.
        assert done == {"userId": guest.user_id, "email": guest.email, "tokens": 2, "devices": 2, "signIns": 0}
        guest.assert_out(api)

    def test_user_revoke_scans_nothing(self, ops: Ops, guest: Guest):
        assert "Scan" not in recorded(lambda: ops("user", "revoke", guest.email, "--yes"))

    def test_user_revoke_keeps_the_account_and_its_identity(self, ops: Ops, guest: Guest):
        ops("user", "revoke", guest.user_id, "--yes")
        assert sign_in.sign_in(guest.identity).user_id == guest.user_id

    def test_user_revoke_leaves_other_users_alone(self, ops: Ops, api: Api, world: World, guest: Guest):
        company = world.company()
        key = world.key(company)
        ops("user", "revoke", guest.user_id, "--yes")
        assert api.get("/v1/me", company.owner.token).status == api.get("/v1/me", key).status == 200

    def test_user_revoke_again_finds_nothing(self, ops: Ops, guest: Guest):
        ops("user", "revoke", guest.user_id, "--yes")
        before = table_dump()
        done = ops("user", "revoke", guest.user_id, "--yes").document
        assert (done["tokens"], done["devices"]) == (0, 0)
        assert table_dump() == before

    def test_user_revoke_asks_first(self, ops: Ops, api: Api, guest: Guest):
        assert ops("user", "revoke", guest.email).exit_code == 2
        assert guest.statuses(api) == [200, 200, 200]

    def test_user_revoke_exits_3_for_an_unknown_user(self, ops: Ops):
        assert ops("user", "revoke", "unknown@example.com", "--yes").exit_code == 3


class TestDelete:
    def test_user_delete_removes_the_account_and_every_credential(self, ops: Ops, api: Api, world: World, guest: Guest):
        company = world.company()
        world.member(company, "admin", Person(guest.user_id, guest.email, "Ada", ""))
        invited = world.company()
        api.post("/v1/invitations", invited.owner.token, json_body={"email": "ADA@example.com", "role": "member"})
        done = ops("user", "delete", guest.email, "--yes").document
        assert done == {
            "deleted": True,
            "userId": guest.user_id,
            "tokens": 2,
            "devices": 2,
            "signIns": 1,
            "memberships": 1,
            "invitations": 1,
            "erased": {"counter": 1, "invitation": 1},
        }
        guest.assert_out(api)

    def test_user_delete_ends_every_credential_before_it_scans_for_texts(self, ops: Ops, api: Api, guest: Guest):
        installed = []

        def around(call, proceed):
            if call.operation == "Scan" and not installed:
                installed.append(None)
                guest.assert_out(api)
                assert "FAMILY" not in kinds_containing(guest.user_id)
            return proceed()

        with intercepted(table.client, around):
            ops("user", "delete", guest.email, "--yes")
        assert installed
        assert "desktop" not in str(table_dump())
        left = {item["pk"]["S"].partition("#")[0] for item in table_dump() if guest.user_id in str(item)}
        assert left == set()

    def test_user_delete_leaves_nothing_but_the_id(self, ops: Ops, api: Api, world: World, guest: Guest):
        company = world.company()
        world.member(company, "admin", Person(guest.user_id, guest.email, "Ada King", ""))
        session = guest.bearers[0]
        assert api.post("/v1/api-keys", session, json_body={"name": "deploy"}).status == 201
        mail_choices.save_choices(guest.user_id, {company.organization_id: []})
        mail_addresses.stop(guest.email, "returned")
        table.put(Put({**keys.mail(guest.user_id, "3q8")._asdict(), "about": "invitation"}), PREPARED)
        ops("user", "delete", guest.email, "--yes")
        assert not [item for item in table_dump() if item["pk"]["S"].startswith("MAIL")]
        assert guest.email not in str(table_dump())
        assert "Ada King" not in str(table_dump())
        # The key that they created and the audit log keep their ID.
        left = {item["pk"]["S"].partition("#")[0] for item in table_dump() if guest.user_id in str(item)}
        assert left == {"AUDITLOG", "ORG", "KH"}

    def test_a_deleted_users_address_can_be_used_for_a_new_account(self, ops: Ops, guest: Guest):
        ops("user", "delete", guest.email, "--yes")
        assert sign_in.sign_in(guest.identity).user_id != guest.user_id

    def test_user_delete_refuses_a_last_owner_and_lists_the_organizations(
        self, ops: Ops, api: Api, world: World, guest: Guest
    ):
        person = Person(guest.user_id, guest.email, "Ada", "")
        first, second = world.company(owner=person), world.company(owner=person)
        world.member(world.company(owner=person), "owner")
        before = table_dump()
        outcome = ops("user", "delete", guest.email, "--yes")
        assert outcome.exit_code == 1
        assert f"last owner of {', '.join(sorted((first.slug, second.slug)))}." in outcome.error["message"]
        assert table_dump() == before
        assert guest.statuses(api) == [200, 200, 200]

    def test_user_delete_of_one_of_several_owners_keeps_the_others(self, ops: Ops, world: World, guest: Guest):
        company = world.company()
        world.member(company, "owner", Person(guest.user_id, guest.email, "Ada", ""))
        ops("user", "delete", guest.email, "--yes")
        organization = organizations.find_organization(company.organization_id)
        assert organization is not None
        assert organization.owners == 1
        assert table.get(keys.member(company.organization_id, guest.user_id)) is None

    def test_user_delete_leaves_other_users_alone(self, ops: Ops, api: Api, world: World, guest: Guest):
        company = world.company()
        ops("user", "delete", guest.email, "--yes")
        assert api.get("/v1/me", company.owner.token).status == 200

    def test_an_interrupted_user_delete_is_finished_by_id(self, ops: Ops, api: Api, world: World, guest: Guest):
        table.client.delete_item(TableName=table.name, Key=codec.encode_item(keys.user(guest.user_id)._asdict()))
        table.client.delete_item(TableName=table.name, Key=codec.encode_item(keys.user_email(guest.email)._asdict()))
        assert ops("user", "delete", guest.email, "--yes").exit_code == 3
        assert ops("user", "delete", guest.user_id, "--yes").document["signIns"] == 1
        guest.assert_out(api)
        assert ops("user", "delete", guest.user_id, "--yes").exit_code == 3

    def test_user_delete_asks_first(self, ops: Ops, guest: Guest):
        before = table_dump()
        assert ops("user", "delete", guest.email).exit_code == 2
        assert table_dump() == before

    @each("reference", ["unknown@example.com", "usr_0000000000000000", "unknown", ""])
    def test_user_delete_exits_3_for_an_unknown_user(self, ops: Ops, reference: str):
        assert ops("user", "delete", reference, "--yes").exit_code == 3
