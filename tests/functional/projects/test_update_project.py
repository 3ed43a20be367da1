"""PATCH /v1/projects/{projectId}: name, description, websites and consent of a project."""

from dataclasses import replace
from typing import Any

import pytest

from awsclient.errors import NoAnswer
from controlplane.store import billing, project_changes, projects
from controlplane.store.project_items import ProjectItem
from controlplane.store.project_slugs import MAX_FORMER
from controlplane.store.projects import get_project
from controlplane.store.table import table
from tests.functional.projects.builders import add_audits, make_project, stored, uncounted, without_consent
from tests.support.api import Api, Reply
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import World


def update(api: Api, token: str, project: ProjectItem, **fields: Any) -> Reply:
    return api.patch(f"/v1/projects/{project.project_id}", token, json_body=fields)


class Test200:
    def test_the_response_equals_the_project_in_the_list(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        reply = update(api, key, project, projectName="Market", description="A market")
        assert reply.status == 200
        assert reply.data == api.get("/v1/projects", key).data[0]
        assert (reply.data["projectName"], reply.data["description"]) == ("Market", "A market")

    def test_a_new_name_gives_a_new_slug_and_releases_the_old_one(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        assert update(api, world.key(company), project, projectName="Market").data["projectSlug"] == "market"
        assert make_project(company, "Shop").slug == "shop"

    def test_a_project_renamed_back_gets_its_former_slug_again(self, api: Api, world: World):
        company = world.company()
        project, key = make_project(company), world.key(company)
        for name in ("Market", "Shop", "Market", "Shop"):
            assert update(api, key, project, projectName=name).data["projectSlug"] == name.lower()
        assert get_project(project.project_id).former_slugs == ("market",)

    def test_the_latest_ten_former_slugs_are_kept(self, api: Api, world: World):
        company = world.company()
        project, key = make_project(company, "Name 0"), world.key(company)
        for number in range(1, MAX_FORMER + 3):
            update(api, key, project, projectName=f"Name {number}")
        former = [f"name-{number}" for number in range(2, MAX_FORMER + 2)]
        assert list(get_project(project.project_id).former_slugs) == former
        slugs = {item["sk"]["S"] for item in stored("PSLUG#")}
        assert slugs == {f"PSLUG#{slug}" for slug in (*former, f"name-{MAX_FORMER + 2}")}

    def test_dropping_a_former_slug_leaves_another_project_that_has_claimed_it(self, api: Api, world: World):
        company = world.company()
        project, key = make_project(company, "Name 0"), world.key(company)
        update(api, key, project, projectName="Name 1")
        claimed = make_project(company, "Name 0")
        for number in range(2, MAX_FORMER + 3):
            assert update(api, key, project, projectName=f"Name {number}").status == 200
        assert len(get_project(project.project_id).former_slugs) == MAX_FORMER
        assert projects.get_project_by_slug(company.organization_id, "name-0")[0] == claimed

    def test_the_same_name_keeps_the_slug_with_its_suffix(self, api: Api, world: World):
        company = world.company()
        make_project(company)
        second = make_project(company)
        assert update(api, world.key(company), second, projectName="Shop").data["projectSlug"] == second.slug

    def test_another_spelling_of_the_name_keeps_its_own_slug(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        changed = update(api, world.key(company), project, projectName="SHOP!").data
        assert (changed["projectSlug"], changed["projectName"]) == ("shop", "SHOP!")
        assert len(stored("PSLUG#")) == 1

    def test_a_taken_slug_gets_a_short_suffix(self, api: Api, world: World):
        company = world.company()
        make_project(company, "Market")
        project = make_project(company)
        slug = update(api, world.key(company), project, projectName="Market").data["projectSlug"]
        assert slug.startswith("market-")
        assert {item["sk"]["S"] for item in stored("PSLUG#")} == {"PSLUG#market", f"PSLUG#{slug}", "PSLUG#shop"}

    @each("description", ["x" * 512, "", "🛒" * 512, None])
    def test_a_description_can_be_set_and_cleared(self, description: str | None, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        update(api, key, project, description="before")
        assert update(api, key, project, description=description).data["description"] == description

    def test_omitted_fields_are_unchanged(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["example.com", "localhost"])
        update(api, world.key(company), project, description="A shop")
        after = get_project(project.project_id)
        assert replace(after, version="", description=None) == replace(project, version="")

    def test_branding_alone_changes_nothing_else_of_consent(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        changed = update(api, world.key(company), project, consent={"branding": "none"}).data
        assert changed["products"]["consent"]["branding"] == "none"
        assert changed["products"]["consent"]["trustedOrigins"] == ["example.com"]

    def test_remaining_websites_keep_their_ids_in_the_new_order(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["a.example.com", "b.example.com"])
        websites = ["b.example.com", "new.example.com", "https://A.example.com/"]
        changed = update(api, world.key(company), project, websites=websites).data
        origins = ["b.example.com", "new.example.com", "a.example.com"]
        assert changed["products"]["consent"]["trustedOrigins"] == origins
        after = get_project(project.project_id).websites
        assert [website.origin for website in after] == origins
        assert [after[2].website_id, after[0].website_id] == [website.website_id for website in project.websites]

    def test_a_remaining_website_keeps_its_audit(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        (audit_id,) = add_audits(project)
        update(api, world.key(company), project, websites=["shop.example.com", "example.com"])
        assert get_project(project.project_id).websites[1].audits == (audit_id,)

    def test_all_fields_can_change_in_one_request(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        changed = update(
            api,
            world.key(company),
            project,
            projectName="Market",
            description="A market",
            websites=["market.example.com"],
            consent={"branding": "openassent"},
        ).data
        assert changed["projectSlug"] == "market"
        assert changed["products"]["consent"]["trustedOrigins"] == ["market.example.com"]
        assert changed["products"]["consent"]["branding"] == "openassent"

    def test_a_member_can_change_fields_and_add_websites(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        token = world.member(company).token
        assert update(api, token, project, websites=["example.com", "shop.example.com"]).status == 200

    def test_a_concurrent_change_is_kept(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)

        done: list[str] = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not done:
                done.append("once")
                project_changes.update_project(project, {"name": "Elsewhere"}, may_remove_websites=False)
            return proceed()

        with intercepted(table.client, before_the_transaction):
            reply = update(api, key, project, description="A shop")
        assert (reply.data["projectName"], reply.data["description"]) == ("Elsewhere", "A shop")

    def test_a_retry_succeeds_if_the_response_of_the_write_was_lost(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)

        def applied_twice(call, proceed):
            if call.operation == "TransactWriteItems":
                proceed()  # the SDK retries if it gets no response
            return proceed()

        with intercepted(table.client, applied_twice):
            assert update(api, key, project, description="A shop").status == 200
        assert get_project(project.project_id).description == "A shop"

    def test_a_key_makes_three_table_calls(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        for fields in ({"description": "A"}, {"projectName": "Market"}, {"consent": {"branding": "none"}}):
            update(api, key, project, description="warm")
            calls: list[str] = []

            def noting(call, proceed, calls=calls):
                calls.append(call.operation)
                return proceed()

            with intercepted(table.client, noting):
                assert update(api, key, project, **fields).status == 200
            assert len(calls) == 3


class Test400:
    @each(
        ("fields", "path"),
        [
            ({}, []),
            ({"name": "Market", "slug": "mine"}, []),
            ({"consent": {}}, []),
            ({"projectName": ""}, ["projectName"]),
            ({"projectName": " \t"}, ["projectName"]),
            ({"projectName": None}, ["projectName"]),
            ({"projectName": "x" * 101}, ["projectName"]),
            ({"projectName": 1}, ["projectName"]),
            ({"description": "x" * 513}, ["description"]),
            ({"description": 5}, ["description"]),
            ({"description": []}, ["description"]),
            ({"websites": []}, ["websites"]),
            ({"websites": None}, ["websites"]),
            ({"websites": ["a.example.com"] * 51}, ["websites"]),
            ({"websites": [{}]}, ["websites", "0"]),
            ({"consent": None}, ["consent"]),
            ({"consent": {"branding": "acme"}}, ["consent", "branding"]),
            ({"consent": {"branding": None}}, ["consent", "branding"]),
            ({"consent": {"trustedOrigins": []}}, ["consent", "trustedOrigins"]),
            (
                {"websites": ["example.com"], "consent": {"trustedOrigins": ["example.com"]}},
                ["consent", "trustedOrigins"],
            ),
        ],
    )
    def test_an_invalid_field_is_named_and_nothing_is_written(
        self, fields: dict[str, Any], path: list[str], api: Api, world: World
    ):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        before = uncounted()
        reply = update(api, key, project, **fields)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["path"] for problem in reply.error["details"]] == [path]
        assert uncounted() == before

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"websites": ["example.com", "com"]}, ["websites", "1"]),
            ({"consent": {"trustedOrigins": ["data:text"]}}, ["consent", "trustedOrigins", "0"]),
        ],
    )
    def test_an_invalid_origin_is_named(self, fields: dict[str, Any], path: list[str], api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        before = uncounted()
        reply = update(api, key, project, description="not written", **fields)
        assert reply.code == "INVALID_ORIGIN"
        assert reply.error["details"][0]["path"] == path
        assert uncounted() == before


class Test402:
    def test_returns_402_for_no_branding_without_a_plan_for_it_and_writes_nothing(self, api: Api, world: World):
        company = world.company("starter")
        project = make_project(company)
        key = world.key(company)
        before = uncounted()
        reply = update(api, key, project, projectName="Market", consent={"branding": "none"})
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert uncounted() == before

    def test_the_plan_at_the_time_of_the_write_decides(self, api: Api, world: World):
        company = world.company("pro")
        project = make_project(company)
        billing.change_plan(company.organization_id, "free")
        token = company.owner.token
        assert update(api, token, project, consent={"branding": "none"}).code == "PLAN_REQUIRED"
        assert update(api, token, project, consent={"branding": "openassent"}).status == 200


class Test403:
    @pytest.mark.parametrize(
        "fields", [{"websites": ["shop.example.com"]}, {"consent": {"trustedOrigins": ["shop.example.com"]}}]
    )
    def test_a_member_may_not_omit_a_website(self, fields: dict[str, Any], api: Api, world: World):
        company = world.company()
        project = make_project(company)
        token = world.member(company).token
        before = uncounted()
        reply = update(api, token, project, **fields)
        assert reply.code == "FORBIDDEN"
        assert reply.error["message"] == "This list omits example.com. Only an admin or owner can remove a website."
        omitted = {"id": project.websites[0].website_id, "origin": "example.com"}
        assert reply.error["details"] == {"reason": "removes_websites", "websites": [omitted]}
        assert uncounted() == before
        assert update(api, world.member(company, "admin").token, project, **fields).status == 200


class Test404:
    def test_an_invalid_body_is_reported_before_an_unknown_project(self, api: Api, world: World):
        project = make_project(world.company())
        stranger = world.company().owner.token
        assert update(api, stranger, project).code == "INVALID_PAYLOAD"
        assert update(api, stranger, project, websites=["com"]).code == "INVALID_ORIGIN"
        assert update(api, stranger, project, websites=["example.com"]).code == "NOT_FOUND"

    @pytest.mark.parametrize("consent", [{"branding": "assent"}, {"trustedOrigins": ["example.com"]}])
    def test_changing_consent_returns_404_without_consent(self, consent: dict[str, Any], api: Api, world: World):
        company = world.company()
        project = without_consent(make_project(company))
        key = world.key(company)
        before = uncounted()
        assert update(api, key, project, consent=consent).code == "NOT_FOUND"
        assert uncounted() == before

    def test_a_project_deleted_during_the_update_is_not_recreated(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        done: list[str] = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not done:
                done.append("once")
                projects.delete_project(project)
            return proceed()

        with intercepted(table.client, before_the_transaction):
            assert update(api, key, project, description="A shop").code == "NOT_FOUND"
        assert stored("PROJECT#") == []


class Test503:
    def test_a_table_timeout_changes_nothing(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)

        def unreachable(call, proceed):
            if call.operation == "TransactWriteItems":
                raise NoAnswer("ConnectTimeoutError")
            return proceed()

        with intercepted(table.client, unreachable):
            assert update(api, key, project, description="A shop").code == "SERVICE_UNAVAILABLE"
        assert get_project(project.project_id) == project
