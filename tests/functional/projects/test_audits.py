"""Website audits: their life in the API, their runs, and what the sweep does for them."""

import json
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from controlplane.audits import store as audits
from controlplane.audits.items import LOST_AFTER_SECONDS, AuditItem, Proof, RunFinding
from controlplane.erasure import deletions
from controlplane.findings import inbox
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.table import table
from controlplane.projects import changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from sweeper.app import handler
from tests.functional.projects.builders import add_audits, add_run, entries, make_project, stored
from tests.functional.projects.conftest import Organization, nothing_written, reread
from tests.support.api import Reply
from tests.support.audit_reports import complete_audit, finding
from tests.support.calls import before_the_transaction
from tests.support.cleanup import clean_up, finish_deletions
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump

UNKNOWN = "aud_" + "0" * 18
DAY = 86_400
PROVEN = {"proof": Proof("dns", "2026-03-04T05:06:07.000Z")}


class Shop:
    """A project with two websites, and requests about its audits."""

    def __init__(self, acme: Organization) -> None:
        self.acme, self.project = acme, acme.project("example.com", "shop.example.com")
        self.website_id = self.project.websites[0].website_id

    def call(self, method: str, rest: str = "", body: Any = None, **headers: str) -> Reply:
        return self.acme.call(method, f"/{self.project.project_id}/audits{rest}", json_body=body, headers=headers)

    def create(self, **fields: Any) -> Reply:
        return self.call("POST", body={"websiteId": self.website_id, **fields})

    def added(self, schedule: Any = None, **changed: Any) -> AuditItem:
        """Returns a new audit, stored with these changes."""
        return self.store(replace(audits.create_audit(reread(self.project), self.website_id, schedule), **changed))

    def store(self, audit: AuditItem) -> AuditItem:
        table.put_all([audit.to_item()], PREPARED)
        return audit

    def find(self, audit_id: str) -> AuditItem:
        return audits.get_audit(self.project.project_id, audit_id)

    def start(self, audit_id: str, **headers: str) -> Reply:
        return self.call("POST", f"/{audit_id}/runs", **headers)

    def end(self, audit_id: str) -> None:
        """Frees the audit, as the intake does."""
        self.store(replace(self.find(audit_id), active_run_id=None))


@pytest.fixture
def shop(acme: Organization) -> Shop:
    return Shop(acme)


def test_an_audit_is_created_listed_changed_and_deleted(shop, now):
    created = shop.create(schedule="weekly")
    audit = shop.find(created.data["auditId"])
    assert (created.status, created.data) == (
        201,
        {
            "auditId": audit.audit_id,
            "projectId": shop.project.project_id,
            "websiteId": shop.website_id,
            "url": "https://example.com/",
            "schedule": "weekly",
            "createdAt": audit.created_at,
            "activeRunId": None,
            "latestRun": None,
            "proof": None,
            "ownership": {
                "dnsName": "_assent-audit.example.com",
                "dnsValue": audit.token,
                "fileUrl": "https://example.com/.well-known/assent-audit.txt",
                "fileContent": audit.token,
            },
        },
    )
    now.advance(1)
    second = shop.create().data
    assert (second["schedule"], second["ownership"]["dnsValue"] == audit.token) == (None, False)
    assert shop.call("GET").data == [second, created.data]
    one = f"/{audit.audit_id}"
    now.advance(due() - now.seconds - 1)  # the next run is at the same time in both schedules
    for schedule in ("daily", "daily", "weekly", None, "daily", None):
        changed = shop.call("PATCH", one, {"schedule": schedule})
        assert (changed.status, changed.data) == (200, {**created.data, "schedule": schedule})
        assert entries("AUDITSCHEDULE") == [audit.audit_id] * bool(schedule)
    deleted = shop.call("DELETE", one)
    assert (deleted.status, deleted.data) == (200, {"auditId": audit.audit_id, "deletedWebsiteId": None})
    assert shop.call("GET").data == [second]
    again = [shop.call("DELETE", one), shop.call("PATCH", one, {"schedule": None}), shop.start(audit.audit_id)]
    assert [reply.code for reply in again] == ["NOT_FOUND"] * 3
    with pytest.raises(audits.UnknownAudit):
        audits.change_schedule(audit, None)


