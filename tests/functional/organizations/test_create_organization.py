"""POST /v1/organizations: creates an organization that the caller owns."""

import re
from typing import Any

import pytest

from controlplane.core.ids import MemberId
from controlplane.core.settings import settings
from controlplane.store import keys, organizations
from controlplane.store.organizations import Membership
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import ALL_SCOPES, Person, World, table_dump

PATH = "/v1/organizations"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.fixture
def person(world: World) -> Person:
    return world.person(name="Ada Lovelace")


def create(api: Api, person: Person, **body: Any) -> Reply:
    return api.post(PATH, person.token, json_body=body)


class Test201:
    def test_the_caller_owns_the_organization(self, api: Api, person: Person):
        reply = create(api, person, name="Acme Shops", slug="acme")
        assert reply.status == 201
        organization_id = reply.data["id"]
        assert re.fullmatch(r"org_[0-9a-z]{16}", organization_id)
        assert reply.data == {"id": organization_id, "slug": "acme", "name": "Acme Shops", "role": "owner"}
        assert api.get(f"{PATH}/{organization_id}", person.token).data == reply.data

    def test_stores_organization_slug_billing_and_both_sides_of_the_membership(
        self, api: Api, person: Person, now: FakeClock
    ):
        organization_id = create(api, person, name="Acme", slug="acme").data["id"]
        assert table.get(keys.organization(organization_id)) == {
            **keys.organization(organization_id)._asdict(),
            "organizationId": organization_id,
            "name": "Acme",
            "slug": "acme",
            "plan": "free",
            "owners": 1,
            "keys": 0,
            "keyVersion": 0,
            "projects": 0,
            "createdAt": "2026-03-04T05:06:07.000Z",
        }
        slug = table.get(keys.organization_slug("acme"))
        assert slug is not None
        assert slug["organizationId"] == organization_id
        billing = table.get(keys.billing(organization_id))
        assert billing is not None
        assert billing["credits"] == 0
        invitations = table.get(keys.invitations_made(organization_id))
        assert invitations is not None
        assert invitations["made"] == 0
        roster = table.get(keys.member(organization_id, person.user_id))
        assert roster is not None
        assert (roster["role"], roster["name"], roster["email"]) == ("owner", "Ada Lovelace", person.email)
        assert organizations.find_membership(person.user_id, organization_id) == Membership(
            organization_id=organization_id, slug="acme", name="Acme", role="owner"
        )
        invariants.check_all(invariants.read_items(table.client, table.name))

    def test_a_person_can_own_several_organizations(self, api: Api, person: Person):
        for slug in ("first", "second"):
            assert create(api, person, name="Acme", slug=slug).status == 201
        assert [item["organizationSlug"] for item in api.get(PATH, person.token).data] == ["first", "second"]

    def test_the_name_is_trimmed_before_its_length_is_checked(self, api: Api, person: Person):
        assert create(api, person, name="\u00a0 " + "x" * 100 + " \t\n", slug="acme").data["name"] == "x" * 100

    @pytest.mark.parametrize("name", ["x", "x" * 100, "Ромашка", "\U0001f469\u200d\U0001f680 Rockets", "A\u0301cme"])
    def test_accepts_names_in_any_script_and_of_both_length_limits(self, api: Api, person: Person, name: str):
        assert create(api, person, name=name, slug="acme").data["name"] == name

    @each("slug", ["abc", "a-b", "123", "a" * 20, "a-b-c-d-e-f-g-h-i-j2", "0-0"])
    def test_accepts_slugs_of_every_allowed_form(self, api: Api, person: Person, slug: str):
        assert create(api, person, name="Acme", slug=slug).data["slug"] == slug

    @each(
        ("name", "slug"),
        [
            ("Acme Shops", "acme-shops"),
            ("  Größe & Søn  ", "grosse-son"),
            ("Ada's Shop", "adas-shop"),
            ("ABC", "abc"),
            ("İstanbul Đại", "istanbul-dai"),
            ("--A__B??C--", "a-b-c"),
            ("The Very Long Name Of A Company", "the-very-long-name-o"),
            ("Nineteen letters xx yy", "nineteen-letters-xx"),
            ("\uff21\uff23\uff2d\uff25", "acme"),
        ],
    )
    def test_derives_a_slug_from_the_name(self, api: Api, person: Person, name: str, slug: str):
        assert create(api, person, name=name).data["slug"] == slug

    @pytest.mark.parametrize(("name", "start"), [("AB", "ab-"), ("Ромашка", "org-"), ("\U0001f680", "org-")])
    def test_derives_a_stable_slug_for_a_name_without_enough_letters(self, api: Api, person: Person, name, start):
        slug = create(api, person, name=name).data["slug"]
        assert slug.startswith(start)
        assert SLUG.fullmatch(slug)
        assert 3 <= len(slug) <= 20
        assert create(api, person, name=name).error["details"]["slug"] == slug

    def test_a_null_slug_counts_as_absent(self, api: Api, person: Person):
        assert create(api, person, name="Acme", slug=None).data["slug"] == "acme"

    def test_ignores_unknown_fields(self, api: Api, person: Person):
        reply = create(api, person, name="Acme", role="member", plan="enterprise", organizationId="org_x", credits=9)
        organization = table.get(keys.organization(reply.data["id"]))
        assert organization is not None
        assert (reply.data["role"], organization["plan"]) == ("owner", "free")

    def test_ignores_an_organization_named_in_the_query(self, api: Api, world: World, person: Person):
        other = world.company()
        reply = api.post(f"{PATH}?organizationId={other.organization_id}", person.token, json_body={"name": "Mine"})
        assert reply.status == 201
        assert reply.data["id"] != other.organization_id

    def test_a_repeated_idempotency_key_returns_the_first_response(self, api: Api, person: Person):
        headers = {"Idempotency-Key": "7a3f"}
        first = api.post(PATH, person.token, json_body={"name": "Acme"}, headers=headers)
        second = api.post(PATH, person.token, json_body={"name": "Acme"}, headers=headers)
        assert (second.status, second.data) == (201, first.data)
        assert second.headers["idempotency-replayed"] == "true"
        assert len(api.get(PATH, person.token).data) == 1

    def test_a_refused_request_frees_its_idempotency_key(self, api: Api, world: World, person: Person):
        create(api, world.person(), name="Acme")
        headers = {"Idempotency-Key": "7a3f"}
        for _ in range(2):
            assert api.post(PATH, person.token, json_body={"name": "Acme"}, headers=headers).code == "CONFLICT"
        assert api.post(PATH, person.token, json_body={"name": "Acme Shops"}, headers=headers).status == 201

    def test_starts_on_the_free_plan_without_api_access(self, api: Api, person: Person):
        organization_id = create(api, person, name="Acme").data["id"]
        organization = table.get(keys.organization(organization_id))
        assert organization is not None
        assert organization["plan"] == "free"


