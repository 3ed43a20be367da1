"""The message about an audit fits into a queue, whatever a page did, and the intake accepts it."""

import json
import secrets

import pytest

from controlplane.audits.reports import WebsiteAuditReport
from tests.support.audit_reports import ALL, OF_A_RUN, cookie, finding, message, request, vendor, visit

JPEG = b"\xff\xd8\xff" + secrets.token_bytes(59_000)


def accepted(sent: dict) -> WebsiteAuditReport:
    text = json.dumps(sent | OF_A_RUN)
    assert len(text) <= 240_000
    return WebsiteAuditReport.model_validate_json(text)


def random_url(length: int) -> str:
    return f"https://{secrets.token_hex(8)}.example/{secrets.token_hex(length // 2)}"


def test_a_small_report_is_whole():
    sent = message(finding(), picture=JPEG)
    report = accepted(sent)
    assert (report.made, len(report.findings[0].evidence), len(report.visits.visits[0].requests)) == (tuple(ALL), 1, 1)
    assert report.picture == sent["picture"]


def test_requests_of_vendors_and_findings_outlast_the_others():
    others = [request(random_url(280), at=number) for number in range(900)]
    requests = [*others, request("https://cdn.segment.com/late.js", "segment", at=9_000)]
    report = accepted(message(finding(), visits=[visit(it, requests=requests) for it in ALL], picture=JPEG))
    kept = report.visits.visits[0].requests
    assert (kept[-1].vendor_id, len(kept) < 300, kept[0].at) == ("segment", True, 0)
    assert report.picture
    assert report.made


@pytest.mark.parametrize("text", ["x" * 5_000, "\u202e\ud800\x00\n" * 900, "ü" * 5_000, "😀" * 5_000, ""])
def test_a_hostile_page_makes_no_report_that_is_refused(text):
    url = f"https://evil.example/{text}"
    proof = {"description": text, "visit": "untouched", "page": url, "at": 1, "url": url, "chain": [url] * 12}
    findings = [
        finding("cookie-before-consent", f"{number}{text}", title=f"It {text}", summary=text, evidence=[proof] * 20)
        for number in range(400)
    ]
    hostile = visit(
        requests=[request(url, "segment", chain=[url] * 12, page=url, consent={text: text})] * 1_000,
        cookies=[cookie(f"{number}{text}", path=f"/{text}", lifetimeSeconds=10**30) for number in range(3_000)],
        storage=[{"origin": text, "kind": "local", "key": text, "afterChoice": True}] * 3_000,
        consentMode=[{"command": text, "signals": {text: text}}] * 3_000,
        tcf={"cmpId": text, "eventStatus": text},
        pages=[url] * 30,
        refused={f"{number}{text}": text for number in range(300)},
        halted=text,
    )
    vendors = [vendor(f"v{number}", domain="::1", aliasOf=text, pages=[url] * 30) for number in range(500)]
    banner = {"library": text, "isShown": True, "accepts": True, "refuses": False, "buttons": [text] * 90}
    report = accepted(
        message(*findings, vendors=vendors, visits=[{**hostile, "choice": it} for it in ALL], banner=banner,
                pages=[url] * 30, picture=JPEG)
    )  # fmt: skip
    assert (report.made, bool(report.findings), bool(report.vendors)) == ((), True, True)