def test_a_website_that_is_only_audited_is_deleted_with_its_last_audit(shop):
    first, last = shop.added(), shop.added()
    shop.acme.trust(shop.project, "shop.example.com")
    deleted = [shop.call("DELETE", f"/{it.audit_id}").data["deletedWebsiteId"] for it in (first, last)]
    assert deleted == [None, shop.website_id]


def test_a_run_starts_with_its_message_and_is_shown_with_its_report(shop, now, sqs):
    audit = shop.added()
    started = shop.start(audit.audit_id)
    run_id, runs = started.data["runId"], f"/{audit.audit_id}/runs"
    assert (started.status, shop.find(audit.audit_id).active_run_id) == (201, run_id)
    assert started.data == {
        "runId": run_id,
        "auditId": audit.audit_id,
        "projectId": shop.project.project_id,
        "websiteId": shop.website_id,
        "url": "https://example.com/",
        "trigger": "manual",
        "status": "pending",
        "outcome": None,
        "reason": None,
        "createdAt": started.data["createdAt"],
        "finishedAt": None,
        "findings": [],
        "changes": None,
    }
    (letter,) = sqs.at(Queue.WEBSITE_AUDITS.url)
    (run,) = stored("AUDITRUN#")
    assert (letter.group, json.loads(letter.body)) == (
        shop.acme.id,
        {
            **{name: started.data[name] for name in ("runId", "auditId", "projectId", "url")},
            "kind": "run-audit",
            "version": 1,
            "claim": run["claim"]["S"],
            "token": audit.token,
            "consentUrl": audit.consent_url,
        },
    )
    assert str(audit.consent_url).endswith(f"/v1/consent-instances/{shop.project.consent.instance_id}")
    empty = {"vendors": [], "visits": [], "banner": None, "pages": [], "picture": None}
    assert shop.call("GET", f"{runs}/{run_id}").data == {**started.data, **empty}
    found = RunFinding("no-way-to-refuse:example.com", "no-way-to-refuse", "Refusing isn't as easy", "P1")
    now.advance(1)
    done = add_run(shop.project, audit.audit_id, outcome="failed", findings=(found,))
    shown = shop.call("GET", f"{runs}/{done.run_id}").data
    report = {"visits": [{"choice": "refused"}], "pages": ["https://example.com/"], "picture": "/9j/"}
    assert shown.items() >= {"status": "completed", "outcome": "failed", **report}.items()
    of_finding = {"id": found.id, "kind": found.kind, "title": found.title, "priority": "P1"}
    assert shown["findings"] == [{**of_finding, "vendorId": None, "inboxItemId": None}]
    shop.call("DELETE", f"/{audit.audit_id}")  # its runs are kept
    listed = shop.call("GET", runs).data
    assert ([it["runId"] for it in listed], listed[1]) == ([done.run_id, run_id], started.data)
    kept = shop.call("GET", f"{runs}/{run_id}").status
    now.advance(400 * DAY)
    assert (kept, shop.call("GET", f"{runs}/{run_id}").status, shop.call("GET", runs).data) == (200, 404, [])
    others = [f"/{UNKNOWN}/runs/{run_id}", *(f"{runs}/{it}" for it in ("run_x", "run_" + "0" * 34, run_id[:-1]))]
    assert {shop.call("GET", path).code for path in others} == {"NOT_FOUND"}
    assert shop.call("GET", f"/{UNKNOWN}/runs").data == []


