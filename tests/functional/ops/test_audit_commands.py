"""`assent-ops audit`."""

import pytest

from controlplane.store import project_changes, projects
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.table import table
from tests.functional.ops.conftest import Ops
from tests.support.each import each
from tests.support.world import World, table_dump

ADDRESSES = [Address("shop.example.com", "domain"), Address("localhost:3000", "development")]


@pytest.fixture
def project(world: World) -> ProjectItem:
    return projects.create_project(
        world.company().organization_id, "Shop", region="eu-central", addresses=ADDRESSES, branding="assent"
    )


class TestCreate:
    def test_audit_create_takes_a_website_by_address_or_id(self, ops: Ops, project: ProjectItem):
        website = project.websites[0]
        by_address = ops("audit", "create", project.project_id, "shop.example.com").document
        assert by_address == {
            "auditId": by_address["auditId"],
            "projectId": project.project_id,
            "websiteId": website.website_id,
            "origin": "shop.example.com",
            "everyDays": 7,
            "createdAt": "2026-03-04T05:06:07.000Z",
        }
        by_id = ops("audit", "create", project.project_id, website.website_id, "--every-days", "1").document
        stored = projects.get_project(project.project_id).websites[0]
        assert stored.audits == (by_address["auditId"], by_id["auditId"])

    def test_audit_create_accepts_only_domains(self, ops: Ops, project: ProjectItem):
        before = table_dump()
        outcome = ops("audit", "create", project.project_id, "localhost:3000")
        assert outcome.exit_code == 1
        assert "development" in outcome.error["message"]
        assert table_dump() == before

    def test_exit_code_4_at_the_websites_limit_of_audits(self, ops: Ops, project: ProjectItem):
        for _ in range(5):
            assert ops("audit", "create", project.project_id, "shop.example.com").exit_code == 0
        assert ops("audit", "create", project.project_id, "shop.example.com").exit_code == 4

    def test_exit_code_3_for_an_unknown_website_or_project(self, ops: Ops, project: ProjectItem):
        outcome = ops("audit", "create", project.project_id, "other.example.com")
        assert outcome.exit_code == 3
        assert "shop.example.com" in outcome.error["message"]
        assert ops("audit", "create", "prj_nonsense", "shop.example.com").exit_code == 3

    @pytest.mark.parametrize("days", ["0", "366", "weekly"])
    def test_exit_code_2_for_an_invalid_schedule(self, ops: Ops, project: ProjectItem, days: str):
        outcome = ops("audit", "create", project.project_id, "shop.example.com", "--every-days", days)
        assert outcome.exit_code == 2


class TestList:
    def test_lists_the_projects_audits(self, ops: Ops, project: ProjectItem):
        assert ops("audit", "list", project.project_id).document == []
        made = ops("audit", "create", project.project_id, "shop.example.com", "--every-days", "30").document
        made.pop("projectId")
        assert ops("audit", "list", project.project_id).document == [made]

    def test_exit_code_3_for_an_unknown_project(self, ops: Ops):
        assert ops("audit", "list", "prj_nonsense").exit_code == 3


class TestDelete:
    def test_audit_delete_removes_audit_and_schedule_but_keeps_others_and_runs(self, ops: Ops, project: ProjectItem):
        project_id = project.project_id
        kept = ops("audit", "create", project_id, "shop.example.com").document
        gone = ops("audit", "create", project_id, "shop.example.com").document
        ops("audit", "record", project_id, gone["auditId"], "--result", "passed")
        expected = {"deleted": True, "auditId": gone["auditId"], "deletedWebsiteId": None}
        assert ops("audit", "delete", project_id, gone["auditId"], "--yes").document == expected
        assert [it["auditId"] for it in ops("audit", "list", project_id).document] == [kept["auditId"]]
        left = [item["sk"]["S"] for item in table_dump() if gone["auditId"] in item["sk"]["S"]]
        assert len(left) == 1
        assert left[0].startswith("AUDITRUN#")
        assert ops("audit", "delete", project_id, gone["auditId"], "--yes").exit_code == 3

    def test_a_website_that_is_not_a_consent_entry_is_deleted_with_its_last_audit(self, ops: Ops, project: ProjectItem):
        first, last = (ops("audit", "create", project.project_id, "shop.example.com").document for _ in range(2))
        entries = {"trusted_origins": [ADDRESSES[1]]}
        project_changes.update_project(project, entries, may_remove_websites=True)
        deleted = ops("audit", "delete", project.project_id, first["auditId"], "--yes").document
        assert deleted["deletedWebsiteId"] is None
        deleted = ops("audit", "delete", project.project_id, last["auditId"], "--yes").document
        assert deleted["deletedWebsiteId"] == project.websites[0].website_id
        assert [it.origin for it in projects.get_project(project.project_id).websites] == ["localhost:3000"]

    def test_asks_first_and_exits_2_without_a_terminal(self, ops: Ops, project: ProjectItem):
        made = ops("audit", "create", project.project_id, "shop.example.com").document
        before = table_dump()
        assert ops("audit", "delete", project.project_id, made["auditId"]).exit_code == 2
        assert table_dump() == before

    def test_exit_code_3_for_an_unknown_project(self, ops: Ops):
        assert ops("audit", "delete", "prj_nonsense", "aud_nonsense", "--yes").exit_code == 3


class TestRecord:
    def test_records_a_run_and_its_result(self, ops: Ops, project: ProjectItem):
        made = ops("audit", "create", project.project_id, "shop.example.com").document
        run = ops("audit", "record", project.project_id, made["auditId"], "--result", "failed").document
        assert run == {
            "auditId": made["auditId"],
            "projectId": project.project_id,
            "startedAt": "2026-03-04T05:06:07.000Z",
            "result": "failed",
        }
        pk = project.key.pk
        assert [item["result"] for item in table.query(pk, prefix="AUDITRUN#").items] == ["failed"]

    @each("audit", ["aud_nonsense", "", "#", "x" * 2000])
    def test_exit_code_3_for_an_unknown_audit(self, ops: Ops, project: ProjectItem, audit: str):
        before = table_dump()
        assert ops("audit", "record", project.project_id, audit, "--result", "passed").exit_code == 3
        assert table_dump() == before

    def test_exit_code_2_for_an_invalid_result(self, ops: Ops, project: ProjectItem):
        assert ops("audit", "record", project.project_id, "aud_x", "--result", "maybe").exit_code == 2
