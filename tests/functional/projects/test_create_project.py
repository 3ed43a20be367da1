"""POST /v1/projects: creating a project, in the current and in the older shape."""

from typing import Any

import pytest

from controlplane.core import ids
from controlplane.core.plans import PLANS
from controlplane.store import billing, keys
from controlplane.store.table import Put, table
from tests.functional.projects.builders import create, make_project, projects_counted, stored, uncounted
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import Company, World


def fill(company: Company, count: int) -> None:
    """Sets the organization's project count without creating projects."""
    organization = table.get(keys.organization(company.organization_id))
    assert organization is not None
    table.put(Put({**organization, "projects": count}), PREPARED)


class Test201:
    def test_the_current_request_shape_returns_the_current_response_shape(self, api: Api, world: World):
        company = world.company()
        reply = create(api, world.key(company), websites=["https://example.com", "*.example.com"])
        assert reply.status == 201
        project = reply.data
        websites = project.pop("websites")
        dashboard = f"https://dashboard.assent.test/organizations/{company.slug}/projects/shop"
        assert project == {
            "id": project["id"],
            "slug": "shop",
            "name": "Shop",
            "description": None,
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "dashboardUrl": dashboard,
            "consent": {
                "trustedOrigins": ["example.com", "*.example.com"],
                "branding": "assent",
                "backendUrl": None,
                "dashboardUrl": f"{dashboard}/consent",
                "version": "2.0.0",
            },
        }
        assert project["id"].startswith("prj_")
        assert [website.pop("id")[:4] for website in websites] == ["web_", "web_"]
        assert websites == [
            {"origin": "example.com", "kind": "domain", "primary": True, "audited": False},
            {"origin": "*.example.com", "kind": "wildcard", "primary": False, "audited": False},
        ]

    def test_the_project_is_readable_at_once_with_its_consent_instance(self, api: Api, world: World):
        key = world.key(world.company())
        made = create(api, key).data
        consent = api.get(f"/v1/projects/{made['id']}/consent", key).data
        assert consent["instanceId"].startswith("ins_")
        assert consent["instanceName"] == "Shop"
        assert consent["instanceSlug"] == "shop"

    def test_a_project_is_stored_as_one_item_with_its_slug_and_the_organizations_count(self, api: Api, world: World):
        company = world.company()
        made = create(api, world.key(company), websites=["example.com"]).data
        (item,) = stored("PROJECT#")
        assert item["projectId"] == {"S": made["id"]}
        assert item["region"] == {"S": "eu-central"}
        (slug,) = stored("PSLUG#")
        assert (slug["sk"], slug["projectId"]) == ({"S": "PSLUG#shop"}, {"S": made["id"]})
        assert projects_counted(company) == 1

    def test_without_websites_consent_trusts_no_origin(self, api: Api, world: World):
        project = create(api, world.key(world.company())).data
        assert project["websites"] == []
        assert project["consent"]["trustedOrigins"] == []

    @each(
        ("sent", "origin", "kind"),
        [
            ("HTTPS://Example.COM/", "example.com", "domain"),
            ("bücher.example.com", "xn--bcher-kva.example.com", "domain"),
            ("*.example.com", "*.example.com", "wildcard"),
            ("*", "*", "any"),
            ("[2606:4700:0::1111]:8443", "[2606:4700::1111]:8443", "domain"),
            ("localhost:3000", "localhost:3000", "development"),
            ("http://web:3000", "web:3000", "development"),
            ("http://shop.lan", "shop.lan", "development"),
            ("capacitor://localhost", "capacitor://localhost", "app"),
        ],
    )
    def test_each_form_of_address_is_stored_normalized(self, sent: str, origin: str, kind: str, api: Api, world: World):
        (website,) = create(api, world.key(world.company()), websites=[sent]).data["websites"]
        assert (website["origin"], website["kind"]) == (origin, kind)

    def test_the_primary_website_is_the_first_domain_not_the_first_website(self, api: Api, world: World):
        project = create(api, world.key(world.company()), websites=["*", "localhost", "a.example.com", "example.com"])
        assert [website["primary"] for website in project.data["websites"]] == [False, False, True, False]

    def test_a_repeated_address_is_kept_once_at_its_first_position(self, api: Api, world: World):
        sent = ["example.com", "localhost", "https://EXAMPLE.com:443", "example.com."]
        websites = create(api, world.key(world.company()), websites=sent).data["websites"]
        assert [website["origin"] for website in websites] == ["example.com", "localhost"]

    def test_accepts_50_websites(self, api: Api, world: World):
        sent = [f"shop{number}.example.com" for number in range(50)]
        assert len(create(api, world.key(world.company()), websites=sent).data["websites"]) == 50

    def test_trusted_origins_of_consent_become_websites(self, api: Api, world: World):
        project = create(api, world.key(world.company()), consent={"trustedOrigins": ["example.com"]}).data
        assert [website["origin"] for website in project["websites"]] == ["example.com"]
        assert "products" not in project

    @pytest.mark.parametrize("branding", ["assent", "openassent", "none"])
    def test_the_branding_is_the_requested_one(self, branding: str, api: Api, world: World):
        reply = create(api, world.key(world.company("pro")), consent={"branding": branding})
        assert reply.data["consent"]["branding"] == branding

    def test_a_member_can_create_a_project(self, api: Api, world: World):
        company = world.company()
        assert create(api, world.member(company).token).status == 201

    def test_a_taken_slug_gets_a_short_suffix(self, api: Api, world: World):
        key = world.key(world.company())
        first, second, third = (create(api, key).data["slug"] for _ in range(3))
        assert first == "shop"
        assert second.startswith("shop-")
        assert len(second) == len("shop-") + 4
        assert len({first, second, third}) == 3

    def test_another_organization_can_have_the_same_slug(self, api: Api, world: World):
        assert [create(api, world.key(world.company())).data["slug"] for _ in range(2)] == ["shop", "shop"]

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
    def test_the_slug_is_derived_from_the_name(self, name: str, slug: str, api: Api, world: World):
        reply = create(api, world.key(world.company()), name=name)
        assert reply.data["slug"] == slug
        assert reply.data["name"] == name.strip()

    def test_ignores_unknown_fields(self, api: Api, world: World):
        reply = create(api, world.key(world.company()), id="prj_x", slug="mine", plan="enterprise", __proto__={})
        assert reply.data["slug"] == "shop"

    def test_a_user_of_several_organizations_names_one_in_the_query(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        reply = create(api, company.owner.token, f"?organizationId={other.organization_id}")
        assert reply.data["organizationId"] == other.organization_id

    def test_a_key_makes_two_table_calls(self, api: Api, world: World):
        key = world.key(world.company())
        create(api, key)
        calls: list[str] = []

        def noting(call, proceed):
            calls.append(call.operation)
            return proceed()

        with intercepted(table.client, noting):
            create(api, key, name="Another", consent={"branding": "none"})
        assert calls == ["UpdateItem", "TransactWriteItems"]

    def test_a_user_who_names_the_organization_makes_three_table_calls(self, api: Api, world: World):
        company = world.company()
        create(api, company.owner.token)
        calls: list[str] = []

        def noting(call, proceed):
            calls.append(call.operation)
            return proceed()

        with intercepted(table.client, noting):
            create(api, company.owner.token, f"?organizationId={company.organization_id}", name="Another")
        assert calls == ["UpdateItem", "GetItem", "TransactWriteItems"]


class TestIdempotencyKey:
    def test_a_retry_returns_the_same_response_and_creates_nothing(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        headers = {"Idempotency-Key": "one"}
        body = {"name": "Shop", "region": "eu-central", "websites": ["example.com"]}
        first, second = (api.post("/v1/projects", key, json_body=body, headers=headers) for _ in range(2))
        assert (first.status, second.status) == (201, 201)
        assert second.text == first.text
        assert second.headers["idempotency-replayed"] == "true"
        assert projects_counted(company) == 1

    def test_reusing_the_key_with_another_body_returns_400(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        headers = {"Idempotency-Key": "one"}
        for name, status in (("Shop", 201), ("Other", 400)):
            body = {"name": name, "region": "eu-central"}
            assert api.post("/v1/projects", key, json_body=body, headers=headers).status == status
        assert projects_counted(company) == 1

    def test_a_rejected_request_releases_its_idempotency_key(self, api: Api, world: World):
        company = world.company("starter")
        key = world.key(company)
        headers = {"Idempotency-Key": "one"}
        body = {"name": "Shop", "region": "eu-central", "consent": {"branding": "none"}}
        assert api.post("/v1/projects", key, json_body=body, headers=headers).code == "PLAN_REQUIRED"
        billing.change_plan(company.organization_id, "pro")
        assert api.post("/v1/projects", key, json_body=body, headers=headers).status == 201

    def test_a_taken_slug_does_not_create_a_second_project(self, api: Api, world: World):
        company = world.company()
        make_project(company)
        headers = {"Idempotency-Key": "one"}
        body = {"name": "Shop", "region": "eu-central"}
        first, second = (
            api.post("/v1/projects", world.key(company), json_body=body, headers=headers) for _ in range(2)
        )
        assert first.text == second.text
        assert projects_counted(company) == 2


class Test400:
    @each(
        ("fields", "path"),
        [
            ({"name": ""}, ["name"]),
            ({"name": "   "}, ["name"]),
            ({"name": "x" * 101}, ["name"]),
            ({"name": None}, ["name"]),
            ({"name": 5}, ["name"]),
            ({"name": ["Shop"]}, ["name"]),
            ({"name": "a\nb"}, ["name"]),
            ({"region": ""}, ["region"]),
            ({"region": None}, ["region"]),
            ({"region": 1}, ["region"]),
            ({"websites": []}, ["websites"]),
            ({"websites": None}, ["websites"]),
            ({"websites": "example.com"}, ["websites"]),
            ({"websites": {"0": "example.com"}}, ["websites"]),
            ({"websites": ["example.com", 5]}, ["websites", "1"]),
            ({"websites": [None]}, ["websites", "0"]),
            ({"websites": [f"s{n}.example.com" for n in range(51)]}, ["websites"]),
            ({"consent": None}, ["consent"]),
            ({"consent": []}, ["consent"]),
            ({"consent": {"branding": "None"}}, ["consent", "branding"]),
            ({"consent": {"branding": None}}, ["consent", "branding"]),
            ({"consent": {"branding": ""}}, ["consent", "branding"]),
            ({"consent": {"trustedOrigins": None}}, ["consent", "trustedOrigins"]),
            ({"consent": {"trustedOrigins": ["a.example.com"] * 51}}, ["consent", "trustedOrigins"]),
            ({"organizationId": ""}, ["organizationId"]),
            ({"organizationId": None}, ["organizationId"]),
            ({"organizationId": 5}, ["organizationId"]),
            ({"trustedOrigins": None}, ["trustedOrigins"]),
            ({"trustedOrigins": []}, ["organizationId"]),
        ],
    )
    def test_an_invalid_field_is_named_and_nothing_is_written(
        self, fields: dict[str, Any], path: list[str], api: Api, world: World
    ):
        key = world.key(world.company())
        before = uncounted()
        reply = create(api, key, **fields)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["path"] for problem in reply.error["details"]] == [path]
        assert uncounted() == before

    @pytest.mark.parametrize("missing", ["name", "region"])
    def test_returns_400_without_name_and_region(self, missing: str, api: Api, world: World):
        body = {"name": "Shop", "region": "eu-central"}
        del body[missing]
        reply = api.post("/v1/projects", world.key(world.company()), json_body=body)
        assert reply.error["details"][0]["path"] == [missing]

    def test_a_missing_body_is_rejected(self, api: Api, world: World):
        assert api.post("/v1/projects", world.key(world.company())).code == "INVALID_PAYLOAD"

    @each(
        "fields",
        [
            {"websites": ["example.com"], "consent": {"trustedOrigins": ["example.com"]}},
            {"websites": ["example.com"], "consent": {"trustedOrigins": []}},
            {"websites": ["example.com"], "organizationId": "OWN"},
            {"websites": ["example.com"], "organizationId": "OWN", "trustedOrigins": []},
            {"consent": {"trustedOrigins": []}, "organizationId": "OWN"},
        ],
    )
    def test_mixed_shapes_are_rejected(self, fields: dict[str, Any], api: Api, world: World):
        company = world.company()
        key = world.key(company)
        if "organizationId" in fields:
            fields = {**fields, "organizationId": company.organization_id}
        before = uncounted()
        assert create(api, key, **fields).code == "INVALID_PAYLOAD"
        assert uncounted() == before

    def test_different_organizations_in_query_and_body_are_rejected(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        query = f"?organizationId={company.organization_id}"
        reply = create(api, company.owner.token, query, organizationId=other.organization_id)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["organizationId"]

    @each("region", ["mars", "EU-CENTRAL", " eu-central", "x" * 10_000])
    def test_an_unknown_region_has_its_own_code(self, region: str, api: Api, world: World):
        key = world.key(world.company())
        before = uncounted()
        reply = create(api, key, region=region)
        assert (reply.status, reply.code) == (400, "INVALID_REGION")
        assert reply.error["details"][0]["path"] == ["region"]
        assert uncounted() == before

    @each(
        "origin",
        ["", "com", "javascript://x", "example.com/path", "x" * 10_000, "\u202eexample.com"],
    )
    def test_an_invalid_origin_has_its_own_code_and_names_its_position(self, origin: str, api: Api, world: World):
        key = world.key(world.company())
        before = uncounted()
        reply = create(api, key, websites=["example.com", origin])
        assert (reply.status, reply.code) == (400, "INVALID_ORIGIN")
        (problem,) = reply.error["details"]
        assert problem["path"] == ["websites", "1"]
        assert reply.error["message"].startswith("websites.1: ")
        assert uncounted() == before

    def test_every_invalid_origin_is_named(self, api: Api, world: World):
        reply = create(api, world.key(world.company()), consent={"trustedOrigins": ["com", "example.com", "://"]})
        paths = [problem["path"] for problem in reply.error["details"]]
        assert paths == [["consent", "trustedOrigins", "0"], ["consent", "trustedOrigins", "2"]]

    def test_an_invalid_origin_of_the_older_shape_is_named_by_that_shapes_field(self, api: Api, world: World):
        company = world.company()
        reply = create(
            api, world.key(company), organizationId=company.organization_id, trustedOrigins=["example.com", "com"]
        )
        assert reply.code == "INVALID_ORIGIN"
        assert reply.error["details"][0]["path"] == ["trustedOrigins", "1"]


class Test402:
    @pytest.mark.parametrize("plan", ["starter"])
    @pytest.mark.parametrize("older", [False, True])
    def test_returns_402_for_no_branding_without_a_plan_for_it_and_writes_nothing(
        self, plan: str, older: bool, api: Api, world: World
    ):
        company = world.company(plan)
        key = world.key(company)
        before = uncounted()
        fields = {"organizationId": company.organization_id} if older else {}
        reply = create(api, key, consent={"branding": "none"}, **fields)
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert uncounted() == before

    def test_no_branding_is_rejected_for_a_person_on_the_free_plan(self, api: Api, world: World):
        company = world.company("free")
        assert create(api, company.owner.token, consent={"branding": "none"}).code == "PLAN_REQUIRED"
        assert create(api, company.owner.token, consent={"branding": "openassent"}).status == 201

    @each("plan", ["free", "starter", "pro", "enterprise"])
    def test_the_plan_limits_the_number_of_projects(self, plan: str, api: Api, world: World):
        company = world.company(plan)
        limit = PLANS[plan].projects
        fill(company, limit - 1)
        assert create(api, company.owner.token).status == 201
        before = uncounted()
        reply = create(api, company.owner.token, name="One more")
        assert (reply.status, reply.code) == (402, "PLAN_LIMIT_REACHED")
        assert reply.error["details"] == {"limit": limit, "current": limit, "plan": plan}
        assert uncounted() == before

    def test_returns_402_while_over_the_limit_after_a_downgrade(self, api: Api, world: World):
        company = world.company("starter")
        fill(company, 40)
        billing.change_plan(company.organization_id, "free")
        reply = create(api, company.owner.token)
        assert reply.error["details"] == {"limit": 10, "current": 40, "plan": "free"}

    def test_an_upgrade_raises_the_limit_immediately(self, api: Api, world: World):
        company = world.company("free")
        fill(company, 10)
        billing.change_plan(company.organization_id, "starter")
        assert create(api, company.owner.token).status == 201

    def test_deleting_a_project_makes_room_for_another(self, api: Api, world: World):
        company = world.company("free")
        project = create(api, company.owner.token).data
        fill(company, 10)
        api.delete(f"/v1/projects/{project['id']}", company.owner.token)
        assert create(api, company.owner.token).status == 201


class Test403:
    def test_an_invalid_body_is_reported_before_a_forbidden_organization(self, api: Api, world: World):
        theirs = world.company().organization_id
        token = world.company().owner.token
        assert create(api, token, organizationId=theirs, region="mars").code == "INVALID_REGION"
        assert create(api, token, f"?organizationId={theirs}", websites=["com"]).code == "INVALID_ORIGIN"

    @pytest.mark.parametrize("named", ["theirs", "unknown", "nonsense"])
    def test_returns_403_if_the_body_names_an_organization_of_others(self, named: str, api: Api, world: World):
        company, theirs = world.company(), world.company()
        organization_id = {"theirs": theirs.organization_id, "unknown": ids.new_root(ids.ORGANIZATION)}.get(
            named, named
        )
        key = world.key(company)
        before = uncounted()
        for token in (key, company.owner.token):
            assert create(api, token, organizationId=organization_id).code == "FORBIDDEN"
        assert uncounted() == before

    def test_a_person_without_an_organization_is_told_to_create_or_join_one(self, api: Api, world: World):
        reply = create(api, world.person().token)
        assert reply.code == "FORBIDDEN"
        assert "organization" in reply.error["message"]