def test_an_audit_has_one_run_at_a_time_and_a_website_six_a_day_that_people_start(shop, now):
    audit_id = shop.added().audit_id
    first = shop.start(audit_id)
    with nothing_written():
        reply = shop.start(audit_id)
    details = {"reason": "run_in_progress", "runId": first.data["runId"]}
    assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", details)
    for _ in range(5):
        shop.end(audit_id)
        assert shop.start(audit_id).status == 201
    shop.end(audit_id)
    reply = shop.start(audit_id)
    assert (reply.status, reply.error["details"]) == (429, {"reason": "daily_runs", "limit": 6})
    shop.call("DELETE", f"/{audit_id}")
    again = shop.added()
    elsewhere = audits.create_audit(other := shop.acme.project("example.com"), other.websites[0].website_id, None)
    for audit in (again, elsewhere):
        with pytest.raises(audits.DailyRunsUsed):
            audits.start_run(audit)
    website_id = reread(shop.project).websites[1].website_id
    assert audits.start_run(audits.create_audit(reread(shop.project), website_id, None))
    now.advance(int(reply.headers["retry-after"]))
    assert shop.start(again.audit_id).status == 201


@each("kind", ["wildcard", "any", "app", "development"])
def test_only_a_domain_can_be_audited(kind, acme):
    websites = [Address("x", kind)]
    project = projects.create_project(acme.id, "Shop", region="us-east", addresses=websites, branding="assent")
    body = {"websiteId": project.websites[0].website_id}
    with nothing_written():
        reply = acme.call("POST", f"/{project.project_id}/audits", json_body=body)
    assert (reply.status, reply.error["details"]) == (409, {"reason": "not_auditable", "kind": kind})


