"""Reports of website audits: each completes its run once, and nothing else that it says is believed."""

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from controlplane.audits import runs, store
from controlplane.audits.items import AuditItem, Proof, RunChanges, RunItem
from controlplane.audits.kinds import KINDS
from controlplane.findings import code_uses, vendors
from controlplane.findings.code_uses import FoundVendor
from controlplane.findings.items import CodeUse, InboxItem, VendorPlace
from controlplane.platform.queues.messages import MAX_RECEIVES, Queue
from controlplane.platform.table.table import table
from controlplane.projects import changes
from controlplane.projects import store as projects
from controlplane.projects.store import get_project
from finding_intake.app import handler
from tests.functional.finding_intake.conftest import Intake
from tests.functional.finding_intake.test_queue import EVENTS
from tests.functional.projects.builders import make_project
from tests.support.audit_reports import ALL, PAGE, finding, report, vendor
from tests.support.each import each
from tests.support.world import table_dump

SEGMENT = "loaded-before-consent:segment"
FIRST = "2026-03-04T05:06:10Z"
# A browser opens the last one at evil.example.
ADDRESSES = [
    "javascript:alert(1)",
    "https://",
    "https:///x",
    "https://[x",
    "https://me@a.test/",
    r"https://evil.example\.a.test",
]


class Audited(Intake):
    """The intake's company, with an audit of its project's website."""

    audit_id: str

    @property
    def audit(self) -> AuditItem:
        return store.get_audit(self.project.project_id, self.audit_id)

    def begin(self) -> RunItem:
        return store.start_run(self.audit)

    def run(self, run: RunItem) -> RunItem:
        found = runs.find_run(self.project.project_id, self.audit_id, run.run_id)
        assert found
        return found

    def complete(self, *findings: dict[str, Any], **fields: Any) -> RunItem:
        """Starts a run, which the worker reports. Returns the completed run."""
        run = self.begin()
        self.take(report(run, *findings, **{"finishedAt": FIRST, **fields}))
        assert self.dead == []
        return self.run(run)

    def statuses(self) -> dict[str, str]:
        return {item["title"]: item["status"] for item in self.items}

    def events(self) -> list[str]:
        return [json.loads(letter.body)["event"] for letter in self.sqs.at(Queue.NOTIFICATIONS.url)]


@pytest.fixture
def audited(intake):
    made = Audited(intake.sqs, intake.company)
    made.project = make_project(intake.company, origins=["shop.example.com", "example.com"])
    made.audit_id = store.create_audit(made.project, made.project.websites[0].website_id, None).audit_id
    return made


def later(minute: int) -> str:
    return f"2026-03-04T05:{minute:02d}:30Z"


