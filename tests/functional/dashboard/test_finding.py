"""The page of a finding: evidence, fix, and history, and decisions about it, its vendor, and its issue."""

import re

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox, intake, issue_attempts, vendors
from controlplane.findings.items import Evidence, Fix, GithubIssue, InboxItem, LockedFindings, RuntimeVendor
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.browser import text_of
from tests.support.populated_organization import detection
from tests.support.world import Company

ISSUE = "https://github.com/acme/shop/issues/7"
LINK = "https://github.com/acme/shop/blob/1f0c2b9e/src/index.html#L12-L13"


@pytest.fixture
def repository(world, company):
    return world.connected_repository(company)


@pytest.fixture
def item(world, company, repository):
    return world.finding(company, repository)


def path(company: Company, item: InboxItem, below: str = "") -> str:
    return f"/organizations/{company.slug}/inbox/{item.item_id}{below}"


class TestContent:
    def test_shows_evidence_with_line_numbers_and_the_fix(self, visitor, world, company, repository):
        code = '<script src="a.js"></script>\nconst x = 1; // "later"'
        place = Evidence("src/index.html, line 12", LINK, "src/index.html", 12, 13, code)
        fix = Fix("Load it after consent.", "tsx", "import { posthog } from 'c15t';\n", ("@c15t/nextjs@^2.2",))
        item = world.finding(company, repository, evidence=(place,), fix=fix, confidence="low")
        reply = visitor.get(path(company, item))
        assert reply.status == 200
        assert f'<a href="{LINK}">' in reply.text
        assert re.findall(r'data-line="(\d+)"', reply.text) == ["12", "13"]
        assert '<span class="is-comment">// &#34;later&#34;</span>' in reply.text
        assert '<span class="is-keyword">import</span>' in reply.text
        advice = ("Low confidence", "tell whether this code runs", "Load it after consent.", "@c15t/nextjs")
        for wanted in ("Visitors are tracked", f"{repository.owner}/{repository.name}", *advice):
            assert wanted in text_of(reply)

    def test_everything_that_a_source_sends_is_escaped(self, visitor, world, company, repository):
        texts = dict.fromkeys(("title", "summary", "description", "remediation"), HOSTILE)
        item = world.finding(
            company,
            repository,
            **texts,
            references=("https://example.com/" + HOSTILE,),
            evidence=(Evidence(HOSTILE, None, HOSTILE, 1, 1, HOSTILE),),
            fix=Fix(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,)),
        )
        item = inbox.change_status(item, "accepted", item.version, company.owner.user_id, HOSTILE)
        reply = visitor.get(path(company, item))
        assert (reply.status, "<script>alert" in reply.text, "673229" in reply.text) == (200, False, False)
        scan_id = f"scn_{company.organization_id[4:]}01kb2m3n4p5q6r7s8t"
        item = world.finding(company, source="code-audit", locked_findings=LockedFindings(scan_id, 12, 50))
        reply = visitor.get(path(company, item))
        assert "12 new findings that are locked" in text_of(reply)
        assert f"/scans/{scan_id}" in reply.text


class TestDecision:
    def test_a_decision_redirects_keeps_the_filters_and_can_be_undone(self, visitor, company, item):
        assert 'role="status"' not in visitor.get(path(company, item, "?priority=P2&done=You%20won")).text
        visitor.get(path(company, item, "?priority=P2"))
        reply = visitor.press("Dismiss", fill={"Reason": "a test page"})
        assert (reply.status, reply.headers["location"]) == (303, path(company, item, "?priority=P2&done=dismissed"))
        reply = visitor.follow(reply)
        assert "The finding is dismissed." in text_of(reply)
        assert "Ada Lovelace dismissed this finding a test page" in text_of(reply)
        assert f'href="/organizations/{company.slug}/inbox?priority=P2"' in reply.text
        reply = visitor.press("Undo")
        assert inbox.get_item(item.item_id).status == "open"
        assert "The finding has its former status again." in text_of(visitor.follow(reply))

    def test_each_button_makes_its_decision_and_no_other_is_possible(self, visitor, company, item):
        for fields in ({"action": "closed"}, {"action": "accepted", "reason": "x" * 1001}, {"action": "undo"}):
            assert visitor.forge(path(company, item), {"version": item.version, **fields}).status == 400
        assert visitor.forge(path(company, item, "/vendor"), {"decision": "approve"}).status == 400
        assert inbox.get_item(item.item_id).version == item.version
        visitor.get(path(company, item))
        decisions = {"Accept": "accepted", "Dismiss": "dismissed", "Resolve": "resolved", "Reopen": "open"}
        for label, status in decisions.items():
            visitor.press(label)
            assert inbox.get_item(item.item_id).status == status

    def test_a_stale_version_says_what_changed_and_offers_to_decide_again(self, visitor, world, company, item, now):
        member = world.member(company, person=world.person(name="Grace Hopper"))
        page = visitor.get(path(company, item))
        inbox.change_status(item, "accepted", item.version, member.user_id, "it is ours")
        reply = visitor.press("Dismiss", fill={"Reason": "not ours"})
        assert reply.status == 409
        assert "Grace Hopper accepted it on March 4, 2026, 05:06 UTC: “it is ours”" in text_of(reply)
        assert visitor.press("Dismiss it anyway").status == 303
        decided = inbox.get_item(item.item_id)
        assert (decided.status, decided.status_reason) == ("dismissed", "not ours")
        now.advance(60)
        issue_attempts.complete(item.item_id, None, GithubIssue(7, ISSUE, "2026-03-04T05:06:07Z"))
        reply = visitor.press("Accept", on=page)
        assert (reply.status, "Its details changed on" in text_of(reply)) == (409, True)

    def test_the_history_has_ten_statuses_with_people_and_scans(self, visitor, world, company, item, now):
        leaving = world.member(company)
        for status, user_id in (("accepted", leaving.user_id), ("resolved", company.owner.user_id)):
            now.advance(60)
            item = inbox.change_status(item, status, item.version, user_id, None)
        world.leave(company, leaving)
        shown = text_of(visitor.get(path(company, item)))
        found = shown.index("The finding was found")
        assert shown.index("Ada Lovelace resolved") < shown.index("A former member accepted") < found
        for number in range(14):
            status = "accepted" if number % 2 else "dismissed"
            item = inbox.change_status(item, status, item.version, company.owner.user_id, str(number))
        assert [change.reason for change in item.history] == [str(number) for number in range(3, 14)]
        assert item.former is not None


