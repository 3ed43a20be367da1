"""DELETE /v1/projects/{projectId}: deletes a project with everything that belongs to it."""

import pytest

from controlplane.findings import vendors
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import audits
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from tests.functional.projects.builders import add_audits, projects_counted, stored, uncounted
from tests.functional.projects.conftest import Organization
from tests.support.calls import before_the_transaction
from tests.support.cleanup import finish_deletions


def unlogged() -> list[str]:
    """Returns what `uncounted` does, without the audit log."""
    return [item for item in uncounted() if keys.LOG_PREFIX not in item]


def test_only_audit_runs_remain_after_a_deletion(acme: Organization):
    acme.call("GET")
    before = unlogged()
    project = acme.project("example.com", "shop.example.com")
    audit_id, _ = add_audits(project, position=0, count=2)
    add_audits(project, position=1)
    audits.record_run(project.project_id, audit_id, "passed")
    for number in range(30):
        vendors.decide_vendor(project, f"vendor{number}", "approved", acme.owner.user_id)
    reply = acme.delete(project)
    counts = {"deletedWebsites": 2, "deletedAudits": 3}
    assert (reply.status, reply.data) == (200, {"deleted": True, "projectId": project.project_id, **counts})
    assert acme.decide(project).code == "NOT_FOUND"
    assert len(stored("VENDOR#")) == 30  # they are deleted in the background
    assert finish_deletions() == 1
    (run,) = stored("AUDITRUN#")
    table.client.delete_item(TableName=table.name, Key={"pk": run["pk"], "sk": run["sk"]})
    assert unlogged() == before


def test_other_projects_of_the_organization_keep_their_items(acme: Organization):
    kept, gone = acme.project(name="Kept"), acme.project(name="Gone")
    (audit_id,) = add_audits(kept)
    vendors.decide_vendor(kept, "segment", "approved", acme.owner.user_id)
    acme.delete(gone)
    finish_deletions()
    assert (projects_counted(acme.company), len(stored("VENDOR#"))) == (1, 1)
    assert [item["auditId"]["S"] for item in stored("AUDIT#")] == [audit_id]
    assert [item["sk"]["S"] for item in stored("PSLUG#")] == ["PSLUG#kept"]


def test_former_slugs_are_deleted_unless_another_project_has_claimed_them(acme: Organization):
    project = acme.project(name="One")
    for name in ("Two", "Three"):
        acme.update(project, projectName=name)
    claimed = acme.project(name="One")
    acme.delete(project)
    with pytest.raises(projects.UnknownProject):
        projects.get_project_by_slug(acme.id, "two")
    finish_deletions()
    assert [item["sk"]["S"] for item in stored("PSLUG#")] == ["PSLUG#one"]
    assert projects.get_project_by_slug(acme.id, "one")[0] == claimed


def test_a_project_with_the_most_audits_is_deleted_in_one_transaction(acme: Organization):
    project = acme.project(*(f"s{number}.example.com" for number in range(50)))
    for position in range(8):
        add_audits(project, position, 5)
    reply = acme.delete(project, by=acme.member("admin"))
    assert (reply.data["deletedWebsites"], reply.data["deletedAudits"]) == (50, 40)
    assert stored("AUDIT") == []


def test_audits_and_websites_added_during_the_deletion_are_deleted_too(acme: Organization):
    project = acme.project()
    add_audits(project)

    def add() -> None:
        add_audits(project)
        two = [Address("example.com", "domain"), Address("localhost", "development")]
        project_changes.update_project(project, {"websites": two}, may_remove_websites=False)

    with before_the_transaction(table.client, add):
        reply = acme.delete(project)
    assert (reply.data["deletedWebsites"], reply.data["deletedAudits"]) == (2, 2)
    assert stored("AUDIT") == []


def test_a_project_is_deleted_once_although_two_try_at_once(acme: Organization):
    acme.project(name="Other")
    project = acme.project()
    with before_the_transaction(table.client, lambda: projects.delete_project(project)):
        assert acme.delete(project).code == "NOT_FOUND"
    assert acme.delete(project).code == "NOT_FOUND"
    assert projects_counted(acme.company) == 1