class TestCompleted:
    def test_each_kind_becomes_an_item_with_evidence_and_what_to_do(self, audited):
        named = [
            finding(kind, title=kind, vendorId=None if kind == "no-way-to-refuse" else "segment") for kind in KINDS
        ]
        run = audited.complete(*named)
        stored = {item["title"]: item for item in audited.items}
        assert [(it.id, it.kind, it.item_id) for it in run.findings] == [
            (f"{kind}:segment", kind, stored[kind]["itemId"]) for kind in KINDS
        ]
        for kind, about in KINDS.items():
            item = stored[kind]
            assert (item["status"], item["source"], item["priority"]) == ("open", "runtime", "P1")
            assert item["description"] == f"Segment (analytics) was requested. {about.meaning}"
            assert item["remediation"] == about.remediation
            (piece,) = item["evidence"]
            assert piece["description"] == (
                "A script request to cdn.segment.com (https://cdn.segment.com/a.js), 1.2 s after the visit of a "
                f"visitor who hasn't chosen began. Caused by {PAGE}app.js"
            )
            assert (piece["url"], piece["seenAt"]) == (PAGE, "2026-03-04T05:06:10.000Z")
            assert (item["runtimeVendor"] or {}).get("name") == (None if kind == "no-way-to-refuse" else "Segment")

    def test_the_run_the_audit_and_the_report_say_so(self, audited):
        run = audited.complete(finding(), proof="dns", picture=base64.b64encode(b"\xff\xd8\xffx").decode())
        assert (run.status, run.outcome, run.finished_at) == ("completed", "failed", "2026-03-04T05:06:10.000Z")
        audit = audited.audit
        assert (audit.active_run_id, table.get(run.watch_key)) == (None, None)
        assert audit.latest_run == (run.run_id, "failed", run.finished_at)
        assert audit.proof == Proof("dns", run.finished_at)
        assert (audit.findings, audit.vendors) == ((SEGMENT,), ("segment",))
        _, stored = runs.get_report(run.project_id, run.audit_id, run.run_id)
        assert [it.name for it in stored.vendors] == ["Segment"]
        assert stored.recorded["visits"][0]["requests"][0]["vendorId"] == "segment"
        assert stored.recorded["banner"]["buttons"] == ["Yes", "No"]
        assert base64.b64decode(stored.picture) == b"\xff\xd8\xffx"
        assert audited.events() == ["finding.opened", "audit.completed"]

    def test_vendors_that_need_consent_join_the_list_without_findings_of_their_own(self, audited):
        mild = vendor("fonts", needsConsent=False)
        audited.complete(vendors=[vendor(before=False), mild, vendor("odd", domain="::1")])
        assert audited.items == []
        stored = audited.vendor
        assert (stored["vendorId"], stored["reviewState"], stored["beforeConsent"]) == ("segment", "suggested", False)
        assert [it["url"] for it in stored["evidence"]] == [PAGE]
        assert "inboxItemId" not in stored
        assert [it.vendor_id for it in get_project(audited.project.project_id).vendors] == ["segment"]
        audited.detect(seenOn=["https://shop.example.com/other"])
        assert len(audited.vendor["evidence"]) == 2
        assert audited.item["itemId"] == audited.vendor["inboxItemId"]

    def test_the_code_that_loads_the_vendor_is_the_first_evidence(self, audited):
        project_id, tree = audited.project.project_id, "https://github.com/acme/shop/blob/1f0c"
        places = [VendorPlace("a.js", True), VendorPlace("package.json", None, "segment"), VendorPlace("b c.js", False)]
        use = CodeUse("rep_" + "0" * 34, "shop", "scn_" + "0" * 34, FIRST, tree)
        found = {"segment": FoundVendor("Segment", "analytics", tuple(places))}
        code_uses.record_uses(project_id, use, found, lambda _: True)
        audited.complete(finding())
        assert [(it["description"], it["url"]) for it in audited.item["evidence"][:2]] == [
            ("b c.js in shop loads it without consent", f"{tree}/b%20c.js"),
            ("package.json in shop names its package segment", f"{tree}/package.json"),
        ]

    def test_the_proof_of_a_run_that_saw_none_is_removed_but_not_by_a_blocked_one(self, audited):
        blocked = {"outcome": "blocked", "reason": {"code": "login", "message": "It asks visitors to sign in."}}
        for fields, proven in (({"proof": "file"}, True), (blocked, True), ({}, False)):
            run = audited.complete(**fields)
            assert bool(audited.audit.proof) == proven
        assert run.reason is None


