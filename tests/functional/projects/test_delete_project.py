"""DELETE /v1/projects/{projectId}: deletes a project with everything that belongs to it."""

import pytest

from controlplane.store import audits, keys, project_changes, projects, vendors
from controlplane.store.project_items import Address
from controlplane.store.table import table
from tests.functional.projects.builders import add_audits, make_project, projects_counted, stored, uncounted
from tests.support.api import Api
from tests.support.calls import before_the_transaction, intercepted
from tests.support.cleanup import finish_deletions
from tests.support.world import World


def unlogged() -> list[str]:
    """Returns what `uncounted` does, without the audit log."""
    return [item for item in uncounted() if keys.LOG_PREFIX not in item]


class Test200:
    def test_the_response_counts_what_was_deleted_with_the_project(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["example.com", "shop.example.com"])
        add_audits(project, position=0, count=2)
        add_audits(project, position=1)
        reply = api.delete(f"/v1/projects/{project.project_id}", world.key(company))
        assert reply.status == 200
        assert reply.data == {
            "deleted": True,
            "projectId": project.project_id,
            "deletedWebsites": 2,
            "deletedAudits": 3,
        }

    def test_only_audit_runs_remain_after_a_deletion(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        api.get("/v1/projects", key)
        before = unlogged()
        project = make_project(company)
        (audit_id,) = add_audits(project)
        audits.record_run(project.project_id, audit_id, "passed")
        for number in range(30):
            vendors.decide_vendor(project, f"vendor{number}", "approved", company.owner.user_id)
        api.delete(f"/v1/projects/{project.project_id}", key)
        assert finish_deletions() == 1
        (run,) = stored("AUDITRUN#")
        table.client.delete_item(TableName=table.name, Key={"pk": run["pk"], "sk": run["sk"]})
        assert unlogged() == before

    def test_other_projects_of_the_organization_keep_their_items(self, api: Api, world: World):
        company = world.company()
        kept, gone = make_project(company, "Kept"), make_project(company, "Gone")
        (audit_id,) = add_audits(kept)
        vendors.decide_vendor(kept, "segment", "approved", company.owner.user_id)
        api.delete(f"/v1/projects/{gone.project_id}", world.key(company))
        finish_deletions()
        assert projects_counted(company) == 1
        assert [item["auditId"]["S"] for item in stored("AUDIT#")] == [audit_id]
        assert len(stored("VENDOR#")) == 1
        assert [item["sk"]["S"] for item in stored("PSLUG#")] == ["PSLUG#kept"]

    def test_former_slugs_are_deleted_unless_another_project_has_claimed_them(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, "One")
        for name in ("Two", "Three"):
            api.patch(f"/v1/projects/{project.project_id}", world.key(company), json_body={"projectName": name})
        claimed = make_project(company, "One")
        api.delete(f"/v1/projects/{project.project_id}", world.key(company))
        with pytest.raises(projects.UnknownProject):
            projects.get_project_by_slug(company.organization_id, "two")
        finish_deletions()
        assert [item["sk"]["S"] for item in stored("PSLUG#")] == ["PSLUG#one"]
        assert projects.get_project_by_slug(company.organization_id, "one")[0] == claimed

    def test_a_project_can_be_deleted_with_its_last_website(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        assert api.delete(f"/v1/projects/{project.project_id}", world.key(company)).status == 200

    def test_a_project_with_the_most_audits_is_deleted_in_one_transaction(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[f"s{number}.example.com" for number in range(50)])
        for position in range(8):
            add_audits(project, position, 5)
        reply = api.delete(f"/v1/projects/{project.project_id}", world.key(company))
        assert (reply.data["deletedWebsites"], reply.data["deletedAudits"]) == (50, 40)
        assert stored("AUDIT") == []

    def test_an_admin_may_delete_a_project(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        assert api.delete(f"/v1/projects/{project.project_id}", world.member(company, "admin").token).status == 200

    def test_audits_and_websites_added_during_the_deletion_are_deleted_too(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        add_audits(project)
        key = world.key(company)
        added: list[str] = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not added:
                added.append("once")
                added.extend(add_audits(project))
                two = [Address("example.com", "domain"), Address("localhost", "development")]
                project_changes.update_project(project, {"websites": two}, may_remove_websites=False)
            return proceed()

        with intercepted(table.client, before_the_transaction):
            reply = api.delete(f"/v1/projects/{project.project_id}", key)
        assert (reply.data["deletedWebsites"], reply.data["deletedAudits"]) == (2, 2)
        assert stored("AUDIT") == []

    def test_vendors_are_unreachable_before_they_are_removed(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
        assert api.delete(f"/v1/projects/{project.project_id}", world.key(company)).status == 200
        assert len(stored("VENDOR#")) == 1
        path = f"/v1/projects/{project.project_id}/vendors/segment/decision"
        assert api.post(path, company.owner.token, json_body={"decision": "ignore"}).code == "NOT_FOUND"


class Test403:
    def test_a_member_may_not_delete_a_project_and_nothing_is_written(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        token = world.member(company).token
        before = uncounted()
        assert api.delete(f"/v1/projects/{project.project_id}", token).code == "FORBIDDEN"
        assert uncounted() == before


class Test404:
    def test_a_second_deletion_returns_404(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        api.delete(f"/v1/projects/{project.project_id}", key)
        assert api.delete(f"/v1/projects/{project.project_id}", key).code == "NOT_FOUND"
        assert projects_counted(company) == 0

    def test_only_one_of_two_concurrent_deletions_succeeds(self, api: Api, world: World):
        company = world.company()
        make_project(company, "Other")
        project = make_project(company)
        key = world.key(company)
        with before_the_transaction(table.client, lambda: projects.delete_project(project)):
            assert api.delete(f"/v1/projects/{project.project_id}", key).code == "NOT_FOUND"
        assert projects_counted(company) == 1

    def test_another_organizations_project_is_not_deleted(self, api: Api, world: World):
        project = make_project(world.company())
        assert api.delete(f"/v1/projects/{project.project_id}", world.key(world.company())).code == "NOT_FOUND"
        assert len(stored("PROJECT#")) == 1
