"""POST /v1/projects: creating a project, in the current and in the older shape."""

from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core import ids
from controlplane.platform.core.plans import PLANS
from tests.functional.projects.builders import create, fill, projects_counted, stored
from tests.functional.projects.conftest import CURRENT, OLDER, Organization, nothing_written
from tests.support.api import Api
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import World

MANY = [f"s{number}.example.com" for number in range(51)]


def test_a_project_is_returned_and_stored_with_its_consent_slug_and_count(acme: Organization):
    reply = acme.create(region="us-east", websites=["https://example.com", "*.example.com"])
    project_id, websites = reply.data["id"], reply.data["websites"]
    shown = acme.call("GET", f"/{project_id}").data
    assert (reply.status, reply.data) == (201, {name: shown[name] for name in (*CURRENT, "websites", "consent")})
    assert (shown["name"], shown["slug"], shown["region"]) == ("Shop", "shop", "us-east")
    assert (project_id[:4], [website["id"][:4] for website in websites]) == ("prj_", ["web_", "web_"])
    names = ("origin", "kind", "primary")
    assert [[website[name] for name in names] for website in websites] == [
        ["example.com", "domain", True],
        ["*.example.com", "wildcard", False],
    ]
    consent = shown["products"]["consent"]
    assert [consent[f"instance{name}"] for name in ("Id", "Name", "Slug")] == ["ins_" + project_id[4:], "Shop", "shop"]
    ((item,), (slug,)) = stored("PROJECT#"), stored("PSLUG#")
    assert (item["projectId"]["S"], item["region"]["S"]) == (project_id, "us-east")
    assert (slug["sk"]["S"], slug["projectId"]["S"]) == ("PSLUG#shop", project_id)
    assert projects_counted(acme.company) == 1


def test_the_older_body_shape_returns_the_older_project_shape(acme: Organization):
    reply = acme.create_older(trustedOrigins=["https://example.com"])
    shown = acme.call("GET", f"/{reply.data['projectId']}").data
    assert (reply.status, reply.data) == (201, {name: shown[name] for name in (*OLDER, "products")})
    assert reply.data["products"]["consent"]["trustedOrigins"] == ["example.com"]


@each(
    ("fields", "origins"),
    [
        ({}, []),
        ({"consent": {"trustedOrigins": []}}, []),
        ({"consent": {"trustedOrigins": ["example.com"]}}, ["example.com"]),
        ({"websites": ["b.example.com", "a.example.com"]}, ["b.example.com", "a.example.com"]),
        (
            {"websites": ["example.com", "localhost", "https://EXAMPLE.com:443", "example.com."]},
            ["example.com", "localhost"],
        ),
        ({"websites": MANY[:50]}, MANY[:50]),
    ],
)
def test_every_listed_address_becomes_a_website_and_a_consent_entry_once(
    fields: dict[str, Any], origins: list[str], acme: Organization
):
    project = acme.create(**fields).data
    assert [website["origin"] for website in project["websites"]] == project["consent"]["trustedOrigins"] == origins


@each("fields", [{}, {"trustedOrigins": []}, {"trustedOrigins": ["example.com", "localhost"]}])
def test_trusted_origins_of_the_older_shape_may_be_missing_or_empty(fields: dict[str, Any], acme: Organization):
    consent = acme.create_older(**fields).data["products"]["consent"]
    assert consent["trustedOrigins"] == fields.get("trustedOrigins", [])


# tests/unit/rules/test_origins.py has the forms of addresses.
@each(
    ("sent", "origin", "kind"),
    [
        ("HTTPS://Example.COM/", "example.com", "domain"),
        ("*.example.com", "*.example.com", "wildcard"),
        ("*", "*", "any"),
        ("http://web:3000", "web:3000", "development"),
        ("capacitor://localhost", "capacitor://localhost", "app"),
    ],
)
def test_each_kind_of_address_is_stored_normalized(sent: str, origin: str, kind: str, acme: Organization):
    (website,) = acme.create(websites=[sent]).data["websites"]
    assert (website["origin"], website["kind"]) == (origin, kind)


def test_the_primary_website_is_the_first_domain_not_the_first_website(acme: Organization):
    websites = acme.create(websites=["*", "localhost", "a.example.com", "example.com"]).data["websites"]
    assert [website["primary"] for website in websites] == [False, False, True, False]


@each("branding", ["assent", "openassent", "none"])
def test_the_branding_is_the_requested_one_in_both_shapes(branding: str, acme: Organization):
    consent = {"branding": branding}
    assert acme.create(consent=consent).data["consent"]["branding"] == branding
    assert acme.create_older(consent=consent).data["products"]["consent"]["branding"] == branding


