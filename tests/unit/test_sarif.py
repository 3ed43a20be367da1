"""The findings of a scan as SARIF 2.1.0."""

from dataclasses import replace
from typing import Any

from controlplane.findings.fixes import Edit, Fix
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.core.settings import settings
from controlplane.scans.findings import FindingItem, PublishedFinding
from controlplane.scans.items import Comparison, Coverage, Progress, ScanItem
from controlplane.scans.sarif import to_sarif
from scripts.rule_texts import RULE_TEXTS, VENDOR_IDS, describe, describe_vendors
from tests.support.audits import make_issue
from tests.support.code_host import SHA
from tests.support.each import each
from tests.support.sarif import check_sarif

_ORGANIZATION, _LOCAL = "org_3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
SCAN = ScanItem(
    scan_id=ScanId.of(_ORGANIZATION, _LOCAL),
    repository_id=RepositoryId.of(_ORGANIZATION, _LOCAL),
    request_id=ScanRequestId.of(_ORGANIZATION, _LOCAL),
    project_id=ProjectId.of(_ORGANIZATION, _LOCAL),
    repository_name="shop",
    repository_url="https://github.com/acme/shop",
    root_directory="apps/web",
    branch="main",
    head_commit_sha=SHA,
    status="completed",
    access="full",
    unlock_credits=None,
    progress=Progress("publish", "completed", 4),
    created_at="2026-03-04T05:06:07.000Z",
    started_at="2026-03-04T05:06:08.000Z",
    completed_at="2026-03-04T05:06:09.000Z",
    issue_count=3,
    rules_version="5f0c2b9e7d3a4a55",
)


def run_of(*findings: FindingItem, scan: ScanItem = SCAN) -> dict[str, Any]:
    log = to_sarif(scan, [PublishedFinding(finding, None) for finding in findings])
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
    check_sarif(log)
    (run,) = log["runs"]
    return run


def test_a_result_has_a_rule_a_place_and_a_fingerprint():
    run = run_of(make_issue(3, path="src/über app.tsx"))
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"]) == ("tracker-before-consent", "tracker-before-consent")
    assert result["message"]["text"].startswith("Google Analytics loads before consent. A script of")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/%C3%BCber%20app.tsx", "uriBaseId": "%SRCROOT%"}
    assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
    assert place["region"] == {
        "startLine": 3, "startColumn": 1, "endLine": 4, "endColumn": 9, "snippet": {"text": "<script>"},
    }  # fmt: skip
    assert result["partialFingerprints"] == {"assentFinding/v1": make_issue(3).fingerprint}
    assert run["tool"]["driver"]["name"] == settings.service_brand.capitalize()
    assert run["versionControlProvenance"][0]["revisionId"] == SHA
    assert run["automationDetails"]["id"] == "assent/apps/web/"