class TestLaterRuns:
    def test_found_again_updates_the_evidence_and_keeps_what_people_did(self, audited):
        audited.complete(finding())
        audited.decide("accepted")
        again = finding(title="Segment still loads before consent")
        again["evidence"][0]["page"] = f"{PAGE}cart"
        run = audited.complete(again, finishedAt=later(7))
        assert (audited.item["status"], audited.item["title"]) == ("accepted", again["title"])
        assert [it["url"] for it in audited.item["evidence"]] == [f"{PAGE}cart"]
        assert run.changes == RunChanges()

    @pytest.mark.parametrize(
        ("fields", "status"),
        [
            ({}, "resolved"),
            ({"made": ["untouched"]}, "resolved"),
            ({"made": ["refused"]}, "open"),
            ({"made": []}, "open"),
            ({"outcome": "blocked", "reason": {"code": "timeout", "message": "It didn't answer."}}, "open"),
        ],
    )
    def test_gone_is_what_the_visits_would_have_shown(self, audited, fields, status):
        audited.complete(finding())
        run = audited.complete(**fields, finishedAt=later(7))
        assert audited.item["status"] == status
        is_gone = status == "resolved"
        assert audited.audit.findings == (() if is_gone else (SEGMENT,))
        if is_gone:
            assert audited.item["statusReason"] == f"Run {run.run_id} no longer sees it."
            assert run.changes == RunChanges(resolved_findings=(SEGMENT,))
        audited.complete(finding(), finishedAt=later(8))
        former = InboxItem.from_item(audited.item).former
        assert (audited.item["status"], former and former.resolver) == ("open", "An audit" if is_gone else None)

    def test_changes_compare_with_the_last_run_that_was_not_blocked(self, audited):
        first = audited.complete(finding(), vendors=[vendor(), vendor("hotjar")])
        assert first.changes is None
        blocked = {"outcome": "blocked", "reason": {"code": "banner", "message": "Nothing answered it."}}
        assert audited.complete(**blocked, vendors=[], finishedAt=later(7)).changes is None
        second = audited.complete(
            finding("cookie-before-consent", "_ga@website"),
            vendors=[vendor(), vendor("clarity")],
            finishedAt=later(8),
        )
        assert second.changes == RunChanges(
            ("cookie-before-consent:_ga@website",), (SEGMENT,), ("clarity",), ("hotjar",)
        )

    @pytest.mark.parametrize("state", ["ignored", "approved"])
    def test_an_ignored_vendor_settles_its_findings_and_an_approved_one_does_not(self, audited, state):
        audited.complete(finding())
        vendors.decide_vendor(get_project(audited.project.project_id), "segment", state, audited.company.owner.user_id)
        assert audited.item["status"] == "open"
        audited.complete(finding(), finding("no-way-to-refuse", "shop", title="Banner", vendorId=None),
                         finishedAt=later(7))  # fmt: skip
        title = "Segment loads before consent"
        expected = "resolved" if state == "ignored" else "open"
        assert audited.statuses() == {title: expected, "Banner": "open"}
        if state == "ignored":
            (item,) = (it for it in audited.items if it["title"] == title)
            assert item["statusReason"] == "The project ignored Segment."


def test_the_sample_is_the_report_of_a_run(audited):
    (record,) = json.loads((EVENTS / "finding_intake_website_audit_report.json").read_text())["Records"]
    run = audited.begin()
    of_run = {"runId": run.run_id, "auditId": run.audit_id, "projectId": run.project_id, "claim": run.claim}
    audited.take(json.loads(record["body"]) | of_run)
    assert (audited.dead, len(audited.items)) == ([], 1)