@each(
    ("name", "slug"),
    [
        ("Ünser Läden & Co.", "unser-laden-co"),
        ("日本語", "project"),
        ("x" * 100, "x" * 48),
        ("--a--", "a"),
        (" spaced ", "spaced"),
    ],
)
def test_the_slug_is_derived_from_the_name(name: str, slug: str, acme: Organization):
    made = acme.create(name=name).data
    assert (made["slug"], made["name"]) == (slug, name.strip())


def test_a_taken_slug_gets_a_short_suffix_and_is_free_in_another_organization(
    acme: Organization, api: Api, world: World
):
    first, second, third = (acme.create().data["slug"] for _ in range(3))
    assert (first, second[:5], len(second)) == ("shop", "shop-", len("shop-") + 4)
    assert len({first, second, third}) == 3
    assert Organization(api, world).create().data["slug"] == "shop"


def test_a_repetition_with_an_idempotency_key_creates_one_project_if_the_slug_is_taken(acme: Organization):
    acme.project()
    body, headers = {"name": "Shop", "region": "eu-central"}, {"Idempotency-Key": "one"}
    first, second = (acme.call("POST", json_body=body, headers=headers) for _ in range(2))
    assert (first.text, projects_counted(acme.company)) == (second.text, 2)


def test_unknown_fields_are_ignored(acme: Organization):
    made = acme.create(id="prj_x", slug="mine", plan="enterprise", __proto__={}).data
    assert (made["slug"], made["id"] == "prj_x") == ("shop", False)


def test_a_member_creates_in_the_organization_that_the_query_or_the_body_names(
    acme: Organization, api: Api, world: World
):
    other = Organization(api, world, owner=acme.owner)
    query = f"?organizationId={other.id}"
    for fields in ({"query": query}, {"organizationId": other.id}, {"query": query, "organizationId": other.id}):
        assert acme.create(acme.owner, **fields).data["organizationId"] == other.id
    assert projects_counted(other.company) == 3
    assert acme.create(acme.member()).status == 201
    reply = acme.create(acme.owner, query, organizationId=acme.id)
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", ["organizationId"])


def test_creating_takes_one_call_more_than_the_caller_and_the_organization(acme: Organization):
    query = f"?organizationId={acme.id}"
    for name, by, reads in (("By key", None, []), ("By person", acme.owner, ["GetItem"])):
        acme.call("GET", query, by)
        with recorded_calls() as calls:
            acme.create(by, query, name=name, consent={"branding": "none"})
        assert [call.operation for call in calls] == ["UpdateItem", *reads, "TransactWriteItems"]