@pytest.mark.parametrize(("websites", "most"), [(1, 5), (9, 40)])
def test_a_website_has_at_most_five_audits_and_a_project_forty(websites, most, acme):
    project = make_project(acme.company, origins=[f"s{number}.example.com" for number in range(websites)])
    for position in range(most // 5):
        add_audits(project, position, 5)
    body = {"websiteId": project.websites[-1].website_id}
    reply = acme.call("POST", f"/{project.project_id}/audits", json_body=body)
    assert (reply.status, reply.error["details"]) == (409, {"reason": "audit_limit"})
    assert len(stored("AUDIT#")) == most


def test_an_audit_of_an_unknown_website_is_not_created(shop):
    with nothing_written():
        assert shop.create(websiteId="web_x").code == "NOT_FOUND"


# The sweep


def swept(step: str) -> int:
    """Runs the sweeper, and returns the number of entries that the step finished."""
    return handler({"detail-type": "Scheduled Event"}, None)[step]


def due() -> float:
    """Returns when the only scheduled run is due."""
    (entry,) = [it["sk"]["S"] for it in table_dump() if it["pk"]["S"].startswith("AUDITSCHEDULE#")]
    return datetime.fromisoformat(entry.partition("#")[0]).timestamp()


@pytest.mark.parametrize(("fields", "active"), [(PROVEN, False), ({}, False), (PROVEN, True)])
def test_a_due_run_starts_if_ownership_is_proven_and_no_other_is_active(fields, active, shop, now, sqs):
    audit = shop.added("daily", **fields)
    if active:
        shop.start(audit.audit_id)
    starts, at, sent = bool(fields) and not active, due(), len(sqs.at(Queue.WEBSITE_AUDITS.url))
    assert swept("StartedAudits") == 0
    now.advance(at - clock.now() + 1)
    assert swept("StartedAudits") == starts
    assert (swept("StartedAudits"), due()) == (0, at + DAY)
    assert len(sqs.at(Queue.WEBSITE_AUDITS.url)) == sent + starts
    if starts:
        (run,) = stored("AUDITRUN#")
        found = shop.find(audit.audit_id)
        assert (run["trigger"]["S"], run["runId"]["S"]) == ("schedule", found.active_run_id)
        assert stored("AUDITSTARTS#") == []


def test_a_due_entry_of_another_schedule_or_of_a_deleted_audit_is_dropped(shop, now):
    audit = shop.added("daily", **PROVEN)
    shop.store(replace(audit, schedule=None))
    now.advance(DAY)
    assert (swept("StartedAudits"), entries("AUDITSCHEDULE")) == (0, [])
    audit = shop.added("daily", **PROVEN)
    now.advance(DAY)
    with before_the_transaction(table.client, partial(shop.call, "DELETE", f"/{audit.audit_id}")):
        assert swept("StartedAudits") == 0
    assert (swept("StartedAudits"), stored("AUDITRUN#"), entries("AUDITSCHEDULE")) == (0, [], [])


@pytest.mark.parametrize("deleted", [False, True])
def test_a_run_without_a_report_is_lost_after_three_hours_and_the_audit_can_run_again(deleted, shop, now):
    audit = shop.added()
    run_id = shop.start(audit.audit_id).data["runId"]
    now.advance(LOST_AFTER_SECONDS - 1)
    assert (swept("LostAudits"), entries("AUDITWATCH")) == (0, [audit.audit_id])
    now.advance(2)
    if deleted:
        shop.call("DELETE", f"/{audit.audit_id}")
    assert (swept("LostAudits"), swept("LostAudits"), entries("AUDITWATCH")) == (1, 0, [])
    shown = shop.call("GET", f"/{audit.audit_id}/runs/{run_id}").data
    assert (shown["status"], shown["outcome"], shown["reason"]["code"]) == ("failed", None, "lost")
    assert shop.start(audit.audit_id).status == (404 if deleted else 201)


def test_a_run_that_ended_is_no_longer_watched(shop, now):
    run = audits.start_run(shop.added())
    table.put_all([replace(run, status="completed", outcome="passed").to_item()], PREPARED)
    now.advance(LOST_AFTER_SECONDS + 1)
    assert (swept("LostAudits"), entries("AUDITWATCH")) == (0, [])
    assert stored("AUDITRUN#")[0]["status"]["S"] == "completed"


@pytest.mark.parametrize("deleted", ["audit", "website"])
def test_open_findings_of_a_deleted_audit_are_resolved_once_unless_people_decide_later(deleted, shop, now, sqs):
    made = [finding(subject=f"v{number:02d}", vendorId=None) for number in range(60)]
    run, kept = complete_audit(shop.project, *made), complete_audit(shop.acme.project("kept.example.com"), made[0])
    ids = [it.item_id for it in run.findings]
    acting = shop.acme.owner.user_id

    def decide(position: int, *decision: Any, **until: Any) -> None:
        item = inbox.get_item(ids[position])
        inbox.change_status(item, decision[0], item.version, acting, None, **until)

    decide(0, "accepted")
    decide(1, "dismissed")
    decide(2, "dismissed", until="2026-09-01T00:00:00.000Z")
    now.advance(1)
    project = reread(shop.project)
    if deleted == "audit":
        audits.delete_audit(project, run.audit_id)
    else:
        changes.delete_website(project, run.website_id)
    now.advance(1)
    decide(3, "accepted")
    sent = len(sqs.at(Queue.NOTIFICATIONS.url))
    assert (clean_up(), clean_up(), entries("DELETIONS")) == (1, 0, [])
    found = [inbox.get_item(it) for it in ids]
    assert [it.status for it in found] == ["resolved", "dismissed", "resolved", "accepted", *["resolved"] * 56]
    assert {it.status_reason for it in found if it.status == "resolved"} == {"Its audit was deleted."}
    assert found[0].history[-1].resolver == "An audit"
    assert inbox.get_item(kept.findings[0].item_id).status == "open"
    events = [json.loads(letter.body) for letter in sqs.at(Queue.NOTIFICATIONS.url)[sent:]]
    assert ({it["event"] for it in events}, len(events)) == ({"finding.resolved"}, 3)
    assert sum(len(it["subjects"]) for it in events) == 58


@pytest.mark.parametrize("what", ["project", "organization"])
def test_a_deletion_leaves_no_run_report_or_entry(what, shop):
    audit = shop.added("daily")
    add_run(shop.project, audit.audit_id)
    shop.start(audit.audit_id)
    if what == "project":
        shop.acme.delete(shop.project)
    else:
        deletions.delete_organization(shop.acme.id)
    finish_deletions()
    left = [it for it in stored("AUDIT") if it["sk"]["S"] != f"AUDITSTARTS#example.com#{clock.timestamp()[:10]}"]
    assert len(stored("AUDITSTARTS#")) == (what == "project")  # another project can have the same website
    assert (left, entries("AUDITSCHEDULE"), entries("AUDITWATCH")) == ([], [], [])
