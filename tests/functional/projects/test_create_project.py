"""POST /v1/projects: creating a project, in the current and in the older shape."""

from controlplane.billing import store as billing
from controlplane.platform.core import ids
from controlplane.platform.core.plans import PLANS
from tests.functional.projects.builders import create, fill, projects_counted, stored
from tests.functional.projects.conftest import CURRENT, INVALID, OLDER, Organization, nothing_written
from tests.support.each import each

FIFTY = [f"s{number}.example.com" for number in range(50)]


def test_a_project_is_returned_and_stored_with_its_consent_slug_and_count(acme):
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


def test_the_older_body_shape_returns_the_older_project_shape(acme):
    reply = acme.create_older(trustedOrigins=["https://example.com"], consent={"branding": "openassent"})
    shown = acme.call("GET", f"/{reply.data['projectId']}").data
    assert (reply.status, reply.data) == (201, {name: shown[name] for name in (*OLDER, "products")})
    consent = reply.data["products"]["consent"]
    assert (consent["trustedOrigins"], consent["branding"]) == (["example.com"], "openassent")
    for fields in ({}, {"trustedOrigins": []}):
        assert acme.create_older(**fields).data["products"]["consent"]["trustedOrigins"] == []


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
        ({"websites": FIFTY}, FIFTY),
    ],
)
def test_every_listed_address_becomes_a_website_and_a_consent_entry_once(fields, origins, acme):
    project = acme.create(**fields).data
    assert [website["origin"] for website in project["websites"]] == project["consent"]["trustedOrigins"] == origins


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
def test_each_kind_of_address_is_stored_normalized_and_only_a_domain_is_primary(sent, origin, kind, acme):
    (website, _) = acme.create(websites=[sent, "localhost"]).data["websites"]
    assert (website["origin"], website["kind"], website["primary"]) == (origin, kind, kind == "domain")


def test_a_taken_slug_gets_a_short_suffix_once_and_is_free_in_another_organization(acme, api, world):
    first, second = (acme.create(slug="mine", id="prj_x").data["slug"] for _ in range(2))
    assert (first, second[:5], len(second)) == ("shop", "shop-", len("shop-") + 4)
    assert len({first, second, acme.create().data["slug"]}) == 3
    assert Organization(api, world).create().data["slug"] == "shop"


def test_a_member_creates_in_the_organization_that_the_query_or_the_body_names(acme, api, world):
    other = Organization(api, world, owner=acme.owner)
    query = f"?organizationId={other.id}"
    for fields in ({"query": query}, {"organizationId": other.id}, {"query": query, "organizationId": other.id}):
        assert acme.create(acme.owner, **fields).data["organizationId"] == other.id
    assert projects_counted(other.company) == 3
    assert acme.create(acme.member()).status == 201
    reply = acme.create(acme.owner, query, organizationId=acme.id)
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", ["organizationId"])
    reply = create(api, world.person().token)
    assert (reply.code, "organization" in reply.error["message"]) == ("FORBIDDEN", True)


@each(
    ("fields", "path"),
    [
        ({"name": "x" * 101}, ["name"]),
        *INVALID,
        ({"trustedOrigins": []}, ["organizationId"]),
        *(({"region": region}, ["region"]) for region in ("mars", "EU-CENTRAL", " eu-central", "x" * 10_000)),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_written(fields, path, acme):
    with nothing_written():
        reply = acme.create(**fields)
    assert (reply.status, reply.code) == (400, "INVALID_REGION" if fields.get("region") else "INVALID_PAYLOAD")
    assert [problem["path"] for problem in reply.error["details"]] == [path]


def test_an_unknown_region_is_refused_with_the_names_of_those_that_the_deployment_offers(acme):
    (problem,) = acme.create(region="eu-centrall").error["details"]
    offered = [region["id"] for region in acme.api.get("/v1/regions").data]
    assert problem["message"] == (
        f"There is no such region. Use one of these: {', '.join(offered)}. Did you mean eu-central?"
    )
    assert offered == ["eu-central", "eu-west", "us-east"]


@each(
    ("fields", "path"),
    [
        ({"websites": ["example.com"], "consent": {"trustedOrigins": []}}, ["consent", "trustedOrigins"]),
        ({"websites": ["example.com"], "organizationId": "OWN"}, ["websites"]),
        ({"websites": ["example.com"], "organizationId": "OWN", "trustedOrigins": []}, ["websites"]),
        ({"consent": {"trustedOrigins": []}, "organizationId": "OWN"}, ["consent", "trustedOrigins"]),
    ],
)
def test_a_body_with_several_lists_of_addresses_is_refused(fields, path, acme):
    own = {"organizationId": acme.id} if "organizationId" in fields else {}
    with nothing_written():
        reply = acme.create(**{**fields, **own})
    (problem,) = reply.error["details"]
    assert (reply.code, problem["code"], problem["path"]) == ("INVALID_PAYLOAD", "contradiction", path)


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
def test_every_invalid_origin_is_named_at_its_position(fields, paths, acme):
    with nothing_written():
        reply = acme.create(**fields)
    assert (reply.status, reply.code) == (400, "INVALID_ORIGIN")
    assert [".".join(problem["path"]) for problem in reply.error["details"]] == paths
    assert reply.error["message"].startswith(f"{paths[0]}: ")


def test_removing_the_branding_needs_a_plan_that_includes_it(acme):
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


@each("plan", ["free", "starter", "pro", "enterprise"])
def test_the_plan_limits_the_number_of_projects_as_soon_as_it_changes(plan, api, world):
    acme = Organization(api, world)
    limit = PLANS[plan].projects
    fill(acme.company, limit)
    billing.change_plan(acme.id, plan)
    with nothing_written():
        reply = acme.create(acme.owner, name="One more")
    assert (reply.status, reply.code) == (402, "PLAN_LIMIT_REACHED")
    assert reply.error["details"] == {"limit": limit, "current": limit, "plan": plan}
    fill(acme.company, limit - 1)
    project = acme.create(acme.owner).data
    assert acme.create(acme.owner).status == 402
    acme.call("DELETE", f"/{project['id']}", acme.owner)
    assert acme.create(acme.owner).status == 201


def test_another_organization_in_the_body_is_refused_after_an_invalid_body(acme, world):
    theirs = world.company().organization_id
    with nothing_written():
        for named in (theirs, ids.new_root(ids.ORGANIZATION), "nonsense"):
            assert {acme.create(by, organizationId=named).code for by in (None, acme.owner)} == {"FORBIDDEN"}
        assert acme.create(acme.owner, organizationId=theirs, region="mars").code == "INVALID_REGION"
        assert acme.create(acme.owner, f"?organizationId={theirs}", websites=["com"]).code == "INVALID_ORIGIN"