class Test400:
    @each(
        ("body", "path"),
        [
            ({}, ["name"]),
            ({"name": None}, ["name"]),
            ({"name": ""}, ["name"]),
            ({"name": " \t\n\u2003"}, ["name"]),
            ({"name": "x" * 101}, ["name"]),
            ({"name": "x" * 500_000}, ["name"]),
            ({"name": 7}, ["name"]),
            ({"name": True}, ["name"]),
            ({"name": ["Acme"]}, ["name"]),
            ({"name": {"a": 1}}, ["name"]),
            ({"name": "A\x07cme"}, ["name"]),
            ({"name": "A\ncme"}, ["name"]),
            ({"name": "A\x85cme"}, ["name"]),
            ({"name": "A\u2028cme"}, ["name"]),
            ({"name": "A\u202ecme"}, ["name"]),
            ({"name": "\u200b\u200d"}, ["name"]),
            ({"name": "Acme", "slug": ""}, ["slug"]),
            ({"name": "Acme", "slug": "ab"}, ["slug"]),
            ({"name": "Acme", "slug": "a" * 21}, ["slug"]),
            ({"name": "Acme", "slug": "Acme"}, ["slug"]),
            ({"name": "Acme", "slug": "-acme"}, ["slug"]),
            ({"name": "Acme", "slug": "acme-"}, ["slug"]),
            ({"name": "Acme", "slug": "ac--me"}, ["slug"]),
            ({"name": "Acme", "slug": "ac me"}, ["slug"]),
            ({"name": "Acme", "slug": " acme "}, ["slug"]),
            ({"name": "Acme", "slug": "acme\n"}, ["slug"]),
            ({"name": "Acme", "slug": "ac_me"}, ["slug"]),
            ({"name": "Acme", "slug": "ac#me"}, ["slug"]),
            ({"name": "Acme", "slug": "äcme"}, ["slug"]),
            ({"name": "Acme", "slug": "\u0661\u0662\u0663"}, ["slug"]),
            ({"name": "Acme", "slug": 123}, ["slug"]),
            ({"name": "Acme", "slug": ["acme"]}, ["slug"]),
        ],
    )
    def test_returns_400_for_a_missing_or_invalid_field(self, api: Api, person: Person, body: Any, path: list[str]):
        before = len(table_dump())
        reply = api.post(PATH, person.token, json_body=body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["path"] for problem in reply.error["details"]] == [path]
        assert len(table_dump()) == before

    @each(
        "raw",
        [
            b"",
            b"null",
            b"[]",
            b'"Acme"',
            b"7",
            b"{",
            b'{"name": "A", "name": "B"}',
            b'{"name": "A\\u0000"}',
            b'{"name": "\\ud800"}',
            b'{"name": "\xff"}',
            b'{"name": NaN}',
            b'{"name": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        ],
    )
    def test_returns_400_for_an_invalid_body(self, api: Api, person: Person, raw: bytes):
        before = len(table_dump())
        assert api.post(PATH, person.token, raw_body=raw).code == "INVALID_PAYLOAD"
        assert len(table_dump()) == before


class Test401:
    def test_returns_401_without_revealing_anything_about_the_body(self, api: Api):
        assert api.post(PATH, json_body={"name": 7}).code == "UNAUTHORIZED"
        assert table_dump() == []


class Test403:
    def test_returns_403_for_an_api_key(self, api: Api, world: World):
        key = world.key(world.company())
        before = len(table_dump())
        reply = api.post(PATH, key, json_body={"name": 7})
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.error["details"] == {"requiredScope": "organizations.write"}
        assert len(table_dump()) == before

    def test_returns_403_without_the_scope(self, api: Api, world: World, person: Person):
        token = world.token(person.user_id, [scope for scope in ALL_SCOPES if scope != "organizations.write"])
        reply = api.post(PATH, token, json_body={"name": "Acme"})
        assert reply.error["details"] == {"requiredScope": "organizations.write"}
        assert "organizations.write" in (reply.challenge or "")


class Test409:
    def test_a_taken_slug_returns_409_with_three_free_ones(self, api: Api, world: World, person: Person):
        world.company()
        create(api, person, name="Umbra", slug="umbra")
        before = len(table_dump())
        reply = create(api, world.person(), name="Other", slug="umbra")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        details = reply.error["details"]
        assert details == {"field": "slug", "slug": "umbra", "suggestions": ["umbra-2", "umbra-3", "umbra-4"]}
        assert len(table_dump()) == before + 4  # the second person: profile, address, token and its entry
        for slug in details["suggestions"]:
            assert create(api, person, name="Umbra", slug=slug).status == 201

    def test_suggestions_are_free_and_valid(self, api: Api, person: Person):
        slug = "a" * 17 + "-bc"
        assert create(api, person, name="Acme", slug=slug).status == 201
        for number in range(2, 8):
            assert create(api, person, name="Acme", slug="a" * 17 + f"-{number}").status in {201, 409}
        suggestions = create(api, person, name="Acme", slug=slug).error["details"]["suggestions"]
        assert len(set(suggestions)) == 3
        for suggestion in suggestions:
            assert SLUG.fullmatch(suggestion)
            assert len(suggestion) <= 20
            assert create(api, person, name="Acme", slug=suggestion).status == 201

    def test_suggests_random_slugs_if_all_numbers_are_taken(self, api: Api, person: Person):
        for slug in ["acme", *(f"acme-{number}" for number in range(2, 9))]:
            assert create(api, person, name="Acme", slug=slug).status == 201
        suggestions = create(api, person, name="Acme", slug="acme").error["details"]["suggestions"]
        assert len(set(suggestions)) == 3
        assert all(re.fullmatch(r"acme-[0-9a-f]{4}", suggestion) for suggestion in suggestions)

    def test_a_derived_slug_that_is_taken_returns_409_too(self, api: Api, world: World, person: Person):
        create(api, person, name="Acme")
        assert create(api, world.person(), name="ACME!").error["details"]["slug"] == "acme"

    def test_a_repeated_request_creates_no_second_organization(self, api: Api, person: Person):
        first = create(api, person, name="Acme")
        assert create(api, person, name="Acme").code == "CONFLICT"
        assert [item["organizationId"] for item in api.get(PATH, person.token).data] == [first.data["id"]]


class Test413:
    def test_returns_413_for_a_body_over_one_mebibyte(self, api: Api, person: Person):
        largest = b'{"name": "Acme"}'.ljust(1_048_576)
        for body, declared in ((largest + b" ", {}), (b"", {"Content-Length": "1048577"})):
            assert api.post(PATH, person.token, raw_body=body, headers=declared).code == "PAYLOAD_TOO_LARGE"
        declared = {"Content-Length": "1048576"}
        assert api.post(PATH, person.token, raw_body=largest, headers=declared).status == 201


class Test415:
    def test_returns_415_for_another_media_type(self, api: Api, person: Person):
        reply = api.post(PATH, person.token, raw_body=b"name=Acme", headers={"Content-Type": "text/plain"})
        assert reply.status == 415


class TestLimit:
    """The limit on organizations per owner."""

    LIMIT = 2

    @pytest.fixture(autouse=True)
    def _limit(self, monkeypatch: pytest.MonkeyPatch):
        assert settings.organizations_per_person == 20
        monkeypatch.setitem(settings.__dict__, "organizations_per_person", self.LIMIT)

    def refused(self, api: Api, person: Person) -> dict[str, Any]:
        reply = create(api, person, name="One more")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        return reply.error["details"]

    def test_returns_409_with_the_limit_of_owned_organizations(self, api: Api, person: Person):
        for slug in ("one", "two"):
            assert create(api, person, name="Acme", slug=slug).status == 201
        assert self.refused(api, person) == {"reason": "organization_limit", "limit": 2, "current": 2}
        assert create(api, person, name="Acme", slug="one").error["details"]["field"] == "slug"

    def test_a_repeated_idempotency_key_is_answered_at_the_limit(self, api: Api, person: Person):
        once = {"Idempotency-Key": "once"}
        first = api.post(PATH, person.token, json_body={"name": "One"}, headers=once)
        assert create(api, person, name="Two").status == 201
        assert api.post(PATH, person.token, json_body={"name": "One"}, headers=once).data == first.data

    def test_only_owned_organizations_count(self, api: Api, world: World, person: Person):
        for _ in range(self.LIMIT):
            world.member(world.company(), "admin", person)
        for slug in ("one", "two"):
            assert create(api, person, name="Acme", slug=slug).status == 201

    def test_an_owner_of_more_keeps_them(self, api: Api, world: World, person: Person):
        owned = [world.company(owner=person) for _ in range(self.LIMIT + 1)]
        assert self.refused(api, person)["current"] == 3
        for company in owned:
            assert api.get(f"{PATH}/{company.organization_id}", person.token).data["role"] == "owner"

    def test_stepping_down_makes_room(self, api: Api, world: World, person: Person):
        first, _ = world.company(owner=person), world.company(owner=person)
        second = world.member(first, "owner")
        self.refused(api, person)
        member = MemberId.of_user(first.organization_id, person.user_id)
        assert api.patch(f"/v1/members/{member}", second.token, json_body={"role": "admin"}).status == 200
        assert create(api, person, name="One more").status == 201
        self.refused(api, person)

    def test_granting_owner_returns_403_and_accepting_returns_409_at_the_limit(
        self, api: Api, world: World, person: Person
    ):
        for _ in range(self.LIMIT):
            world.company(owner=person)
        company = world.company()
        world.member(company, "admin", person)
        member = MemberId.of_user(company.organization_id, person.user_id)
        path = f"/v1/members/{member}"
        reply = api.patch(path, company.owner.token, json_body={"role": "owner"})
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"reason": "owner_limit", "limit": 2}
        inviting = world.company()
        body = {"email": person.email, "role": "owner"}
        assert api.post("/v1/invitations", inviting.owner.token, json_body=body).status == 201
        browser = Browser(api).signed_in(person.user_id)
        browser.get("/invitations")
        reply = browser.press("Accept")
        assert reply.status == 409
        assert "You already own the maximum number of organizations." in text_of(reply)
        assert organizations.find_membership(person.user_id, inviting.organization_id) is None
        invariants.check_all(invariants.read_items(table.client, table.name))
