"""GET /v1/code-audit/scans/{scanId}/sarif and …/diff: a scan's findings for pipelines."""

from typing import Any

import pytest

from controlplane.store import keys, publications
from controlplane.store.scans import findings
from controlplane.store.scans.causes import Comparison
from controlplane.store.scans.items import ScanItem
from controlplane.store.table import Update, table
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan
from tests.support.table import PREPARED
from tests.support.world import Company, World

ONE, TWO, THREE, FOUR, FIVE = (make_issue(number) for number in range(1, 6))


def get(api: Api, company: Company, scan: ScanItem | str, report: str) -> Reply:
    return api.get(f"/v1/code-audit/scans/{getattr(scan, 'scan_id', scan)}/{report}", company.owner.token)


def fingerprints(issues: list[dict[str, Any]]) -> list[str]:
    return [issue["fingerprint"] for issue in issues]


class TestSarif:
    def test_returns_the_readable_findings_without_an_envelope(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=[ONE, TWO, THREE, FOUR])
        (run,) = get(api, company, scan, "sarif").body["runs"]
        found = [result["partialFingerprints"] for result in run["results"]]
        assert [next(iter(it.values())) for it in found] == [it.fingerprint for it in (ONE, TWO, THREE)]
        assert run["properties"]["lockedCount"] == 1

    @pytest.mark.parametrize("report", ["sarif", "diff"])
    def test_a_scan_without_readable_findings_is_refused_as_in_its_list(self, api: Api, world: World, report: str):
        company = world.company()
        queued = make_scan(world.connected_repository(company), status="queued")
        failed = make_scan(world.connected_repository(company), status="failed")
        locked = make_scan(world.connected_repository(company), again="locked", issues=[ONE])
        codes = [get(api, company, scan, report).code for scan in (queued, failed, locked)]
        assert codes == ["SCAN_IN_PROGRESS", "CONFLICT", "UNLOCK_REQUIRED"]


class TestDiff:
    def test_two_scans_are_compared_by_their_findings(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        base = make_scan(repository, again="full", issues=[ONE, TWO, THREE])
        scan = make_scan(repository, access="full", issues=[TWO, FOUR, FIVE])
        found = get(api, company, scan, f"diff?base={base.scan_id}").data
        assert fingerprints(found["new"]) == [FOUR.fingerprint, FIVE.fingerprint]
        assert {issue["scanId"] for issue in found["new"]} == {scan.scan_id}
        assert fingerprints(found["fixed"]) == [ONE.fingerprint, THREE.fingerprint]
        assert {issue["scanId"] for issue in found["fixed"]} == {base.scan_id}
        assert (found["baseScanId"], found["newCount"], found["fixedCount"], found["unchangedCount"]) == (
            base.scan_id,
            2,
            2,
            1,
        )

    def test_locked_findings_are_counted_and_not_shown(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        preview = make_scan(repository, issues=[ONE, TWO, THREE, FOUR, FIVE])
        scan = make_scan(repository, access="full", issues=[FIVE])
        found = get(api, company, scan, f"diff?base={preview.scan_id}").data
        assert (found["newCount"], found["fixedCount"], found["unchangedCount"]) == (0, 4, 1)
        assert fingerprints(found["fixed"]) == [it.fingerprint for it in (ONE, TWO, THREE)]

    def test_the_base_is_the_scan_before_it_if_none_is_named(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        base = make_scan(repository, again="full", issues=[ONE])
        scan = make_scan(repository, access="full", issues=[TWO])
        item_ids = [
            publications.publish_finding(findings.as_discovery(*found)).item_id for found in ((scan, TWO), (base, ONE))
        ]
        first = get(api, company, scan, "diff").data
        assert (first["baseScanId"], first["newCount"], first["fixedCount"]) == (None, 1, 0)
        compared = {"c": Comparison(base.scan_id, 1, (ONE.fingerprint,), 1).to_item()}
        table.update(Update(keys.scan(*scan.scan_id.location), "SET comparison = :c", values=compared), PREPARED)
        found = get(api, company, scan, "diff").data
        assert found["baseScanId"] == base.scan_id
        assert [issue["inboxItemId"] for issue in (*found["new"], *found["fixed"])] == item_ids
        assert get(api, company, scan, f"diff?base={scan.scan_id}").data["baseScanId"] == scan.scan_id
        table.delete_all([base.key], PREPARED)
        assert get(api, company, scan, "diff").status == 404

    def test_a_base_that_cant_be_compared_is_refused(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        scan = make_scan(repository, again="full", issues=[ONE])
        other = make_scan(world.connected_repository(company), again="full", issues=[ONE])
        refused = get(api, company, scan, f"diff?base={other.scan_id}")
        assert (refused.status, refused.error["details"][0]["path"]) == (400, ["base"])
        foreign = make_scan(world.connected_repository(world.company()), again="full", issues=[ONE])
        unknown = f"{foreign.scan_id[:-1]}{'0' if foreign.scan_id[-1] != '0' else '1'}"
        for base in (foreign.scan_id, unknown, "scn_x"):
            assert get(api, company, scan, f"diff?base={base}").status == 404
        locked = make_scan(repository, access="locked", issues=[TWO])
        assert get(api, company, scan, f"diff?base={locked.scan_id}").code == "UNLOCK_REQUIRED"

    def test_expired_findings_are_not_taken_for_fixed(self, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        base = make_scan(repository, again="full", issues=[ONE])
        scan = make_scan(repository, access="full", issues=[TWO])
        expire = "SET findingsExpireAt = :e"
        table.update(Update(base.key, expire, values={"e": 1}), PREPARED)
        assert get(api, company, scan, "diff").status == 200
        for compared, query in ((scan, f"?base={base.scan_id}"), (base, f"?base={scan.scan_id}"), (base, "")):
            refused = get(api, company, compared, f"diff{query}")
            assert (refused.status, refused.code) == (409, "CONFLICT")
