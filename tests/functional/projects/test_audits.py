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
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from sweeper.app import handler
from tests.functional.projects.builders import add_audits, add_run, entries, make_project, stored
from tests.functional.projects.conftest import Organization, nothing_written, reread
from tests.support.api import Reply
from tests.support.calls import before_the_transaction
from tests.support.cleanup import finish_deletions
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
    page = shop.call("GET", "?limit=1")
    assert page.data == [second]
    assert shop.call("GET", f"?limit=1&cursor={page.body['pagination']['nextCursor']}").data == [created.data]
    one = f"/{audit.audit_id}"
    now.advance(due() - now.seconds - 1)  # the next run is at the same time in both schedules
    for schedule in ("daily", "daily", "weekly", None):
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
    page = shop.call("GET", f"{runs}?limit=1")
    assert [it["runId"] for it in page.data] == [done.run_id]
    assert shop.call("GET", f"{runs}?cursor={page.body['pagination']['nextCursor']}").data == [started.data]
    kept = shop.call("GET", f"{runs}/{run_id}").status
    now.advance(400 * DAY)
    assert (kept, shop.call("GET", f"{runs}/{run_id}").status, shop.call("GET", runs).data) == (200, 404, [])
    others = [f"/{UNKNOWN}/runs/{run_id}", *(f"{runs}/{it}" for it in ("run_x", "run_" + "0" * 34, run_id[:-1]))]
    assert {shop.call("GET", path).code for path in others} == {"NOT_FOUND"}
    assert shop.call("GET", f"/{UNKNOWN}/runs").data == []


def test_an_audit_has_one_run_at_a_time_and_six_a_day_that_people_start(shop, now):
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
    now.advance(int(reply.headers["retry-after"]))
    assert shop.start(audit_id).status == 201


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


@each(
    ("body", "field"),
    [({}, "websiteId"), ({"websiteId": "web_x", "schedule": "hourly"}, "schedule"), ({"websiteId": 1}, "websiteId")],
)
def test_a_body_is_checked_and_an_unknown_website_is_not_found(body, field, shop):
    with nothing_written():
        assert shop.call("POST", body=body).error["details"][0]["path"] == [field]
        assert shop.create(websiteId="web_x").code == "NOT_FOUND"


def test_a_repeated_request_creates_and_starts_once(shop, sqs):
    key, body = {"Idempotency-Key": "one"}, {"websiteId": shop.website_id}
    created, again = (shop.call("POST", "", body, **key) for _ in range(2))
    assert created.data == again.data
    started, again = (shop.start(created.data["auditId"], **key) for _ in range(2))
    assert started.data == again.data
    assert (len(stored("AUDIT#")), len(sqs.at(Queue.WEBSITE_AUDITS.url))) == (1, 1)


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
        # Those that people start have a limit of their own.
        assert (run["trigger"]["S"], run["runId"]["S"], None) == ("schedule", found.active_run_id, found.runs_on)


def test_a_due_entry_of_another_schedule_or_of_a_deleted_audit_is_dropped(shop, now):
    audit = shop.added("daily", **PROVEN)
    shop.store(replace(audit, schedule=None))
    now.advance(DAY)
    assert (swept("StartedAudits"), entries("AUDITSCHEDULE")) == (0, [])
    audit = shop.added("daily", **PROVEN)
    now.advance(DAY)
    with before_the_transaction(table.client, partial(audits.delete_audit, reread(shop.project), audit.audit_id)):
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
    assert (stored("AUDIT"), entries("AUDITSCHEDULE"), entries("AUDITWATCH")) == ([], [], [])
