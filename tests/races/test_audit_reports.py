"""A run of a website audit is completed once, with all that its report says, or not at all."""

import json
from typing import Any

from controlplane.audits import runs, store
from controlplane.audits.completion import Superfluous, complete_run
from controlplane.audits.reports import WebsiteAuditReport
from controlplane.audits.schedules import end_lost
from controlplane.erasure.cleanup import finish_deletions
from controlplane.findings import vendors
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from tests.functional.projects.builders import make_project
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.support.audit_reports import complete_audit, finding, report, vendor
from tests.support.cleanup import swept
from tests.support.table import PREPARED
from tests.support.world import World

GONE = finding("loads-after-refusal", title="Gone")
FOUND = finding(title="Found")


class Bench:
    """An audit with a completed run, and another one whose report is under way: one finding is gone, another is new."""

    def __init__(self, world: World, stage: Stage, *vendor_ids: str) -> None:
        """vendor_ids: those that the report has."""
        self.stage, company = stage, world.company()
        self.owner_id = company.owner.user_id
        made = make_project(company, origins=("shop.example.com", "example.com"))
        first = complete_audit(made, GONE, finishedAt="2026-03-04T05:06:07Z")
        self.project = projects.get_project(made.project_id)
        self.audit_id = first.audit_id
        self.run = store.start_run(store.get_audit(made.project_id, first.audit_id))
        sent = report(self.run, FOUND, vendors=[*map(vendor, vendor_ids)], finishedAt="2026-03-04T05:06:09Z")
        self.report = WebsiteAuditReport.model_validate_json(json.dumps(sent))

    def reports(self) -> bool:
        complete_run(self.report)
        return True

    def deletes(self) -> None:
        store.delete_audit(projects.get_project(self.project.project_id), self.audit_id)

    def decides(self) -> None:
        vendors.decide_vendor(projects.get_project(self.project.project_id), "segment", "ignored", self.owner_id)

    def check(self) -> dict[str, str]:
        """Checks that the run is completed once. Returns the statuses of the findings."""
        items = self.stage.check_invariants()
        run = runs.find_run(self.project.project_id, self.audit_id, self.run.run_id)
        assert run
        assert (run.status, run.outcome, [it.title for it in run.findings]) == ("completed", "failed", ["Found"])
        assert len(self.told(items)) == 1
        return {it["title"]: it["status"] for it in items.values() if it.get("source") == "runtime"}

    def told(self, items: Any) -> list[Any]:
        """Returns the events about the end of the run."""
        messages = [it["message"] for key, it in items.items() if key.pk.startswith("OUTBOX#")]
        return [it for it in messages if self.run.run_id in it.get("subjects", ())]


@race(Superfluous)
def test_of_two_deliveries_of_a_report_one_completes_the_run(world, stage):
    bench = Bench(world, stage)
    outcomes = yield [bench.reports, bench.reports]
    assert sum(it is True for it in outcomes) == 1
    assert bench.check() == {"Found": "open", "Gone": "resolved"}


@race(Superfluous, ends={True, False})
def test_a_report_completes_the_run_or_its_audit_is_deleted_before(world, stage):
    bench = Bench(world, stage)
    reported, _ = yield [bench.reports, bench.deletes]
    if reported is True:
        assert bench.check() == {"Found": "open", "Gone": "resolved"}
    else:
        assert bench.told(stage.check_invariants()) == []
        run = runs.find_run(bench.project.project_id, bench.audit_id, bench.run.run_id)
        assert run
        assert run.status == "pending"
    return reported is True


@race(Superfluous)
def test_no_finding_of_a_deleted_audit_stays_open(world, stage):
    bench = Bench(world, stage)

    def sweep() -> None:
        swept(finish_deletions)

    yield [bench.reports, bench.deletes, sweep]
    sweep()
    items = stage.check_invariants()
    statuses = {it["title"]: it["status"] for it in items.values() if it.get("source") == "runtime"}
    assert statuses["Gone"] == statuses.get("Found", "resolved") == "resolved"
    assert not [key for key in items if key.pk.startswith("DELETIONS#")]


@faults()
def test_under_every_fault_the_findings_of_a_deleted_audit_are_resolved_once(world, stage):
    bench = Bench(world, stage)
    bench.deletes()

    def sweep() -> None:
        swept(finish_deletions)

    case = yield sweep
    case.second.get()
    items = stage.check_invariants()
    assert {it["status"] for it in items.values() if it.get("source") == "runtime"} == {"resolved"}
    resolved = [it["message"] for key, it in items.items() if key.pk.startswith("OUTBOX#")]
    assert len([it for it in resolved if it.get("event") == "finding.resolved"]) <= 1


@race(store.DailyRunsUsed)
def test_of_two_audits_of_a_website_one_starts_the_last_run_of_the_day(world, stage):
    project = Bench(world, stage).project
    website_id = project.websites[0].website_id
    audits = [store.create_audit(projects.get_project(project.project_id), website_id, None) for _ in range(2)]
    key = keys.audit_starts(project.project_id.organization_id, audits[0].host, clock.timestamp()[:10])
    table.put(Put({**key._asdict(), "started": store.RUNS_PER_DAY - 1}), PREPARED)
    outcomes = yield [lambda: store.start_run(audits[0]), lambda: store.start_run(audits[1])]
    assert sum(isinstance(it, store.DailyRunsUsed) for it in outcomes) == 1
    assert stage.check_invariants()[key]["started"] == store.RUNS_PER_DAY


@race(ends={"open", "resolved"})
def test_a_decision_and_a_report_both_count(world, stage):
    bench = Bench(world, stage, "segment")
    yield [bench.reports, bench.decides]
    statuses = bench.check()
    assert statuses["Gone"] == "resolved"
    decided = vendors.find_vendor(bench.project.project_id, "segment")
    assert decided
    assert (decided.state, len(decided.evidence)) == ("ignored", 1)
    return statuses["Found"]


@race(Superfluous, ends={True, False})
def test_a_report_completes_the_run_or_it_is_lost(world, stage, thread_clock):
    bench = Bench(world, stage)

    def sweep() -> None:
        thread_clock(RACE_TIME + 4 * 3_600)
        swept(end_lost)

    reported, _ = yield [bench.reports, sweep]
    run = runs.find_run(bench.project.project_id, bench.audit_id, bench.run.run_id)
    assert run
    assert run.status == ("completed" if reported is True else "failed")
    assert len(bench.told(stage.check_invariants())) == (reported is True)
    return reported is True


@faults()
def test_under_every_fault_a_report_is_taken_once(world, stage):
    bench = Bench(world, stage, "segment", "hotjar")

    def deliver() -> None:
        try:
            complete_run(bench.report)
        except Superfluous:
            return

    case = yield deliver
    case.second.get()
    assert bench.check() == {"Found": "open", "Gone": "resolved"}
    listed = vendors.list_all_vendors(bench.project.project_id)
    assert [it.vendor_id for it in listed] == ["hotjar", "segment"]
