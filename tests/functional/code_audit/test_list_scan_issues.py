"""GET /v1/code-audit/scans/{scanId}/issues: the findings that the scan's access level includes."""

from dataclasses import replace
from itertools import product

import pytest

from controlplane.findings import inbox
from controlplane.findings.fixes import Edit, Fix
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.scans import findings
from controlplane.scans.findings import FindingVendor
from tests.functional.code_audit.conftest import FIVE, ISSUES, ONE, TWO, change, fingerprints
from tests.support.audits import end_scan, make_issue
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.published import publish_finding
from tests.support.table import PREPARED

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


def test_a_scan_is_readable_as_soon_as_it_is_completed(acme):
    scan = acme.scan(status="running")
    assert int(listed(acme, scan).headers["retry-after"]) > 0
    end_scan(scan)
    assert listed(acme, scan).data["issues"] == []


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
