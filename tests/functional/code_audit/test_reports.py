"""A scan's findings as its access allows: as a list, compared with a base, and as SARIF."""

import json
from dataclasses import replace
from itertools import product

import pytest

from controlplane.findings import inbox
from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.inbox import change_status
from controlplane.platform.table import keys
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
from controlplane.scans import findings
from controlplane.scans.findings import FindingVendor
from controlplane.scans.items import Comparison
from tests.functional.code_audit.conftest import FIVE, FOUR, ISSUES, ONE, THREE, TWO, Organization, change, fingerprints
from tests.support.audits import make_issue
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.sarif import check_sarif
from tests.support.table import PREPARED
from tests.support.world import publish_finding

# How a scan with five findings is made; the findings that are shown, and the numbers of the others.
SHOWN = [
    ({}, ISSUES[:3], {"lockedCount": 2, "unlockCredits": 50}),
    ({"again": "full"}, ISSUES, {"lockedCount": 0, "unlockCredits": None}),
    ({"again": "locked", "issues": []}, [], {"lockedCount": 0, "unlockCredits": 0}),
]


def listed(acme, scan):
    return acme.get(scan, "/issues")


@each(("options", "shown", "others"), SHOWN)
def test_the_access_decides_which_findings_are_shown(options, shown, others, acme):
    reply = listed(acme, acme.scan(**{"issues": ISSUES, **options}))
    assert fingerprints(reply.data.pop("issues")) == fingerprints(shown)
    assert reply.data == {**others, "expiredCount": 0, "findingsExpireAt": None}
    assert FIVE.fingerprint not in reply.text or FIVE in shown


def test_a_locked_scan_shows_its_count_and_price_until_its_findings_expire(free):
    scan = free.scan(again="locked", issues=ISSUES)
    refused = listed(free, scan)
    assert (refused.status, refused.code) == (402, "UNLOCK_REQUIRED")
    assert refused.error["details"] == {"scanId": scan.scan_id, "unlockCredits": 50, "lockedCount": 5}
    assert not any(issue.fingerprint in refused.text for issue in ISSUES)
    change(scan, findingsExpireAt=1)
    reply = listed(free, scan)
    assert (reply.status, reply.data["issues"], reply.data["expiredCount"]) == (200, [], 5)


def test_a_finding_has_all_fields(acme):
    edit = Edit("src/app.tsx", 3, "<script>", "")
    fix = Fix("Waits for consent.", "html", "<script></script>", ("c15t@^2.2",), (edit,))
    vendor = FindingVendor("google-analytics", "Google Analytics", "google-analytics.com")
    found = replace(ISSUES[2], confidence="low", fix=fix, vendors=(vendor,))
    scan = acme.scan(issues=[found])
    item = publish_finding(findings.as_discovery(scan, found))
    (issue,) = listed(acme, scan).data["issues"]
    assert issue == {
        "id": f"{scan.scan_id}:{found.fingerprint[:16]}",
        "scanId": scan.scan_id,
        "fingerprint": found.fingerprint,
        "ruleId": "tracker-before-consent",
        "title": "Google Analytics loads before consent",
        "description": "A script of googletagmanager.com is loaded before anybody agreed.",
        "category": "trackers",
        "severity": "high",
        "priority": "P1",
        "confidence": "low",
        "status": "open",
        "inboxItemId": item.item_id,
        "location": {
            "path": "src/app.tsx",
            "startLine": 3,
            "endLine": 4,
            "startColumn": 1,
            "endColumn": 9,
            "snippet": "<script>",
            "permalink": found.location.permalink,
        },
        "remediation": "Load it in the consent callback.",
        "fix": {
            "summary": "Waits for consent.",
            "language": "html",
            "code": "<script></script>",
            "packages": ["c15t@^2.2"],
            "edits": [{"path": "src/app.tsx", "startLine": 3, "before": "<script>", "after": ""}],
        },
        "references": ["https://gdpr-info.eu/art-7-gdpr/"],
        "firstSeenAt": "2026-03-04T05:06:07.000Z",
        "vendor": {"id": "google-analytics", "name": "Google Analytics", "domain": "google-analytics.com"},
        "decisions": [],
    }
    for status in ("accepted", "dismissed", "resolved"):
        item = inbox.change_status(item, status, item.version, acme.owner.user_id, None)
        assert listed(acme, scan).data["issues"] == [{**issue, "status": status}]


