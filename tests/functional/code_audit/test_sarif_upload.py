"""The SARIF of real scans is valid, and GitHub accepts it, also if the repository is hostile."""

import json

import pytest

from controlplane.findings.inbox import change_status
from controlplane.scans import reads
from tests.functional.scan_execution.test_execute_scan import PAGE, published, run
from tests.support.audits import make_issue
from tests.support.each import each
from tests.support.sarif import check_sarif

HOSTILE_PATHS = (
    "src/über app.html",
    "100%.html",
    "a%2e%2e/index.html",
    "c:/index.html",
    "http:/index.html",
    "-rf.html",
    "what?now#then.html",
    "[x](javascript:alert(1)).html",
    "\u202elmth.html",
    "a\\b.html",
    "'\"<script>.html",
    "x" * 200 + ".html",
)
HOSTILE_TEXT = "`</pre><img src=x onerror=alert(1)>{{0}} [x](javascript:alert(1)) \u0007 \U0001f600"
HOSTILE_PAGES = {
    "one line": PAGE.replace("\n", ""),
    "text": PAGE.replace("<body>", f"<body>{HOSTILE_TEXT}"),
    "in the tag": PAGE.replace("<script async", f"<script data-x='{HOSTILE_TEXT}' async"),
    "carriage returns": PAGE.replace("\n", "\r"),
    "astral": "\U0001f600" * 300 + PAGE,
}


@pytest.fixture
def scanned(acme, sqs):
    def scan(files):
        """Scans a repository with these files. Returns the completed scan, with full access."""
        made = run(sqs, acme.scan(status="queued", again="full"), files)
        assert made.status == "completed"
        return reads.get_scan(made.scan_id)

    return scan


def results(acme, scan, *paths):
    """Returns the results of the scan's log after checking it. paths: all that its results may name."""
    log = json.loads(acme.get(scan, "/sarif").text)
    check_sarif(log, set(paths)) if paths else check_sarif(log)
    return log["runs"][0]["results"]


def test_findings_in_files_with_hostile_names(acme, scanned):
    found = results(acme, scanned(dict.fromkeys(HOSTILE_PATHS, PAGE)), *HOSTILE_PATHS)
    named = {it["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for it in found}
    assert len(named) >= len(HOSTILE_PATHS) - 2


@each("page", HOSTILE_PAGES.values(), ids=HOSTILE_PAGES)
def test_findings_in_hostile_files(page, acme, scanned):
    assert results(acme, scanned({"index.html": page}), "index.html")


@pytest.mark.parametrize("decision", ["dismissed", "accepted"])
def test_a_finding_that_is_not_to_be_fixed_is_suppressed(decision, acme, scanned):
    scan = scanned({"index.html": PAGE})
    item, *_ = published(scan)
    change_status(item, decision, item.version, acme.owner.user_id, HOSTILE_TEXT)
    (found,) = (it for it in results(acme, scan) if "suppressions" in it)
    assert found["properties"]["status"] == decision
    assert found["suppressions"] == [{"kind": "external", "status": "accepted", "justification": HOSTILE_TEXT}]


def test_no_findings_locked_ones_and_as_many_as_a_scan_keeps(acme, scanned):
    assert results(acme, scanned({"index.html": "<p>nothing</p>"})) == []
    assert len(results(acme, acme.scan(issues=[make_issue(number) for number in range(1, 9)]))) == 3
    many = [make_issue(number) for number in range(1, 501)]
    assert len(results(acme, acme.scan(again="full", issues=many))) == 500