def test_the_texts_of_a_rule_name_no_vendor_whichever_finding_comes_first():
    issues = [
        replace(
            make_issue(number),
            rule_id="session-replay-loaded",
            title=f"{vendor} is loaded before consent",
            description=f"{vendor} records what a visitor does.",
            remediation=f"Load {vendor} only after consent.",
        )
        for number, vendor in enumerate(("Hotjar", "Fullstory"), 1)
    ]
    (rule,) = run_of(*issues)["tool"]["driver"]["rules"]
    assert [rule] == run_of(*reversed(issues))["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("session-replay-loaded", "SessionReplayLoaded")
    assert rule["shortDescription"]["text"] == "A session recorder is loaded before consent"
    assert rule["fullDescription"]["text"].startswith("A session recorder records what a visitor does on the page")
    assert rule["help"]["text"] == "Start the recording only after consent, and mask what visitors type."
    messages = [result["message"]["text"] for result in run_of(*issues)["results"]]
    assert [message.partition(" ")[0] for message in messages] == ["Hotjar", "Fullstory"]


def test_a_removed_rule_has_texts_without_its_findings_names():
    (rule,) = run_of(make_issue(1))["tool"]["driver"]["rules"]
    assert (rule["name"], rule["shortDescription"]["text"]) == ("TrackerBeforeConsent", "Tracker before consent")
    assert rule["help"]["text"] == "Each result says how to fix it."
    assert "helpUri" not in rule


def test_the_texts_about_rules_are_those_of_the_analysis():
    assert RULE_TEXTS.read_text() == describe(), "run `make openapi`"
    assert VENDOR_IDS.read_text() == describe_vendors(), "run `make openapi`"


def test_a_rule_has_the_links_of_the_rule_and_its_page():
    (rule,) = run_of(replace(make_issue(1), rule_id="embedded-media", category="x", references=()))["tool"]["driver"][
        "rules"
    ]
    assert "\n- https://eur-lex.europa.eu/eli/dir/2002/58/oj" in rule["help"]["markdown"]
    assert rule["helpUri"] == "https://api.assent.test/docs/rules/embedded-media"
    assert rule["properties"]["tags"] == ["privacy", "security", "trackers"]


def test_the_help_of_a_rule_is_shown_as_it_is_written():
    (rule,) = run_of(replace(make_issue(1), rule_id="consent-api-of-tcf-1"))["tool"]["driver"]["rules"]
    assert rule["help"]["text"].startswith("Call __tcfapi with addEventListener")
    assert rule["help"]["markdown"].startswith(r"Call \_\_tcfapi with addEventListener")


def test_a_rule_has_the_severity_of_its_worst_finding():
    issues = [replace(make_issue(number), severity=severity) for number, severity in enumerate(("low", "critical"), 1)]
    run = run_of(*issues, replace(make_issue(9), rule_id="cookie", severity="medium", references=()))
    first, second = run["tool"]["driver"]["rules"]
    assert (first["defaultConfiguration"]["level"], first["properties"]["security-severity"]) == ("error", "9.5")
    assert (second["defaultConfiguration"]["level"], second["properties"]["security-severity"]) == ("warning", "5.5")
    assert [result["level"] for result in run["results"]] == ["note", "error", "warning"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0, 1]


def test_severities_are_in_githubs_ranges():
    for severity, level, number in (("high", "error", "8.0"), ("low", "note", "2.0")):
        run = run_of(replace(make_issue(1), severity=severity))
        (rule,), (result,) = run["tool"]["driver"]["rules"], run["results"]
        assert (rule["properties"]["security-severity"], rule["defaultConfiguration"]["level"]) == (number, level)
        assert result["level"] == level


def test_findings_have_a_baseline_state_if_the_scan_was_compared():
    issues = make_issue(1), replace(make_issue(2), is_new=True)
    of_pull_request = replace(SCAN, comparison=Comparison(SCAN.scan_id))
    for scan in (SCAN, of_pull_request):
        assert not any("baselineState" in result for result in run_of(*issues, scan=scan)["results"])
    compared = replace(SCAN, comparison=Comparison(SCAN.scan_id, 0, (), new_count=1))
    assert [it["baselineState"] for it in run_of(*issues, scan=compared)["results"]] == ["unchanged", "new"]


def test_a_rule_never_has_texts_of_the_repository():
    hostile = "`</pre><img src=x onerror=alert(1)>[x](javascript:alert(1))"
    issue = replace(make_issue(1), remediation=hostile, title=hostile, description=hostile, references=(hostile,))
    for rule_id in ("embedded-media", "removed"):
        (rule,) = run_of(replace(issue, rule_id=rule_id))["tool"]["driver"]["rules"]
        assert "<img" not in str(rule)


@each(
    "path",
    [
        "src/\xfcber app.html", "100%.html", "a%2e%2e/index.html", "c:/index.html", "http:/index.html", "-rf.html",
        "what?now#then.html", "[x](javascript:alert(1)).html", "\u202elmth.html", "a\\b.html", "'\"<script>.html",
        "x" * 200 + ".html",
    ],
)  # fmt: skip
def test_a_file_with_a_hostile_name_or_text_is_named_as_it_is(path):
    text = "`</pre><img src=x onerror=alert(1)>{{0}} \u0007 \r \U0001f600"
    issue = make_issue(1, path=path)
    log = to_sarif(SCAN, [PublishedFinding(replace(issue, location=replace(issue.location, snippet=text)), None)])
    check_sarif(log, {path})
    ((result,),) = (run["results"] for run in log["runs"])
    assert result["locations"][0]["physicalLocation"]["region"]["snippet"]["text"] == text


def test_skipped_files_are_notifications():
    coverage = Coverage(9, 1, {"minified": 2, "too large": 1}, (), "Files were left out.", {"minified": "a b/x.min.js"})
    (invocation,) = run_of(scan=replace(SCAN, coverage=coverage))["invocations"]
    limit, minified, large = invocation["toolExecutionNotifications"]
    assert (limit["level"], limit["message"]["text"]) == ("warning", "Files were left out.")
    assert minified["message"]["text"] == "Not analyzed (minified): 2 files, such as a b/x.min.js."
    place = minified["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20b/x.min.js", "uriBaseId": "%SRCROOT%"}
    assert (minified["level"], minified["properties"]) == ("note", {"reason": "minified", "count": 2})
    assert (large["message"]["text"], "locations" in large) == ("Not analyzed (too large): 1 file.", False)


def test_edits_are_fixes_that_replace_whole_lines():
    edits = (
        Edit("b.html", 4, "<old>", ""),
        Edit("a.html", 3, "  <a>\n  <b>", "  <c>"),
        Edit("c.ts", 1, "", "export {};"),
    )
    issues = [replace(make_issue(1), fix=Fix("Waits.", "html", "", (), edits)), replace(make_issue(2), fix=None)]
    first, second = run_of(*issues)["results"]
    assert "fixes" not in second
    (fix,) = first["fixes"]
    assert fix["description"]["text"] == "Waits."
    assert [it["artifactLocation"]["uri"] for it in fix["artifactChanges"]] == ["a.html", "b.html", "c.ts"]
    assert [replacement for it in fix["artifactChanges"] for replacement in it["replacements"]] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 1, "endLine": 4, "endColumn": 6},
            "insertedContent": {"text": "  <c>"},
        },
        {"deletedRegion": {"startLine": 4, "startColumn": 1, "endLine": 5, "endColumn": 1}},
        {
            "deletedRegion": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
            "insertedContent": {"text": "export {};"},
        },
    ]


def test_a_log_without_findings_is_complete():
    run = run_of(scan=replace(SCAN, issue_count=0, rules_version=None, root_directory=None))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
    assert run["invocations"] == [
        {
            "executionSuccessful": True,
            "startTimeUtc": SCAN.started_at,
            "endTimeUtc": SCAN.completed_at,
            "toolExecutionNotifications": [],
        }
    ]
    assert run["automationDetails"]["id"] == "assent/"
