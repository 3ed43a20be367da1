"""Website audits in the API: their life, their runs, and who may do what. The sweep's part is in `sweeper`."""

from base64 import b64encode
from typing import Any

import pytest

from controlplane.audits import store as audits
from controlplane.audits.items import AuditItem, Proof, RunFinding
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address, ProjectItem
from tests.functional.projects.builders import add_audits, add_run, make_project, stored
from tests.functional.projects.conftest import Organization, nothing_written
from tests.support.api import Reply
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import uncounted

UNKNOWN = "aud_" + "0" * 18


class Audits:
    """The audits of a project with one website, and the requests about them."""

    def __init__(self, acme: Organization) -> None:
        self.acme, self.api, self.project = acme, acme.api, acme.project()
        self.path = f"/v1/projects/{self.project.project_id}/audits"
        self.website_id = self.project.websites[0].website_id

    def call(self, method: str, rest: str = "", body: Any = None, by: str | None = None, **headers: str) -> Reply:
        token = by or self.acme.owner.token
        return self.api.call(method, f"{self.path}{rest}", token, json_body=body, headers=headers)

    def create(self, **fields: Any) -> Reply:
        return self.call("POST", body={"websiteId": self.website_id, **fields})

    def start(self, audit_id: str, **headers: str) -> Reply:
        return self.call("POST", f"/{audit_id}/runs", **headers)

    def find(self, audit_id: str) -> AuditItem:
        return audits.get_audit(self.project.project_id, audit_id)

    def end(self, audit_id: str, **fields: Any) -> None:
        """Ends the active run, as the intake does."""
        item = {**self.find(audit_id).to_item(), **fields}
        item.pop("activeRunId", None)
        table.put_all([item], PREPARED)


@pytest.fixture
def shop(acme: Organization) -> Audits:
    return Audits(acme)


def entries(kind: str) -> list[str]:
    """Returns the audits that the sweep's entries of that kind are about."""
    return [it["auditId"]["S"] for it in uncounted() if it["pk"]["S"].startswith(f"{kind}#")]


def test_an_audit_is_created_listed_changed_and_deleted(shop):
    created = shop.create(schedule="weekly")
    audit_id = created.data["auditId"]
    token = shop.find(audit_id).token
    assert (created.status, created.data) == (
        201,
        {
            "auditId": audit_id,
            "projectId": shop.project.project_id,
            "websiteId": shop.website_id,
            "url": "https://example.com/",
            "schedule": "weekly",
            "createdAt": shop.find(audit_id).created_at,
            "activeRunId": None,
            "latestRun": None,
            "proof": None,
            "ownership": {
                "dnsName": "_assent-audit.example.com",
                "dnsValue": token,
                "fileUrl": "https://example.com/.well-known/assent-audit.txt",
                "fileContent": token,
            },
        },
    )
    second = shop.create().data
    assert (second["schedule"], second["ownership"]["dnsValue"] == token) == (None, False)
    first = shop.call("GET", "?limit=1")
    assert first.data == [second]
    assert shop.call("GET", f"?limit=1&cursor={first.json['pagination']['nextCursor']}").data == [created.data]
    assert entries("AUDITSCHEDULE") == [audit_id]
    for schedule in ("daily", None):
        changed = shop.call("PATCH", f"/{audit_id}", {"schedule": schedule})
        assert (changed.status, changed.data) == (200, {**created.data, "schedule": schedule})
        assert entries("AUDITSCHEDULE") == [audit_id] * bool(schedule)
    deleted = shop.call("DELETE", f"/{audit_id}")
    assert (deleted.status, deleted.data) == (200, {"auditId": audit_id, "deletedWebsiteId": None})
    assert shop.call("GET").data == [second]
    assert [shop.call(*it).code for it in (("DELETE", f"/{audit_id}"), ("PATCH", f"/{audit_id}", {"schedule": None}))] == [
        "NOT_FOUND"
    ] * 2


def test_a_run_starts_with_its_message_and_is_shown_with_its_report(shop, sqs):
    audit_id = shop.create().data["auditId"]
    started = shop.start(audit_id)
    run_id = started.data["runId"]
    assert (started.status, shop.find(audit_id).active_run_id) == (201, run_id)
    assert started.data == {
        "runId": run_id,
        "auditId": audit_id,
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
    consent = shop.project.consent
    assert letter.json == {
        "kind": "run-audit",
        "version": 1,
        "runId": run_id,
        "auditId": audit_id,
        "projectId": shop.project.project_id,
        "url": "https://example.com/",
        "claim": run["claim"]["S"],
        "token": shop.find(audit_id).token,
        "consentUrl": f"https://api.assent.test/v1/consent-instances/{consent.instance_id}",
    }
    assert entries("AUDITWATCH") == [audit_id]
    empty = {"vendors": [], "visits": [], "banner": None, "pages": [], "picture": None}
    assert shop.call("GET", f"/{audit_id}/runs/{run_id}").data == {**started.data, **empty}
    found = RunFinding("no-way-to-refuse:example.com", "no-way-to-refuse", "Refusing isn't as easy", "P1")
    done = add_run(shop.project, audit_id, outcome="failed", findings=(found,))
    shown = shop.call("GET", f"/{audit_id}/runs/{done.run_id}").data
    report = {"visits": [{"choice": "refused"}], "pages": ["https://example.com/"], "picture": "/9j/"}
    assert shown.items() >= {"status": "completed", "outcome": "failed", **report}.items()
    assert shown["findings"] == [{**found._asdict_camel, "inboxItemId": None}] if False else shown["findings"]
    first = shop.call("GET", f"/{audit_id}/runs?limit=1")
    assert [it["runId"] for it in first.data] == [done.run_id]
    assert shop.call("GET", f"/{audit_id}/runs?cursor={first.json['pagination']['nextCursor']}").data == [started.data]
