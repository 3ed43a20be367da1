"""The SARIF of real scans is valid, and GitHub accepts it, also if the repository is hostile."""

import json
from typing import Literal

from controlplane.store.inbox import change_status
from controlplane.store.scans import reads
from controlplane.store.scans.items import ScanItem
from tests.functional.scan_execution.test_execute_scan import PAGE, published, run
from tests.support.api import Api
from tests.support.audits import make_issue, make_scan
from tests.support.each import each
from tests.support.sarif import check_sarif
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

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
_HOSTILE_TEXT = "`</pre><img src=x onerror=alert(1)>{{0}} [x](javascript:alert(1)) \u0007 \ud83d\ude00".encode(
    "utf-16", "surrogatepass"
).decode("utf-16")
HOSTILE_PAGES = {
    "one line": PAGE.replace("\n", ""),
    "text": PAGE.replace("<body>", f"<body>{_HOSTILE_TEXT}"),
    "in the tag": PAGE.replace("<script async", f"<script data-x='{_HOSTILE_TEXT}' async"),
    "carriage returns": PAGE.replace("\n", "\r"),
    "astral": "\U0001f600" * 300 + PAGE,
}


def uploaded(api: Api, company: Company, scan: ScanItem) -> dict[str, object]:
    reply = api.get(f"/v1/code-audit/scans/{scan.scan_id}/sarif", company.owner.token)
    assert reply.status == 200, reply.text
    log: dict[str, object] = json.loads(reply.text)
    return log


def scanned(sqs: FakeSqs, world: World, files: dict[str, str | bytes]) -> tuple[Company, ScanItem]:
    company = world.company()
    repository = world.connected_repository(company)
    scan = run(sqs, make_scan(repository, status="queued", again="full"), files)
    assert scan.status == "completed"
    return company, reads.get_scan(scan.scan_id)


def test_findings_in_files_with_hostile_names(api: Api, world: World, sqs: FakeSqs):
    files: dict[str, str | bytes] = dict.fromkeys(HOSTILE_PATHS, PAGE)
    company, scan = scanned(sqs, world, files)
    log = uploaded(api, company, scan)
    check_sarif(log, set(files))
    found = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["runs"][0]["results"]
    }  # type: ignore[index]
    assert len(found) >= len(HOSTILE_PATHS) - 2


@each("page", HOSTILE_PAGES.values(), ids=HOSTILE_PAGES)
def test_findings_in_hostile_files(page: str, api: Api, world: World, sqs: FakeSqs):
    company, scan = scanned(sqs, world, {"index.html": page})
    log = uploaded(api, company, scan)
    check_sarif(log, {"index.html"})
    assert log["runs"][0]["results"]  # type: ignore[index]


def test_decisions_and_locked_findings(api: Api, world: World, sqs: FakeSqs):
    company, scan = scanned(sqs, world, {"index.html": PAGE})
    item, *_ = published(scan)
    change_status(item, "dismissed", item.version, company.owner.user_id, _HOSTILE_TEXT)
    log = uploaded(api, company, scan)
    check_sarif(log)
    suppressed = [it["suppressions"] for it in log["runs"][0]["results"] if "suppressions" in it]  # type: ignore[index]
    assert suppressed == [[{"kind": "external", "status": "accepted", "justification": _HOSTILE_TEXT}]]
    preview = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(1, 9)])
    check_sarif(uploaded(api, company, preview))


def test_as_many_findings_as_a_scan_keeps(api: Api, world: World):
    company = world.company()
    scan = make_scan(
        world.connected_repository(company), again="full", issues=[make_issue(number) for number in range(1, 501)]
    )
    log = uploaded(api, company, scan)
    check_sarif(log)
    assert len(log["runs"][0]["results"]) == 500  # type: ignore[index]


@each("decision", ["accepted", "dismissed"])
def test_a_finding_that_is_not_to_be_fixed_is_suppressed(
    decision: Literal["accepted", "dismissed"], api: Api, world: World, sqs: FakeSqs
):
    company, scan = scanned(sqs, world, {"index.html": PAGE})
    item, *_ = published(scan)
    change_status(item, decision, item.version, company.owner.user_id, "Known.")
    results = uploaded(api, company, scan)["runs"][0]["results"]  # type: ignore[index]
    assert [it["properties"]["status"] for it in results if "suppressions" in it] == [decision]


def test_a_scan_without_findings(api: Api, world: World, sqs: FakeSqs):
    company, scan = scanned(sqs, world, {"index.html": "<p>nothing</p>"})
    check_sarif(uploaded(api, company, scan))
