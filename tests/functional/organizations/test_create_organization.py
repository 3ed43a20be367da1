"""POST /v1/organizations: creates an organization that the caller owns."""

import re
from typing import Any

import pytest

from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import Person, table_dump

PATH = "/v1/organizations"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ONCE = {"Idempotency-Key": "7a3f"}


class Founder:
    """A person who creates organizations."""

    def __init__(self, api: Api, person: Person) -> None:
        self.api, self.person = api, person

    def create(self, name: Any = "Acme", headers: dict[str, str] | None = None, query: str = "", **body: Any) -> Reply:
        body = {"name": name, **body}
        return self.api.post(PATH + query, self.person.token, json_body=body, headers=headers)

    def created(self, *slugs: str) -> None:
        for slug in slugs:
            assert self.create(slug=slug).status == 201

    def slugs(self) -> list[str]:
        return [organization["organizationSlug"] for organization in self.api.get(PATH, self.person.token).data]


@pytest.fixture
def founder(api, world):
    return Founder(api, world.person())


@each(
    ("name", "slug"),
    [
        ("x", "abc"),
        ("Ромашка", "a-b"),
        ("\u00a0 " + "x" * 100 + " \t\n", "a" * 20),
        *(("Acme Shops", slug) for slug in ("123", "a-b-c-d-e-f-g-h-i-j2", "0-0")),
    ],
)
def test_the_caller_owns_an_organization_with_every_allowed_name_and_slug(name, slug, founder, world):
    # An organization in the query, and unknown fields, are ignored.
    other = {"role": "member", "plan": "enterprise", "organizationId": "org_x", "credits": 9}
    query = f"?organizationId={world.company().organization_id}"
    reply = founder.create(name, slug=slug, query=query, **other)
    organization_id = reply.data["id"]
    assert re.fullmatch(r"org_[0-9a-z]{16}", organization_id)
    made = {"id": organization_id, "slug": slug, "name": name.strip(), "role": "owner"}
    assert (reply.status, reply.data) == (201, made)
    assert founder.api.get(f"{PATH}/{organization_id}", founder.person.token).data == made
    assert table.get(keys.organization(organization_id))["plan"] == "free"


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
def test_a_slug_is_derived_from_the_name(name, slug, founder):
    assert founder.create(name, slug=None).data["slug"] == slug


@each(("name", "start"), [("AB", "ab-"), ("Ромашка", "org-"), ("\U0001f680", "org-")])
def test_a_name_without_enough_letters_gets_a_stable_slug(name, start, founder):
    slug = founder.create(name).data["slug"]
    assert slug.startswith(start)
    assert SLUG.fullmatch(slug)
    assert 3 <= len(slug) <= 20
    assert founder.create(name).error["details"]["slug"] == slug


@each(
    ("field", "values"),
    [
        ("name", [None, "", " \t\n\u2003", "x" * 101, "x" * 500_000, 7, True, ["Acme"], {"a": 1}, "A\ncme", "\u200b"]),
        ("slug", ["", "ab", "a" * 21, "Acme", "-acme", "acme-", "ac--me", "ac me", " acme ", "acme\n", "ac_me"]),
        ("slug", ["ac#me", "äcme", "\u0661\u0662\u0663", 123, ["acme"]]),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_written(field, values, founder):
    before = len(table_dump())
    for value in values:
        reply = founder.create(**{field: value})
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), value
        assert [problem["path"] for problem in reply.error["details"]] == [[field]], value
    assert len(table_dump()) == before


def test_a_taken_slug_returns_409_with_three_free_ones(founder, api, world):
    founder.created("umbra")
    other = Founder(api, world.person())
    before = len(table_dump())
    reply = other.create(slug="umbra")
    assert (reply.status, reply.code) == (409, "CONFLICT")
    details = {"field": "slug", "slug": "umbra", "suggestions": ["umbra-2", "umbra-3", "umbra-4"]}
    assert (reply.error["details"], len(table_dump())) == (details, before)
    other.created(*details["suggestions"])
    assert other.create("Umbra!").error["details"]["slug"] == "umbra"


def test_suggestions_are_free_and_valid_and_random_if_all_numbers_are_taken(founder):
    slug = "a" * 17 + "-bc"
    founder.created(slug, *(f"{'a' * 17}-{number}" for number in range(2, 8)))
    for pattern in (rf"{SLUG.pattern}", r"a{15}-[0-9a-f]{4}"):
        suggestions = founder.create(slug=slug).error["details"]["suggestions"]
        assert len(set(suggestions)) == 3
        assert all(re.fullmatch(pattern, suggestion) and len(suggestion) <= 20 for suggestion in suggestions)
        founder.created(*suggestions)


class TestLimit:
    """A person owns at most two organizations in these tests."""

    @pytest.fixture(autouse=True)
    def _limit(self, monkeypatch):
        assert settings.organizations_per_person == 20
        monkeypatch.setitem(settings.__dict__, "organizations_per_person", 2)

    def check_full(self, founder: Founder, owned: int = 2) -> None:
        reply = founder.create("One more")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "organization_limit", "limit": 2, "current": owned}

    def test_only_owned_organizations_count(self, founder, world):
        for _ in range(2):
            world.member(world.company(), "admin", founder.person)
        first = founder.create("One", headers=ONCE)
        founder.created("two")
        self.check_full(founder)
        assert founder.create(slug="two").error["details"]["field"] == "slug"
        assert founder.create("One", headers=ONCE).data == first.data

    def test_an_owner_of_more_keeps_them(self, founder, world):
        owned = [world.company(owner=founder.person).slug for _ in range(3)]
        self.check_full(founder, 3)
        assert founder.slugs() == sorted(owned)

    def test_stepping_down_makes_room(self, founder, world):
        first, _ = (world.company(owner=founder.person) for _ in range(2))
        second = world.member(first, "owner")
        self.check_full(founder)
        path = f"/v1/members/{MemberId.of_user(first.organization_id, founder.person.user_id)}"
        assert founder.api.patch(path, second.token, json_body={"role": "admin"}).status == 200
        founder.created("third")
        self.check_full(founder)

    def test_granting_owner_returns_403_and_accepting_returns_409_at_the_limit(self, founder, api, world):
        person, company, inviting = founder.person, world.company(), world.company()
        for _ in range(2):
            world.company(owner=person)
        world.member(company, "admin", person)
        path = f"/v1/members/{MemberId.of_user(company.organization_id, person.user_id)}"
        reply = api.patch(path, company.owner.token, json_body={"role": "owner"})
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"reason": "owner_limit", "limit": 2}
        world.invitation(inviting, person.email, "owner")
        browser = Browser(api).signed_in(person.user_id)
        browser.get("/invitations")
        reply = browser.press("Accept")
        assert reply.status == 409
        assert "You already own the maximum number of organizations." in text_of(reply)
        assert organizations.find_membership(person.user_id, inviting.organization_id) is None
        invariants.check_all(invariants.read_items(table.client, table.name))