@each(
    ("fields", "path"),
    [
        ({"name": ""}, ["name"]),
        ({"name": "   "}, ["name"]),
        ({"name": "x" * 101}, ["name"]),
        ({"name": None}, ["name"]),
        ({"name": "a\nb"}, ["name"]),
        ({"region": ""}, ["region"]),
        ({"region": None}, ["region"]),
        ({"websites": []}, ["websites"]),
        ({"websites": None}, ["websites"]),
        ({"websites": "example.com"}, ["websites"]),
        ({"websites": ["example.com", 5]}, ["websites", "1"]),
        ({"websites": MANY}, ["websites"]),
        ({"consent": None}, ["consent"]),
        ({"consent": {"branding": "None"}}, ["consent", "branding"]),
        ({"consent": {"branding": None}}, ["consent", "branding"]),
        ({"consent": {"trustedOrigins": None}}, ["consent", "trustedOrigins"]),
        ({"consent": {"trustedOrigins": ["a.example.com"] * 51}}, ["consent", "trustedOrigins"]),
        ({"organizationId": ""}, ["organizationId"]),
        ({"organizationId": None}, ["organizationId"]),
        ({"trustedOrigins": None}, ["trustedOrigins"]),
        ({"trustedOrigins": []}, ["organizationId"]),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_written(fields: dict[str, Any], path: list[str], acme: Organization):
    with nothing_written():
        reply = acme.create(**fields)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [problem["path"] for problem in reply.error["details"]] == [path]


def test_name_and_region_are_required(acme: Organization):
    reply = acme.call("POST", json_body={})
    assert [problem["path"] for problem in reply.error["details"]] == [["name"], ["region"]]


@each(
    ("fields", "path"),
    [
        ({"websites": ["example.com"], "consent": {"trustedOrigins": []}}, ["consent", "trustedOrigins"]),
        ({"websites": ["example.com"], "organizationId": "OWN"}, ["websites"]),
        ({"websites": ["example.com"], "organizationId": "OWN", "trustedOrigins": []}, ["websites"]),
        ({"consent": {"trustedOrigins": []}, "organizationId": "OWN"}, ["consent", "trustedOrigins"]),
    ],
)
def test_a_body_with_several_lists_of_addresses_is_a_contradiction(
    fields: dict[str, Any], path: list[str], acme: Organization
):
    own = {"organizationId": acme.id} if "organizationId" in fields else {}
    with nothing_written():
        reply = acme.create(**{**fields, **own})
    (problem,) = reply.error["details"]
    assert (reply.code, problem["code"], problem["path"]) == ("INVALID_PAYLOAD", "contradiction", path)


@each("region", ["mars", "EU-CENTRAL", " eu-central", "x" * 10_000])
def test_an_unknown_region_has_its_own_code(region: str, acme: Organization):
    with nothing_written():
        reply = acme.create(region=region)
    assert (reply.status, reply.code, reply.error["details"][0]["path"]) == (400, "INVALID_REGION", ["region"])


@each(
    ("fields", "paths"),
    [
        *(
            ({"websites": ["example.com", origin]}, ["websites.1"])
            for origin in ("", "com", "javascript://x", "example.com/path", "x" * 10_000, "\u202eexample.com")
        ),
        (
            {"consent": {"trustedOrigins": ["com", "example.com", "://"]}},
            ["consent.trustedOrigins.0", "consent.trustedOrigins.2"],
        ),
        ({"organizationId": "OWN", "trustedOrigins": ["example.com", "com"]}, ["trustedOrigins.1"]),
    ],
)
def test_every_invalid_origin_is_named_at_its_position(fields: dict[str, Any], paths: list[str], acme: Organization):
    with nothing_written():
        reply = acme.create(**fields)
    assert (reply.status, reply.code) == (400, "INVALID_ORIGIN")
    assert [".".join(problem["path"]) for problem in reply.error["details"]] == paths
    assert reply.error["message"].startswith(f"{paths[0]}: ")


def test_removing_the_branding_needs_a_plan_that_includes_it(acme: Organization):
    consent, headers = {"branding": "none"}, {"Idempotency-Key": "one"}
    body = {"name": "Shop", "region": "eu-central", "consent": consent}
    for plan, by in (("free", acme.owner), ("starter", None)):
        billing.change_plan(acme.id, plan)
        with nothing_written():
            replies = [acme.create(by, consent=consent), acme.create(by, consent=consent, organizationId=acme.id)]
        assert [(reply.status, reply.code) for reply in replies] == [(402, "PLAN_REQUIRED")] * 2
        assert acme.create(by, consent={"branding": "openassent"}).status == 201
    assert acme.call("POST", json_body=body, headers=headers).status == 402
    billing.change_plan(acme.id, "pro")
    assert acme.call("POST", json_body=body, headers=headers).status == 201


@pytest.mark.parametrize("plan", ["free", "starter", "pro", "enterprise"])
def test_the_plan_limits_the_number_of_projects(plan: str, acme: Organization):
    billing.change_plan(acme.id, plan)
    limit = PLANS[plan].projects
    fill(acme.company, limit - 1)
    project = acme.create(acme.owner).data
    with nothing_written():
        reply = acme.create(acme.owner, name="One more")
    assert (reply.status, reply.code) == (402, "PLAN_LIMIT_REACHED")
    assert reply.error["details"] == {"limit": limit, "current": limit, "plan": plan}
    acme.call("DELETE", f"/{project['id']}", acme.owner)
    assert acme.create(acme.owner).status == 201


def test_a_change_of_the_plan_changes_the_limit_immediately(acme: Organization):
    fill(acme.company, 40)
    billing.change_plan(acme.id, "free")
    assert acme.create(acme.owner).error["details"] == {"limit": 10, "current": 40, "plan": "free"}
    fill(acme.company, 10)
    assert acme.create(acme.owner).status == 402
    billing.change_plan(acme.id, "starter")
    assert acme.create(acme.owner).status == 201


def test_another_organization_in_the_body_is_refused_after_an_invalid_body(acme: Organization, world: World):
    theirs = world.company().organization_id
    with nothing_written():
        for named in (theirs, ids.new_root(ids.ORGANIZATION), "nonsense"):
            assert {acme.create(by, organizationId=named).code for by in (None, acme.owner)} == {"FORBIDDEN"}
        assert acme.create(acme.owner, organizationId=theirs, region="mars").code == "INVALID_REGION"
        assert acme.create(acme.owner, f"?organizationId={theirs}", websites=["com"]).code == "INVALID_ORIGIN"


def test_a_person_without_an_organization_is_told_to_create_or_join_one(api: Api, world: World):
    reply = create(api, world.person().token)
    assert (reply.code, "organization" in reply.error["message"]) == ("FORBIDDEN", True)
