"""The pages for people without an account: the welcome with a check of pasted code, the prices, and the status."""

import json
import re
from html import unescape
from types import SimpleNamespace

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from awsclient.errors import NoAnswer
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.table import rate, waiting
from controlplane.platform.table.table import Table
from dashboard.visitors import checking
from dashboard.visitors.pages import SAMPLE
from openassent_analysis.sandbox import SandboxUnavailable
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.reply import Reply
from tests.support.world import uncounted

CODE = "HTML or JavaScript"
HOTJAR = '<title>Shop</title>\n<script src="https://static.hotjar.com/c/hotjar-1.js" async></script>\n'


@pytest.fixture(autouse=True, scope="module")
def _warm():
    with warm_sandboxes("openassent_analysis.sandbox.Sandbox"):
        yield


def check(browser: Browser, code: str) -> Reply:
    browser.get("/")
    return browser.press("Check this code", fill={CODE: code})


class TestWelcome:
    def test_it_says_what_the_service_is_and_leads_everywhere(self, browser):
        shown = browser.get("/")
        for words in ("trackers that run before consent", "Failed Assent 1 new finding", "Line 4 · high confidence"):
            assert words in text_of(shown)
        paths = {*re.findall(r'(?:href|action)="([^"]+)"', shown.text)}
        assert paths >= {"/sign-up", "/sign-in", "/check", "/pricing", "/status", "https://api.assent.test/docs"}
        assert len(shown.text) < 8_192

    def test_the_sample_is_what_the_analysis_says_today(self):
        sample = json.loads(SAMPLE.read_text())
        (found,) = checking.check_code(sample["code"]).found
        place = found.finding.location
        known = {name: getattr(found.finding, name) for name in sample["found"]["finding"]}
        known["location"] = {"start_line": place.start_line, "snippet": place.snippet}
        assert json.loads(json.dumps({"finding": known, "fix": found.fix})) == sample["found"]


class TestCheck:
    def test_findings_are_shown_with_line_reason_confidence_and_fix_and_nothing_is_stored(self, browser):
        before = uncounted()
        with captured_logs() as logs:
            shown = check(browser, HOTJAR)
        text = text_of(shown)
        for words in (
            "1 finding in 3 lines",
            "Hotjar is loaded before consent",
            "Line 2 · high confidence",
            "before the visitor has agreed",
            '+<script type="text/plain"',
            "What this check can't see",
        ):
            assert words in text, words
        assert (shown.status, browser.entered(CODE)) == (200, HOTJAR)
        assert [it for it in uncounted() if it["sk"]["S"] != "WAITSLOT"] == before
        assert "hotjar" not in str(logs)

    @each(
        "code, words",
        [
            ("import mixpanel from 'mixpanel-browser';\nmixpanel.init('abc');", "Mixpanel starts before consent"),
            ("const total: number = 1;", "Nothing found in 1 line."),
            ("<p>Hello</p>", "Nothing found in 1 line."),
            (f"<script>{'a=1;' * 20_000}</script>"[:60_000], "This code was not analyzed"),
        ],
    )
    def test_scripts_and_code_without_findings_get_a_plain_answer(self, browser, code, words):
        assert words in text_of(check(browser, code))

    @each("code, words", [(" \n", "Paste some HTML"), ("é" * 32_769, "more than 64 KB")])
    def test_code_that_is_missing_or_too_long_is_refused(self, browser, code, words):
        shown = check(browser, code)
        assert (shown.status, words in text_of(shown)) == (400, True)

    def test_more_than_a_megabyte_and_another_type_are_refused_as_pages(self, browser):
        for code, headers, status in (
            ("x" * 1_048_576, {}, 413),
            ("x", {"Content-Type": "application/json"}, 415),
        ):
            shown = browser.forge("/check", {"code": code}, **headers)
            assert (shown.status, shown.headers["content-type"]) == (status, "text/html; charset=utf-8")

    def test_a_signed_in_person_can_check_code_and_what_is_pasted_is_escaped(self, visitor, browser):
        shown = visitor.forge("/check", {"code": f"<p>{HOSTILE}</p>"})
        assert (shown.status, "Sign out" in shown.text, "<script>alert" in shown.text) == (200, True, False)
        assert HOSTILE in unescape(shown.text)

    def test_a_check_that_cant_run_says_so_and_keeps_the_code(self, browser, monkeypatch):
        def unavailable(*_args, **_options):
            raise SandboxUnavailable("no seccomp")

        monkeypatch.setattr("openassent_analysis.sandbox.Sandbox", unavailable)
        shown = check(browser, HOTJAR)
        assert (shown.status, "was not checked" in text_of(shown), browser.entered(CODE)) == (503, True, HOTJAR)

    def test_checks_are_limited_at_once_and_by_address(self, browser, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 10)
        with waiting.slot(60) as is_held, waiting.slot(60, waiting.CHECKS) as is_first:
            assert (is_held, is_first, check(browser, HOTJAR).status) == (True, True, 200)
            with waiting.slot(60, waiting.CHECKS):
                assert check(browser, HOTJAR).status == 503
        with waiting.slot(60, waiting.CHECKS), waiting.slot(60, waiting.CHECKS), waiting.slot(60) as is_held:
            assert is_held
        monkeypatch.setattr(
            "dashboard.visitors.pages.check_code", lambda _: SimpleNamespace(found=(), lines=1, unread=None)
        )
        shown = [check(browser, "x") for _ in range(6)]
        assert [it.status for it in shown] == [200] * 4 + [429] * 2
        assert "Too many requests" in text_of(shown[-1])
        # All addresses together have 60 checks a minute. Those that one address is refused don't count.
        for _ in range(53):
            rate.count_address("pages.check", "all", 60)
        browser.api.source_ip = "203.0.113.1"
        assert [check(browser, "x").status for _ in range(2)] == [200, 429]


