"""DELETE /v1/projects/{projectId}/websites/{websiteId}: consent no longer allows the origin."""

from dataclasses import replace

import pytest

from controlplane.store import audits, projects
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import get_project
from controlplane.store.table import table
from tests.functional.projects.builders import add_audits, make_project, stored, uncounted, without_consent
from tests.support.api import Api, Reply
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World


def delete(api: Api, token: str, project: ProjectItem, position: int = 0) -> Reply:
    return api.delete(f"/v1/projects/{project.project_id}/websites/{project.websites[position].website_id}", token)


def two_websites(world: World):
    company = world.company()
    return company, make_project(company, origins=["example.com", "shop.example.com"])


class Test200:
    def test_consent_stops_trusting_the_origin(self, api: Api, world: World):
        company, project = two_websites(world)
        key = world.key(company)
        reply = delete(api, key, project)
        assert reply.status == 200
        assert reply.data == {"websiteId": project.websites[0].website_id, "deletedAudits": 0}
        shown = api.get(f"/v1/projects/{project.project_id}", key).data
        assert shown["consent"]["trustedOrigins"] == ["shop.example.com"]
        assert [website["primary"] for website in shown["websites"]] == [True]

    def test_its_audits_and_schedules_are_deleted_and_past_runs_are_kept(self, api: Api, world: World):
        company, project = two_websites(world)
        gone = add_audits(project, position=0, count=2)
        (kept,) = add_audits(project, position=1)
        audits.record_run(project.project_id, gone[0], "passed")
        assert delete(api, world.key(company), project).data["deletedAudits"] == 2
        assert [item["auditId"]["S"] for item in stored("AUDIT#")] == [kept]
        assert [item["sk"]["S"].rpartition("#")[2] for item in stored("AUDITSCHEDULE#")] == [kept]
        assert [item["auditId"]["S"] for item in stored("AUDITRUN#")] == [gone[0]]

    def test_a_project_without_consent_can_delete_its_last_website(self, api: Api, world: World):
        company = world.company()
        project = without_consent(make_project(company))
        add_audits(project)
        assert delete(api, world.key(company), project).data["deletedAudits"] == 1
        assert get_project(project.project_id).websites == ()

    def test_a_project_whose_consent_has_no_entry_can_delete_a_website(self, api: Api, world: World):
        company, project = two_websites(world)
        audited = tuple(replace(website, trusted=False) for website in project.websites)
        changed = replace(project, websites=audited).with_new_version()
        table.put(projects.put_changed(project, changed), PREPARED)
        assert delete(api, world.key(company), changed).status == 200
        assert get_project(project.project_id).websites == audited[1:]

    @pytest.mark.parametrize("role", ["admin", "owner"])
    def test_admins_and_owners_may_delete_a_website(self, role, api: Api, world: World):
        company, project = two_websites(world)
        assert delete(api, world.member(company, role).token, project).status == 200

    def test_a_deleted_address_can_be_added_again_as_a_new_website(self, api: Api, world: World):
        company, project = two_websites(world)
        key = world.key(company)
        delete(api, key, project)
        body = {"websites": ["shop.example.com", "example.com"]}
        api.patch(f"/v1/projects/{project.project_id}", key, json_body=body)
        back = get_project(project.project_id).websites[1]
        assert back.origin == "example.com"
        assert back.website_id != project.websites[0].website_id

    def test_a_retry_succeeds_if_the_response_of_the_write_was_lost(self, api: Api, world: World):
        company, project = two_websites(world)
        key = world.key(company)

        def applied_twice(call, proceed):
            if call.operation == "TransactWriteItems":
                proceed()
            return proceed()

        with intercepted(table.client, applied_twice):
            assert delete(api, key, project).status == 200

    def test_a_key_makes_three_table_calls(self, api: Api, world: World):
        company, project = two_websites(world)
        add_audits(project)
        key = world.key(company)
        api.get("/v1/projects", key)
        calls: list[str] = []

        def noting(call, proceed):
            calls.append(call.operation)
            return proceed()

        with intercepted(table.client, noting):
            delete(api, key, project)
        assert calls == ["UpdateItem", "GetItem", "TransactWriteItems"]


class Test403:
    def test_a_member_may_not_delete_a_website_and_nothing_is_written(self, api: Api, world: World):
        company, project = two_websites(world)
        token = world.member(company).token
        before = uncounted()
        assert delete(api, token, project).code == "FORBIDDEN"
        assert uncounted() == before


class Test404:
    @each("website_id", ["web_x", "example.com", "0", "web_" + "0" * 18, "x" * 2_000, "🛒", "null"])
    def test_returns_404_for_an_unknown_website_and_changes_nothing(self, website_id: str, api: Api, world: World):
        company, project = two_websites(world)
        key = world.key(company)
        before = uncounted()
        reply = api.delete(f"/v1/projects/{project.project_id}/websites/{website_id}", key)
        assert reply.code == "NOT_FOUND"
        assert uncounted() == before

    def test_returns_404_for_a_website_of_another_project(self, api: Api, world: World):
        company, project = two_websites(world)
        other = make_project(company, "Other", ["other.example.com", "b.example.com"])
        path = f"/v1/projects/{project.project_id}/websites/{other.websites[0].website_id}"
        assert api.delete(path, world.key(company)).code == "NOT_FOUND"
        assert len(get_project(other.project_id).websites) == 2

    def test_a_second_deletion_returns_404(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["a.example.com", "b.example.com", "c.example.com"])
        key = world.key(company)
        delete(api, key, project)
        assert delete(api, key, project).code == "NOT_FOUND"


class Test409:
    def test_the_last_website_that_consent_trusts_is_not_deleted(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        add_audits(project)
        key = world.key(company)
        before = uncounted()
        reply = delete(api, key, project)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "last_trusted_website"}
        assert uncounted() == before

    def test_one_of_the_last_two_remains_if_both_are_deleted_concurrently(self, api: Api, world: World):
        company, project = two_websites(world)
        key = world.key(company)
        done: list[str] = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not done:
                done.append("once")
                projects.delete_website(project, project.websites[1].website_id)
            return proceed()

        with intercepted(table.client, before_the_transaction):
            assert delete(api, key, project).code == "CONFLICT"
        assert len(get_project(project.project_id).websites) == 1
