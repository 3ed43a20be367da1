"""DELETE /v1/projects/{projectId} and its websites: what belongs to them goes along."""

from dataclasses import replace
from typing import Any

from controlplane.findings import vendors
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import changes
from openassent_analysis.catalogue import catalogue
from tests.functional.projects.builders import add_audits, add_run, entries, stored, without_consent
from tests.functional.projects.conftest import nothing_written, reread
from tests.support.cleanup import finish_deletions
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import uncounted


def unlogged() -> list[dict[str, Any]]:
    """Returns what `uncounted` does, without the audit log."""
    return [item for item in uncounted() if not item["pk"]["S"].startswith(keys.LOG_PREFIX)]


def test_nothing_remains_after_a_deletion(acme):
    acme.call("GET")
    before = unlogged()
    project = acme.project("example.com", "shop.example.com")
    audit_id, _ = add_audits(project, position=0, count=2)
    add_audits(project, position=1)
    add_run(project, audit_id)
    for vendor_id in [*catalogue().vendors][:30]:
        vendors.decide_vendor(project, vendor_id, "approved", acme.owner.user_id)
    reply = acme.delete(project)
    counts = {"deletedWebsites": 2, "deletedAudits": 3}
    assert (reply.status, reply.data) == (200, {"deleted": True, "projectId": project.project_id, **counts})
    assert acme.decide(project).code == "NOT_FOUND"
    assert len(stored("VENDOR#")) == 30  # they are deleted in the background
    assert finish_deletions() == 1
    assert unlogged() == before


def test_all_audits_and_websites_are_deleted_in_one_transaction(acme):
    project = acme.project(*(f"s{number}.example.com" for number in range(50)))
    for position in range(8):
        add_audits(project, position, 5)
    reply = acme.delete(project, by=acme.member("admin"))
    assert (reply.data["deletedWebsites"], reply.data["deletedAudits"]) == (50, 40)
    assert stored("AUDIT") == []


TWO = ("example.com", "shop.example.com")


def test_consent_stops_trusting_the_origin_which_can_be_added_again_as_a_new_website(acme):
    project = acme.project(*TWO)
    reply = acme.delete_website(project)
    assert (reply.status, reply.data) == (200, {"websiteId": project.websites[0].website_id, "deletedAudits": 0})
    shown = acme.get(project).data
    assert shown["consent"]["trustedOrigins"] == ["shop.example.com"]
    assert [website["primary"] for website in shown["websites"]] == [True]
    assert acme.delete_website(project).code == "NOT_FOUND"
    acme.update(project, websites=["shop.example.com", "example.com"])
    back = reread(project).websites[1]
    assert (back.origin, back.website_id == project.websites[0].website_id) == ("example.com", False)


def test_its_audits_and_schedules_are_deleted_and_past_runs_are_kept(acme):
    project = acme.project(*TWO)
    gone = add_audits(project, position=0, count=2)
    (kept,) = add_audits(project, position=1)
    add_run(project, gone[0])
    assert acme.delete_website(project).data["deletedAudits"] == 2
    assert [item["auditId"]["S"] for item in stored("AUDIT#")] == [kept]
    assert entries("AUDITSCHEDULE") == [kept]
    assert [item["auditId"]["S"] for item in stored("AUDITRUN#")] == [gone[0]]


def test_the_last_website_is_deleted_only_without_consent(acme):
    project = acme.project(*TWO)
    add_audits(project)
    changes.delete_website(project, project.websites[1].website_id)
    with nothing_written():
        reply = acme.delete_website(project)
    assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", {"reason": "last_trusted_website"})
    without_consent(reread(project))
    assert acme.delete_website(project).data["deletedAudits"] == 1
    assert reread(project).websites == ()


def test_a_project_whose_consent_has_no_entry_can_delete_a_website(acme):
    project = acme.project(*TWO)
    audited = tuple(website._replace(trusted=False) for website in project.websites)
    table.put(changes.put_changed(project, replace(project, websites=audited).with_new_version()), PREPARED)
    assert acme.delete_website(project, by=acme.member("admin")).status == 200
    assert reread(project).websites == audited[1:]


@each("website_id", ["web_x", "example.com", "web_" + "0" * 18, "x" * 2_000, "🛒", "null", "another project's"])
def test_an_unknown_website_is_not_found_and_nothing_changes(website_id, acme):
    project, other = acme.project(*TWO), acme.project(*TWO, name="Other")
    named = other.websites[0].website_id if website_id == "another project's" else website_id
    with nothing_written():
        assert acme.call("DELETE", f"/{project.project_id}/websites/{named}").code == "NOT_FOUND"