class TestPricing:
    def test_every_plan_has_the_price_of_the_settings_or_the_contact(self, browser, monkeypatch):
        shown = text_of(browser.get("/pricing"))
        assert [plan.name in shown for plan in PLANS.values()] == [True] * len(PLANS)
        assert "Price Free On request On request On request" in shown
        monkeypatch.setitem(settings.__dict__, "contact", "help@example.com")
        monkeypatch.setitem(settings.__dict__, "plan_prices", {"starter": "$29 a month"})
        shown = browser.get("/pricing")
        assert "Price Free $29 a month Contact us Contact us" in text_of(shown)
        assert 'href="mailto:help@example.com">Contact us' in shown.text

    def test_no_account_can_be_created_if_only_the_operator_creates_accounts(self, browser, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "self_sign_up", False)
        assert ["/sign-up" in browser.get(path).text for path in ("/", "/pricing")] == [False, False]


class TestStatus:
    def test_it_says_what_works(self, browser, monkeypatch):
        shown = browser.get("/status")
        assert (shown.status, "Everything that is checked works" in text_of(shown)) == (200, True)

        def silent(_table):
            raise NoAnswer("timed out")

        monkeypatch.setattr(Table, "ping", silent)
        shown = browser.get("/status")
        assert (shown.status, "API and database Not working" in text_of(shown)) == (503, True)


class TestAddresses:
    @each(
        "accept, is_page",
        [
            ("text/html", True),
            ("TEXT/HTML,application/json;q=0.9", True),
            ("application/json, text/html;q=0", False),
            ("application/json, text/html", False),
            ("text/htmlx", False),
        ],
    )
    def test_a_program_that_doesnt_prefer_html_gets_the_envelope(self, api, accept, is_page):
        reply = api.get("/v1/nope", headers={"Accept": accept})
        assert (reply.status, reply.headers["content-type"].startswith("text/html")) == (404, is_page)

    @each("method, target, status", [("DELETE", "/pricing", 405), ("PUT", "/", 405), ("POST", "/nope/x", 404)])
    def test_another_method_shows_a_page_to_a_browser_and_an_error_to_programs(self, api, method, target, status):
        page = api.call(method, target, headers={"Accept": "text/html"})
        assert (page.status, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        reply = api.call(method, target)
        assert (reply.status, reply.headers["content-type"]) == (status, "application/json")

    def test_guessed_addresses_lead_to_the_sign_in(self, browser):
        assert browser.get("/login").headers["location"] == "/sign-in"
        assert browser.get("/check", Accept="text/html").headers["location"] == "/"