class TestIssue:
    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0.01)

    def test_an_admin_opens_an_issue(self, visitor, company, item):
        page = visitor.get(path(company, item))
        reply = visitor.press("Open an issue")
        assert reply.headers["location"] == path(company, item, "?done=pending")
        assert issue_attempts.find_progress(item.item_id).attempt is not None
        assert "The issue is being opened on GitHub." in text_of(visitor.follow(reply))
        assert not visitor.offers("Open an issue")
        issue_attempts.complete(item.item_id, None, GithubIssue(7, ISSUE, "2026-03-04T05:06:07Z"))
        assert visitor.press("Open an issue", on=page).headers["location"].endswith("?done=issue")
        assert f'<a href="{ISSUE}">Issue #7</a>' in visitor.get(path(company, item)).text

    def test_an_admin_links_an_existing_issue(self, visitor, company, item):
        visitor.get(path(company, item))
        existing = "Or link an existing issue"
        assert visitor.press("Link this issue", fill={existing: "the first"}).status == 400
        assert visitor.entered(existing) == "the first"
        reply = visitor.press("Link this issue", fill={existing: " #42 "})
        assert reply.headers["location"] == path(company, item, "?done=pending")
        assert issue_attempts.find_progress(item.item_id).attempt.existing == 42

    def test_a_disconnected_repository_and_another_source_are_refused(self, visitor, world, company, repository, item):
        repositories.disconnect_repository(repository.repository_id)
        assert "no issue can be opened" in text_of(visitor.get(path(company, item)))
        assert visitor.forge(path(company, item, "/issue")).status == 409
        advisory = world.finding(company)
        reply = visitor.forge(path(company, advisory, "/issue"))
        assert (reply.status, "only for code-audit findings" in text_of(reply)) == (409, True)


class TestVendor:
    @pytest.fixture
    def seen(self, company, repository):
        page = {"seenOn": ["https://shop.example.com/"], "beforeConsent": True}
        seen = detection(repository.links[0].project_id, category=None, observedAt="2026-03-04T05:06:07.000Z", **page)
        intake.record_detection(seen)
        found = inbox.list_items(company.organization_id, "open", 10, None).items
        return next(item for item in found if item.source == "runtime")

    def test_an_unknown_decision_is_refused(self, visitor, company, seen):
        assert visitor.forge(path(company, seen, "/vendor"), {"decision": "delete"}).status == 400

    @pytest.mark.parametrize(("label", "state"), [("Approve", "approved"), ("Ignore", "ignored")])
    def test_an_admins_decision_about_the_vendor_resolves_the_finding(self, visitor, company, seen, label, state):
        shown = text_of(visitor.get(path(company, seen)))
        assert "Loaded from segment.com , before the visitor consented" in shown
        reply = visitor.press(label)
        assert reply.headers["location"] == path(company, seen, f"?done={state}")
        shown = text_of(visitor.follow(reply))
        assert f"The vendor is {state} for this project." in shown
        assert f"Ada Lovelace {state} the vendor" in shown
        vendor = vendors.find_vendor(ProjectId.stored(seen.project_id), "segment")
        assert (vendor.state, vendor.decided_by) == (state, company.owner.user_id)
        assert inbox.get_item(seen.item_id).status == "resolved"


def test_a_member_sees_who_can_open_an_issue_and_decide_about_a_vendor(browser, world, company, item):
    vendor = RuntimeVendor(item.project_id, "segment", "Segment", "segment.com")
    seen = world.finding(company, source="runtime", runtime_vendor=vendor, project_id=item.project_id)
    browser.signed_in(world.member(company).user_id)
    for found, words in ((item, "can open an issue"), (seen, "decide about vendors.")):
        assert f"Admins and owners {words}" in text_of(browser.get(path(company, found)))
        assert browser.buttons() == {"Sign out", "Accept", "Dismiss", "Resolve"}
