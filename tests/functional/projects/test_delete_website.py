"""DELETE /v1/projects/{projectId}/websites/{websiteId}: consent no longer allows the origin."""

from dataclasses import replace

from controlplane.platform.table.table import table
from controlplane.projects import audits, changes
from tests.functional.projects.builders import add_audits, stored, without_consent
from tests.functional.projects.conftest import Organization, nothing_written, reread
from tests.support.calls import before_the_transaction, intercepted
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED

TWO = ("example.com", "shop.example.com")


def test_consent_stops_trusting_the_origin(acme: Organization):
    project = acme.project(*TWO)
    reply = acme.delete_website(project)
    assert (reply.status, reply.data) == (200, {"websiteId": project.websites[0].website_id, "deletedAudits": 0})
    shown = acme.get(project).data
    assert shown["consent"]["trustedOrigins"] == ["shop.example.com"]
    assert [website["primary"] for website in shown["websites"]] == [True]


def test_its_audits_and_schedules_are_deleted_and_past_runs_are_kept(acme: Organization):
    project = acme.project(*TWO)
    gone = add_audits(project, position=0, count=2)
    (kept,) = add_audits(project, position=1)
    audits.record_run(project.project_id, gone[0], "passed")
    acme.get(project)
    with recorded_calls() as calls:
        assert acme.delete_website(project).data["deletedAudits"] == 2
    assert [call.operation for call in calls] == ["UpdateItem", "GetItem", "TransactWriteItems"]
    assert [item["auditId"]["S"] for item in stored("AUDIT#")] == [kept]
    assert [item["sk"]["S"].rpartition("#")[2] for item in stored("AUDITSCHEDULE#")] == [kept]
    assert [item["auditId"]["S"] for item in stored("AUDITRUN#")] == [gone[0]]


def test_the_last_website_is_deleted_only_without_consent(acme: Organization):
    project = acme.project()
    add_audits(project)
    with nothing_written():
        reply = acme.delete_website(project)
    assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", {"reason": "last_trusted_website"})
    without_consent(reread(project))
    assert acme.delete_website(project).data["deletedAudits"] == 1
    assert reread(project).websites == ()


def test_a_project_whose_consent_has_no_entry_can_delete_a_website(acme: Organization):
    project = acme.project(*TWO)
    audited = tuple(website._replace(trusted=False) for website in project.websites)
    table.put(changes.put_changed(project, replace(project, websites=audited).with_new_version()), PREPARED)
    assert acme.delete_website(project, by=acme.member("admin")).status == 200
    assert reread(project).websites == audited[1:]


def test_a_deleted_address_can_be_added_again_as_a_new_website(acme: Organization):
    project = acme.project(*TWO)
    acme.delete_website(project)
    assert acme.delete_website(project).code == "NOT_FOUND"
    acme.update(project, websites=["shop.example.com", "example.com"])
    back = reread(project).websites[1]
    assert (back.origin, back.website_id == project.websites[0].website_id) == ("example.com", False)


def test_a_retry_succeeds_if_the_response_of_the_write_was_lost(acme: Organization):
    def applied_twice(call, proceed):
        if call.operation == "TransactWriteItems":
            proceed()
        return proceed()

    with intercepted(table.client, applied_twice):
        assert acme.delete_website(acme.project(*TWO)).status == 200


@each("website_id", ["web_x", "example.com", "web_" + "0" * 18, "x" * 2_000, "🛒", "null", "another project's"])
def test_an_unknown_website_is_not_found_and_nothing_changes(website_id: str, acme: Organization):
    project, other = acme.project(*TWO), acme.project(*TWO, name="Other")
    named = other.websites[0].website_id if website_id == "another project's" else website_id
    with nothing_written():
        assert acme.call("DELETE", f"/{project.project_id}/websites/{named}").code == "NOT_FOUND"


def test_one_of_the_last_two_remains_if_both_are_deleted_concurrently(acme: Organization):
    project = acme.project(*TWO)
    other = project.websites[1].website_id
    with before_the_transaction(table.client, lambda: changes.delete_website(project, other)):
        assert acme.delete_website(project).code == "CONFLICT"
    assert len(reread(project).websites) == 1
