"""Audits of small local websites with a known truth, under host names of their own, and attempts to break out.

No test leaves this machine: every name resolves to the same public address, and connections to it go to local servers.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser

from controlplane.audits.reports import WebsiteAuditReport
from openassent_audit import Audit, Limits, audit_website
from openassent_audit.browser import NoBrowser, started_browser
from openassent_audit.network import Resolution, is_public
from openassent_audit.report import Reason
from openassent_audit.untrusted import like
from openassent_audit.words import autoconsent
from tests.audits.internet import FILES, MODULES, PUBLIC, Internet, internet
from tests.audits.sites import C15T, ID, KINDS, SITES, Site
from tests.browser.test_fixes import bundle
from tests.support.audit_reports import OF_A_RUN
from tests.support.missing import is_missing

# The websites are audited once for all tests, which takes up to half an hour on a slow and busy machine.
pytestmark = pytest.mark.timeout(3_600)
# Long enough for a busy machine: what these don't wait for is missed.
QUICK = Limits(pages=3, settle_seconds=1, banner_seconds=3, page_seconds=120, visit_seconds=300)
AT_A_TIME = 4


def trusting() -> AbstractAsyncContextManager[Browser]:
    return started_browser(flags=["--ignore-certificate-errors"])


async def audits(folder: Path, sites: dict[str, Site], limits: Limits = QUICK, prepare=None):
    """Returns the audit of each website, and the internet that they ran in.

    prepare: gets the internet. Its websites are hostile, so each audit has a browser of its own, as in the product.
    """
    by_host = {f"{name}.test": site for name, site in sites.items()}
    if any("/c15t.js" in site.body for site in sites.values()):
        (folder / "c15t.js").write_bytes(bundle("c15t.jsx", {"c15t.jsx": C15T}, folder))
    limit = asyncio.Semaphore(3 if prepare else AT_A_TIME)
    async with internet(by_host, folder) as there, nullcontext() if prepare else trusting() as browser:
        if prepare:
            prepare(there)

        async def audit(host: str, site: Site) -> Audit:
            async with limit:
                url = f"{site.scheme}://{host}/"
                start = (lambda: nullcontext(browser)) if browser else trusting
                return await audit_website(
                    url, limits=replace(limits, **site.limits), network=there.network, start=start
                )

        made = await asyncio.gather(*(audit(host, site) for host, site in by_host.items()))
    return dict(zip(sites, made, strict=True)), there


def run_audits(*arguments):
    if missing := [it for it in (*FILES.values(), "tarteaucitronjs", ".bin/esbuild") if not (MODULES / it).exists()]:
        is_missing(f"not installed: {', '.join(missing)}")
    if autoconsent() is None:
        is_missing("not made: the rules of autoconsent (make browser)")
    try:
        return asyncio.run(audits(*arguments))
    except NoBrowser as error:
        is_missing(str(error))
        raise


def truth_of(name: str, site: Site) -> set[str]:
    short = (it.replace("SITE", f"{name}.test").partition(":") for it in site.truth.split())
    return {f"{KINDS[kind]}:{subject}" for kind, _, subject in short}


@pytest.fixture(scope="module")
def audited(tmp_path_factory) -> dict[str, Audit]:
    return run_audits(tmp_path_factory.mktemp("sites"), SITES)[0]


class TestTruth:
    @pytest.mark.parametrize("name", SITES)
    def test_a_website_gets_the_findings_that_it_deserves(self, audited, name: str):
        audit = audited[name]
        assert {it.id for it in audit.findings} == truth_of(name, SITES[name])
        assert audit.outcome == SITES[name].expected, audit.reason
        if SITES[name].reason:
            assert audit.reason.code == SITES[name].reason
        if SITES[name].by:
            assert [visit.answered_by for visit in audit.visits] == [None, SITES[name].by, SITES[name].by]

    def test_precision_and_recall_by_kind(self, audited, capsys):
        found = [it.id for audit in audited.values() for it in audit.findings]
        right = [
            it.id for name, audit in audited.items() for it in audit.findings if it.id in truth_of(name, SITES[name])
        ]
        wanted = [it for name, site in SITES.items() for it in truth_of(name, site)]
        with capsys.disabled():
            for kind in sorted(KINDS.values()):
                of_kind = [sum(it.startswith(f"{kind}:") for it in ids) for ids in (right, found, wanted)]
                sys.stdout.write(f"{kind}: precision {of_kind[0]}/{of_kind[1]}, recall {of_kind[0]}/{of_kind[2]}\n")
        assert Counter(right) == Counter(found) == Counter(wanted)


class TestReport:
    def test_the_evidence_says_what_loaded_the_request_and_when(self, audited):
        [finding] = audited["own-ignores-refusal"].as_json()["findings"]
        [proof, *_] = finding["evidence"]
        assert (proof["visit"], proof["url"]) == ("refused", "https://static.hotjar.com/c/hotjar-1.js")
        assert proof["chain"] == proof["page"].split() == ["https://own-ignores-refusal.test/"]
        assert proof["at"] > 0

    def test_it_is_json_without_values(self, audited):
        for audit in audited.values():
            assert ID not in json.dumps(audit.as_json())

    def test_the_picture_is_taken_before_a_choice(self, audited):
        assert audited["own-right"].picture.startswith(b"\xff\xd8")

    def test_the_intake_accepts_the_messages(self, audited):
        for audit in audited.values():
            sent = json.dumps(audit.as_message() | OF_A_RUN)
            assert [it.id for it in WebsiteAuditReport.model_validate_json(sent).findings] == [
                it.id for it in audit.findings
            ]


@pytest.fixture(scope="module")
def broken_out(tmp_path_factory):
    """Audits websites that try to reach what they must not, or never end."""
    tries = (
        "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://[::ffff:169.254.169.254]/", "http://2130706433/",
        "http://169.254.169.254/latest/meta-data/", "http://169.254.100.1/", "http://rebound.test/", "https://inner.test/",
        "https://public.test:8080/", "http://[64:ff9b::a00:1]/", "http://0.0.0.0/", "https://168.63.129.16/",
        "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",  # Lambda's
    )  # fmt: skip
    fetches = "".join(f"fetch('{it}',{{mode:'no-cors'}}).catch(()=>0);" for it in tries)
    sites = {
        "fetches": Site(f"<script>{fetches}setTimeout(()=>{{{fetches}}},300)</script>"),
        "in-worker": Site(f"<script>new Worker(URL.createObjectURL(new Blob([`{fetches}`])))</script>"),
        "frames": Site("".join(f'<iframe src="{it}"></iframe><img src="{it}">' for it in (*tries, "file:///etc/passwd"))),
        "sockets": Site("<script>for(const it of ['ws://127.0.0.1/','ws://inner.test/'])new WebSocket(it);"
                        "const it=new RTCPeerConnection({iceServers:[{urls:'stun:inner.test:80'}]});"
                        "it.createDataChannel('x');it.createOffer().then((o)=>it.setLocalDescription(o));</script>"),
        "redirects-inside": Site("", status=302, headers=[("location", "http://169.254.169.254/latest/")]),
        "redirects-to-file": Site("", status=302, headers=[("location", "file:///etc/passwd")]),
        "opens-files": Site("<script>for(const it of ['file:///etc/passwd','view-source:file:///etc/passwd',"
                            "'chrome://version']){open(it);try{location=it}catch{}}</script><p>Still here</p>"),
        "endless-requests": Site("<script>setInterval(()=>{for(let i=0;i<40;i++)fetch('/x?'+i)},10)</script>"),
        "never-answers": Site("<script>location='/never'</script>", limits={"page_seconds": 10}),
        "never-loads": Site('<p>Text</p><img src="/never">'),
        "huge": Site('<script>fetch("/huge").then((it)=>it.arrayBuffer())</script>', limits={"bytes": 2_000_000}),
        "loops": Site("<script>setTimeout(()=>{for(;;);},50)</script>", limits={"visit_seconds": 15}),
        "crashes": Site("<p>Going</p><script>setTimeout(()=>{location='chrome://crash'},50)</script>"),
        "lies": Site("<p>Hi</p><script>String.prototype.slice=()=>({});Array.prototype.slice=(_,to)=>to===500?"
                     "[{url:'file:///etc/passwd',text:1},{url:'http://['},7]:[];</script>"),
        "downloads": Site("", headers=[("content-disposition", "attachment")]),
    }  # fmt: skip
    limits = replace(QUICK, requests=400, bytes=20_000_000)

    def prepare(there: Internet) -> None:
        there.answers["rebound.test"] = lambda count: Resolution(
            (PUBLIC if count == 1 else "127.0.0.1",), "rebound.test"
        )
        there.answers["inner.test"] = lambda _: Resolution(("10.0.0.8", "fd00:ec2::254"), "inner.test")
        there.answers["localhost"] = lambda _: Resolution(("127.0.0.1", "::1"), "localhost")

    return run_audits(tmp_path_factory.mktemp("out"), sites, limits, prepare)


class TestBreakOut:
    def test_nothing_but_a_public_address_is_connected_to(self, broken_out):
        made, there = broken_out
        assert set(there.connected) == {PUBLIC}
        refused = {it for audit in made.values() for visit in audit.visits for it in visit.refused.values()}
        inside = {f"not a public address: {it}" for it in ("127.0.0.1", "10.0.0.8, fd00:ec2::254")}
        assert inside | {"port 8080", "port 9001"} <= refused

    @pytest.mark.parametrize(
        ("name", "outcome", "code"),
        [
            ("fetches", "passed", None),
            ("in-worker", "passed", None),
            ("frames", "passed", None),
            ("opens-files", "passed", None),
            ("crashes", "passed", None),
            ("never-answers", "blocked", "timeout"),
            ("redirects-inside", "blocked", "unreachable"),
            ("redirects-to-file", "blocked", "unreachable"),
            ("endless-requests", "blocked", "limit"),
            ("never-loads", "passed", None),
            ("huge", "blocked", "limit"),
            ("loops", "blocked", "limit"),
            ("lies", "passed", None),
            ("downloads", "blocked", "unreachable"),
        ],
    )
    def test_the_outcome_says_so(self, broken_out, name: str, outcome: str, code: str | None):
        audit = broken_out[0][name]
        assert audit.outcome == outcome, audit.reason
        assert (audit.reason.code if audit.reason else None) == code

    def test_no_file_is_read(self, broken_out):
        for audit in broken_out[0].values():
            assert not any("file:" in it for visit in audit.visits for it in visit.chosen)
            assert not any("file:" in it.url for visit in audit.visits for it in visit.requests)

    @pytest.mark.parametrize(
        "address",
        [
            "127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "168.63.129.16", "::1",
            "fd00:ec2::254", "fe80::1%eth0", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
            "name",
        ],
    )  # fmt: skip
    def test_addresses_inside_are_not_public(self, address: str):
        assert not is_public(address)

    def test_addresses_outside_are(self):
        assert is_public(PUBLIC)
        assert is_public("2606:2800:220:1::1")


@pytest.mark.parametrize(("visit", "seconds"), [("untouched", 0), ("untouched", 1), ("refused", 0), ("accepted", 1)])
def test_a_browser_that_dies_ends_the_audit_as_blocked(tmp_path, visit: str, seconds: float):
    """visit: the one in which it dies. seconds: how long after the visit has begun."""
    running: list[Browser] = []

    @asynccontextmanager
    async def start():
        async with trusting() as browser:
            running.append(browser)
            yield browser

    async def kill() -> None:
        session = await running[-1].new_browser_cdp_session()
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        await asyncio.sleep(seconds)
        os.kill(next(it["id"] for it in processes if it["type"] == "browser"), signal.SIGKILL)

    async def run() -> Audit:
        async with internet({"shop.test": SITES["own-right"]}, tmp_path) as there, asyncio.TaskGroup() as tasks:
            return await audit_website(
                "https://shop.test/", limits=QUICK, network=there.network, start=start,
                on_progress=lambda it: tasks.create_task(kill()) if it == visit else None,
            )  # fmt: skip

    audit = asyncio.run(run())
    assert (audit.outcome, audit.reason) == (
        "blocked",
        Reason("limit", "The visit ended early. It crashed the browser."),
    )
    assert [it.choice for it in audit.visits][-1] == visit


@pytest.mark.parametrize("said", [None, 7, "x", [], {"commands": {}}, {"commands": [7, {"signals": [1]}], "title": {}}])
def test_what_a_page_says_gets_its_shape(said: object):
    shape = {"commands": [{"command": "", "signals": {}}], "title": "", "password": False}
    found = like(shape, said)
    assert (found["title"], found["password"]) == ("", False)
    assert all(it == {"command": "", "signals": {}} for it in found["commands"])


def test_without_a_browser_an_audit_is_blocked_with_what_to_do(monkeypatch):
    monkeypatch.setattr("openassent_audit.browser.find_chromium", lambda _: None)
    audit = asyncio.run(audit_website("https://shop.test/"))
    assert (audit.outcome, audit.reason.code) == ("blocked", "no-browser")
    assert "playwright install chromium" in audit.reason.message


@pytest.mark.parametrize("url", ["file:///etc/passwd", "view-source:https://a.test", "https://a:b@c.test", "https://"])
def test_other_addresses_are_refused(url: str):
    with pytest.raises(ValueError, match="http or https"):
        asyncio.run(audit_website(url))