class TestNotBelieved:
    def test_a_repeated_or_late_report_changes_nothing(self, audited):
        run = audited.begin()
        sent = report(run, finding())
        audited.take(sent)
        before = table_dump()
        audited.take(sent, report(run, finishedAt=later(9)))
        assert (table_dump(), audited.letters) == (before, (0, []))

    @pytest.mark.parametrize(
        "fields", [{"claim": "f" * 32}, {"run_id": "run_{}" + "0" * 18}, {"audit_id": "aud_" + "0" * 18}], ids=repr
    )
    def test_a_forged_report_is_dead_lettered_and_changes_nothing(self, audited, fields):
        run = audited.begin()
        before = table_dump()
        of_organization = {name: text.format(run.run_id[4:20]) for name, text in fields.items()}
        audited.take(report(replace(run, **of_organization), finding()))
        assert (table_dump(), audited.letters) == (before, (0, ["not the report of the run's worker"]))

    def test_a_report_for_another_organizations_project_is_dead_lettered(self, audited, world):
        other = Intake(audited.sqs, world.company()).project
        run = audited.begin()
        before = table_dump()
        audited.use_up(report(run, finding(), projectId=other.project_id))
        assert table_dump() == before
        assert audited.letters[1][0].startswith("malformed")

    def test_the_queue_of_reports_accepts_nothing_else(self, audited):
        run, url, dead = audited.begin(), Queue.AUDIT_REPORTS.url, Queue.AUDIT_REPORTS.dead_letters_url
        for message in (audited.detection(), audited.advisory(), report(run, finding())):
            audited.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(message))
        for _ in range(MAX_RECEIVES):
            for letter in audited.sqs.at(url):
                audited.sqs.deliver(letter, handler, dead)
        reasons = [it.attributes["reason"]["StringValue"] for it in audited.sqs.at(dead)]
        assert ["kind literal_error" in reason for reason in reasons] == [True, True]
        assert (audited.run(run).status, audited.statuses()) == ("completed", {"Segment loads before consent": "open"})

    @pytest.mark.parametrize("deleted", ["audit", "website", "project"])
    def test_a_report_for_a_deleted_audit_is_dropped(self, audited, deleted):
        run = audited.begin()
        project = get_project(audited.project.project_id)
        if deleted == "audit":
            store.delete_audit(project, audited.audit_id)
        elif deleted == "website":
            changes.delete_website(project, run.website_id)
        else:
            projects.delete_project(project)
        before = table_dump()
        audited.take(report(run, finding()))
        assert (table_dump(), audited.letters) == (before, (0, []))

    def test_links_lead_to_the_website_alone(self, audited):
        proof = finding()["evidence"][0]
        foreign = [{**proof, "page": it} for it in ("https://evil.example/", "https://notexample.com/", "")]
        audited.complete(finding(evidence=[*foreign, {**proof, "page": "https://example.com/"}]))
        assert [it.get("url") for it in audited.item["evidence"]] == [None, None, None, "https://example.com/"]

    @each(
        "changed",
        [
            {"visits": "x"},
            {"visits": base64.b64encode(b"x").decode()},
            {"visits": base64.b64encode(gzip.compress(b"[" * 100_000)).decode()},
            {"visits": base64.b64encode(gzip.compress(b" " * 20_000_000)).decode()},
            {"visits": base64.b64encode(gzip.compress(b"{}")[:-6]).decode()},
            {"picture": base64.b64encode(b"<svg>").decode()},
            {"picture": base64.b64encode(b"\xff\xd8\xff" + bytes(60_000)).decode()},
            {"outcome": "passed"},
            {"claim": "f"},
            {"proof": "mail"},
            {"finishedAt": "2026-03-04T05:06:10"},
            {"made": [*ALL, "untouched"]},
            {"findings": [finding(), finding()]},
            {"findings": [finding(kind="theft")]},
            {"findings": [finding(id="no-way-to-refuse:x")]},
            {"findings": [finding(title="x" * 201)]},
            {"findings": [finding(title="a\nb")]},
            {"findings": [finding(priority="P9")]},
            {"findings": [finding(vendorId="A#B")]},
            {"findings": [finding(evidence=finding()["evidence"] * 6)]},
            *({"findings": [finding(evidence=[finding()["evidence"][0] | {"page": page}])]} for page in ADDRESSES),
            {"findings": [finding(subject=str(number)) for number in range(101)]},
            {"vendors": [vendor(), vendor()]},
            {"vendors": [vendor(str(number)) for number in range(201)]},
            {"vendors": [vendor(pages=[PAGE] * 6)]},
            {"vendors": [vendor(str(number), pages=[f"{PAGE}{'x' * 270}"] * 5) for number in range(200)]},
        ],
        ids=lambda it: str(it)[:40],
    )
    def test_what_is_malformed_or_too_much_is_dead_lettered(self, audited, changed):
        audited.sqs.letters.clear()
        active = audited.audit.active_run_id
        run = runs.find_run(audited.project.project_id, audited.audit_id, active) if active else audited.begin()
        before = table_dump()
        audited.use_up(report(run, finding()) | changed)
        assert (table_dump(), audited.letters[0]) == (before, 0)
        assert [reason.partition(":")[0] for reason in audited.letters[1]] == ["malformed"]