def test_a_finding_of_several_vendors_names_none(acme):
    vendors = tuple(FindingVendor(name, name.title(), f"{name}.com") for name in ("segment", "hotjar"))
    scan = acme.scan(issues=[replace(ONE, vendors=vendors)])
    assert [issue["vendor"] for issue in listed(acme, scan).data["issues"]] == [None]


def test_five_hundred_findings_fit_into_one_response(acme):
    many = [make_issue(number, path="src/" + "x" * 200) for number in range(1, 501)]
    reply = listed(acme, acme.scan(again="full", issues=many))
    assert (len(reply.data["issues"]), len(reply.text) < 6 * 1024 * 1024) == (500, True)


@each(("status", "again"), product(["queued", "running", "failed", "canceled"], [None, "full", "locked"]))
def test_a_scan_that_is_not_completed_returns_409_whatever_its_access(status, again, acme):
    scan = acme.scan(status="failed" if status == "canceled" else status, again=again)
    change(scan, status=status)
    reply = listed(acme, scan)
    is_open = status in {"queued", "running"}
    assert (reply.status, reply.code) == (409, "SCAN_IN_PROGRESS" if is_open else "CONFLICT")
    assert reply.error["details"] == {"scanId": scan.scan_id, "status": status}
    assert ("retry-after" in reply.headers) is is_open
    said = {"failed": "The scan failed", "canceled": "The scan was canceled"}
    assert reply.error["message"].startswith(said.get(status, ""))


# The findings are read at the same time as the scan, as if its first attempt had stored them.


def test_findings_of_the_completed_attempt_are_listed_and_of_no_other(acme):
    scan = acme.scan(again="full", issues=ISSUES[:2])
    table.put_all([{**keys.finding(scan.scan_id, 2, 0)._asdict(), **FIVE.to_map()}], PREPARED)
    assert fingerprints(listed(acme, scan).data["issues"]) == fingerprints([ONE, TWO])
    findings.put_findings(scan.scan_id, 2, ISSUES[2:])
    change(scan, findingsAttempt=2, issueCount=3)
    assert fingerprints(listed(acme, scan).data["issues"]) == fingerprints(ISSUES[2:])


@pytest.mark.parametrize(("report", "field"), [("/issues", "issues"), ("/diff", "new")])
def test_a_scan_that_is_completed_after_its_findings_were_read_has_them_all(report, field, acme):
    scan = acme.scan(again="full", issues=ISSUES)
    early = []

    def around(call, proceed):
        answer = proceed()
        if call.operation == "Query" and "SCAN#" in str(call.parameters) and not early:
            early.append(call.operation)
            return {**answer, "Items": answer["Items"][:2]}
        return answer

    with intercepted(table.client, around):
        reply = acme.get(scan, report)
    assert early
    assert fingerprints(reply.data[field]) == fingerprints(ISSUES)


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


@pytest.mark.parametrize("decision", ["dismissed", "accepted"])
def test_a_finding_that_is_not_to_be_fixed_is_suppressed(decision, acme):
    scan, reason = acme.scan(issues=[ONE, TWO]), "`</pre><img src=x> \u0007 \U0001f600"
    item = publish_finding(findings.as_discovery(scan, ONE))
    change_status(item, decision, item.version, acme.owner.user_id, reason)
    log = json.loads(acme.get(scan, "/sarif").text)
    check_sarif(log)
    (found,) = (it for it in log["runs"][0]["results"] if "suppressions" in it)
    assert found["partialFingerprints"]["assentFinding/v1"] == ONE.fingerprint
    assert found["properties"]["status"] == decision
    assert found["suppressions"] == [{"kind": "external", "status": "accepted", "justification": reason}]
