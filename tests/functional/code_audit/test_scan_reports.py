"""GET /v1/code-audit/scans/{scanId}/sarif and …/diff: a scan's findings for pipelines."""

import pytest

from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
from controlplane.scans import findings
from controlplane.scans.items import Comparison
from tests.functional.code_audit.conftest import FIVE, FOUR, ISSUES, ONE, THREE, TWO, Organization, change, fingerprints
from tests.support.published import publish_finding
from tests.support.table import PREPARED


def diff(acme, scan, base=None):
    return acme.get(scan, f"/diff?base={base.scan_id}" if base else "/diff")


@pytest.fixture
def repository(acme):
    return acme.connect()


def test_sarif_has_the_readable_findings_without_an_envelope(acme):
    (run,) = acme.get(acme.scan(issues=ISSUES[:4]), "/sarif").body["runs"]
    found = [next(iter(it["partialFingerprints"].values())) for it in run["results"]]
    assert (found, run["properties"]["lockedCount"]) == (fingerprints([ONE, TWO, THREE]), 1)


@pytest.mark.parametrize("report", ["/sarif", "/diff"])
def test_a_scan_without_readable_findings_is_refused_as_in_its_list(report, acme):
    scans = [acme.scan(status="queued"), acme.scan(status="failed"), acme.scan(again="locked", issues=[ONE])]
    assert [acme.get(scan, report).code for scan in scans] == ["SCAN_IN_PROGRESS", "CONFLICT", "UNLOCK_REQUIRED"]


# What the base found, what the scan found, and the new, the fixed, and the number of unchanged findings.
@pytest.mark.parametrize(
    "case",
    [
        ({"again": "full", "issues": [ONE, TWO, THREE]}, [TWO, FOUR, FIVE], [FOUR, FIVE], [ONE, THREE], (2, 2, 1)),
        # The base is a preview, whose other findings are locked: they are counted and not shown.
        ({"issues": ISSUES}, [FIVE], [], [ONE, TWO, THREE], (0, 4, 1)),
    ],
)
def test_two_scans_are_compared_by_their_findings(case, acme, repository):
    options, issues, new, fixed, counts = case
    base = acme.scan(repository, **options)
    scan = acme.scan(repository, access="full", issues=issues)
    found = diff(acme, scan, base).data
    for shown, expected, of in ((found["new"], new, scan), (found["fixed"], fixed, base)):
        assert fingerprints(shown) == fingerprints(expected)
        assert [it["scanId"] for it in shown] == [of.scan_id] * len(expected)
    assert tuple(found[name] for name in ("newCount", "fixedCount", "unchangedCount")) == counts
    assert found["baseScanId"] == base.scan_id


def test_the_base_is_the_scan_before_it_if_none_is_named(acme, repository):
    base = acme.scan(repository, again="full", issues=[ONE])
    scan = acme.scan(repository, access="full", issues=[TWO])
    items = [publish_finding(findings.as_discovery(*found)) for found in ((scan, TWO), (base, ONE))]
    first = diff(acme, scan).data
    assert (first["baseScanId"], first["newCount"], first["fixedCount"]) == (None, 1, 0)
    change(scan, comparison=to_map(Comparison(base.scan_id, 1, (ONE.fingerprint,), 1)))
    found = diff(acme, scan).data
    assert found["baseScanId"] == base.scan_id
    assert [issue["inboxItemId"] for issue in (*found["new"], *found["fixed"])] == [item.item_id for item in items]
    assert diff(acme, scan, scan).data["baseScanId"] == scan.scan_id
    table.delete_all([base.key], PREPARED)
    assert diff(acme, scan).status == 404


def test_a_base_that_cant_be_compared_is_refused(acme, repository, api, world):
    scan = acme.scan(repository, again="full", issues=[ONE])
    refused = diff(acme, scan, acme.scan(again="full", issues=[ONE]))
    assert (refused.status, refused.error["details"][0]["path"]) == (400, ["base"])
    foreign = Organization(api, world).scan(again="full", issues=[ONE]).scan_id
    unknown = f"{foreign[:-1]}{'0' if foreign[-1] != '0' else '1'}"
    assert [acme.get(scan, f"/diff?base={it}").status for it in (foreign, unknown, "scn_x")] == [404] * 3
    assert diff(acme, scan, acme.scan(repository, access="locked", issues=[TWO])).code == "UNLOCK_REQUIRED"


def test_expired_findings_are_not_taken_for_fixed(acme, repository):
    base = acme.scan(repository, again="full", issues=[ONE])
    scan = acme.scan(repository, access="full", issues=[TWO])
    change(base, findingsExpireAt=1)
    assert diff(acme, scan).status == 200
    assert {diff(acme, *compared).code for compared in ((scan, base), (base, scan), (base,))} == {"CONFLICT"}
