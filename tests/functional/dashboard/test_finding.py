"""The inbox and the page of a finding: lists, evidence, and decisions, which can be undone."""

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import quote

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox, intake, issue_attempts, vendors
from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.items import Evidence, GithubIssue, InboxItem, LockedFindings, RuntimeVendor
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.projects.store import get_project
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of
from tests.support.audit_reports import complete_audit, finding
from tests.support.browser import Browser, text_of
from tests.support.populated_organization import detection
from tests.support.reply import Reply
from tests.support.world import Company, World

ISSUE = "https://github.com/acme/shop/issues/7"
ANYONES = {"Sign out", "Accept", "Dismiss", "Resolve", "Snooze 1 week", "1 month", "Save", "Comment"}
LINK = "https://github.com/acme/shop/blob/1f0c2b9e/src/index.html#L12-L13"


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

    def test_shows_the_edits_of_a_fix_as_a_diff_to_copy(self, visitor, world, company, repository):
        edit = Edit("src/index.html", 12, "<p>\n<script src>", "<p>\n<script type>")
        item = world.finding(company, repository, fix=Fix("Set `a: 1` <too>.", "html", "load()", edits=(edit,)))
        reply = visitor.get(path(company, item))
        shown = re.findall(r'<span class="line is-(\w+)">(.*)\n', reply.text)
        assert shown == [
            ("file", "--- a/src/index.html"),
            ("file", "+++ b/src/index.html"),
            ("place", "@@ -12,2 +12,2 @@"),
            ("kept", " &lt;p&gt;"),
            ("removed", "-&lt;script src&gt;"),
            ("added", "+&lt;script type&gt;"),
        ]
        assert 'data-copy="fix" hidden>Copy the diff</button>' in reply.text
        # The text that is copied is the diff as git applies it, which ends with a line break.
        copied = re.sub(r"<[^>]+>", "", reply.text.partition('<div id="fix">')[2].partition("</code>")[0])
        assert unescape(copied).lstrip("\n") == f"{item.fix.diff}\n"
        assert "load()" not in reply.text
        assert "<p>Set <code>a: 1</code> &lt;too&gt;.</p>" in reply.text

    def test_links_to_the_page_of_the_rule_unless_it_was_removed(self, visitor, world, company, repository):
        for rule_id, links in (("embedded-media", ["https://api.assent.test/docs/rules/embedded-media"]), ("gone", [])):
            item = world.finding(company, repository, rule_id=rule_id)
            assert re.findall(r'href="([^"]*/docs/rules/[^"]*)"', visitor.get(path(company, item)).text) == links

    def test_locked_findings_lead_to_their_scan(self, visitor, world, company):
        scan_id = f"scn_{company.organization_id[4:]}01kb2m3n4p5q6r7s8t"
        item = world.finding(company, source="code-audit", locked_findings=LockedFindings(scan_id, 12, 50))
        reply = visitor.get(path(company, item))
        assert ("12 new findings that are locked" in text_of(reply), f"/scans/{scan_id}" in reply.text) == (True, True)


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

    def test_each_button_makes_its_decision(self, visitor, company, item):
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

    def test_the_history_has_statuses_with_people_and_scans(self, visitor, world, company, item, now):
        leaving = world.member(company)
        for status, user_id in (("accepted", leaving.user_id), ("resolved", company.owner.user_id)):
            now.advance(60)
            item = inbox.change_status(item, status, item.version, user_id, None)
        world.leave(company, leaving)
        shown = text_of(visitor.get(path(company, item)))
        found = shown.index("Found")
        assert shown.index("Ada Lovelace resolved") < shown.index("A former member accepted") < found


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

    def test_on_a_finding_of_an_audit_it_resolves_that_of_the_vendor_too(self, visitor, company, seen):
        audited = complete_audit(get_project(ProjectId.stored(seen.project_id)), finding("loads-after-refusal"))
        item = inbox.get_item(audited.findings[0].item_id)
        shown = text_of(visitor.get(path(company, item)))
        assert "Caused by https://shop.example.com/app.js" in shown
        assert "Vendor decisions" not in shown
        visitor.press("Ignore")
        assert [inbox.get_item(it.item_id).status for it in (item, seen)] == ["resolved"] * 2


def test_a_member_sees_who_can_open_an_issue_and_decide_about_a_vendor(browser, world, company, item):
    vendor = RuntimeVendor(item.project_id, "segment", "Segment", "segment.com")
    seen = world.finding(company, source="runtime", runtime_vendor=vendor, project_id=item.project_id)
    browser.signed_in(world.member(company).user_id)
    for found, words in ((item, "can open an issue"), (seen, "decide about vendors.")):
        assert f"Admins and owners {words}" in text_of(browser.get(path(company, found)))
        assert browser.buttons() == ANYONES


inbox_path = pages_in("inbox")


def titles(reply: Reply) -> list[str]:
    assert reply.status == 200
    return re.findall(r"<h3><a href=[^>]*>([^<]*)</a></h3>", reply.text)


def opened(visitor: Browser, company: Company) -> Reply:
    return visitor.get(inbox_path(company, "?status=all"))


def decide(visitor: Browser, on: Reply, items: Sequence[InboxItem], label: str, reason: str = "") -> Reply:
    """Selects findings on a page of the inbox and presses a button."""
    selected = {f"Select {item.title}": True for item in items}
    return visitor.press(label, fill={**selected, "Reason": reason}, on=on)


def statuses(items: Sequence[InboxItem]) -> list[str]:
    return [inbox.get_item(item.item_id).status for item in items]


def runtime(world: World, company: Company, name: str) -> InboxItem:
    project_id = world.connected_repository(company).links[0].project_id
    vendor = RuntimeVendor(project_id, name.lower(), name, f"{name.lower()}.com")
    return world.finding(
        company, source="runtime", title=f"New vendor: {name}", runtime_vendor=vendor, project_id=project_id
    )


class TestList:
    def test_lists_open_findings_first_and_counts_each_status(self, visitor, world, company, monkeypatch):
        found = [world.finding(company, title=f"Finding {name}") for name in "abc"]
        inbox.change_status(found[0], "dismissed", found[0].version, company.owner.user_id, None)
        monkeypatch.setattr("dashboard.findings.pages.MOST_COUNTED", 2)
        reply = visitor.get(inbox_path(company))
        assert sorted(titles(reply)) == ["Finding b", "Finding c"]
        assert "Open 2 Accepted 0 Dismissed 1 Resolved 0 All" in text_of(reply)
        assert titles(visitor.get(inbox_path(company, "?status=dismissed"))) == ["Finding a"]
        world.finding(company)
        reply = opened(visitor, company)
        assert (len(titles(reply)), "Open 2+ Accepted" in text_of(reply)) == (4, True)

    def test_each_filter_limits_the_list_and_stays_in_links(self, visitor, world, company):
        repository = world.connected_repository(company, name="shop")
        other = world.connected_repository(company, name="blog")
        place = Evidence("src/cart/Pay.tsx, line 3", None, "src/cart/Pay.tsx", 3, 3, "track()")
        world.finding(company, repository, title="PostHog loads", priority="P0", evidence=(place,))
        world.finding(company, other, title="A cookie is set", priority="P3")
        world.finding(company, title="Advisory of the week", summary="Rotate the keys.")
        runtime(world, company, "Segment")
        for query, wanted in {
            "priority=P0": ["PostHog loads"],
            "source=advisory": ["Advisory of the week"],
            "repository_name=blog": ["A cookie is set"],
            f"project_id={repository.links[0].project_id}": ["PostHog loads"],
            "vendor=segment.com": ["New vendor: Segment"],
            "vendor=posthog": ["PostHog loads"],
            "text=rotate+KEYS": ["Advisory of the week"],
            "text=cart%2Fpay": ["PostHog loads"],
            "text=cart+blog": [],
            "priority=P9&source=x&status=none": ["New vendor: Segment", "Advisory of the week"],
        }.items():
            reply = visitor.get(inbox_path(company, f"?{query}"))
            assert titles(reply)[:2] == wanted or set(wanted) <= set(titles(reply)), query
            if wanted and "P9" not in query:
                assert titles(reply) == wanted
                assert f"/inbox/inb_{company.organization_id[4:]}" in reply.text
                assert re.search(rf'<a href="[^"]*\?{re.escape(query)}">{wanted[0]}', reply.text), query

    def test_urgent_findings_are_first_unless_the_last_change_is_asked_for(self, visitor, world, company, now):
        for priority in ("P2", "P0", None, "P1"):
            world.finding(company, title=f"Finding {priority}", priority=priority)
            now.advance(1)
        for query, wanted in {"": ["P0", "P1", "P2", None], "?sort=updated": ["P1", None, "P0", "P2"]}.items():
            reply = visitor.get(inbox_path(company, query))
            assert titles(reply) == [f"Finding {priority}" for priority in wanted]
            assert "P0 is the most urgent." in text_of(reply)

    @pytest.mark.parametrize(
        ("by", "wanted"),
        [
            (
                "rule",
                {"A vendor": ["Beta", "Alpha"], "Websites": ["New vendor: Segment"], "Advisories": ["Old"]},
            ),
            ("vendor", {"hotjar": ["Beta"], "segment": ["New vendor: Segment", "Alpha"], "No vendor": ["Old"]}),
            ("file", {"shop/a.html": ["Beta", "Alpha"], "No file": ["New vendor: Segment", "Old"]}),
        ],
    )
    def test_groups_are_decided_about_at_once(self, visitor, world, company, by, wanted):
        repository = world.connected_repository(company, name="shop")
        evidence = (Evidence("a.html, line 3", None, "a.html", 3, 3, "track()"),)
        for title, priority, vendor_id in (("Alpha", "P2", "segment"), ("Beta", "P0", "hotjar")):
            changes = {"priority": priority, "vendor_ids": (vendor_id,), "rule_id": "a-vendor", "evidence": evidence}
            world.finding(company, repository, title=title, **changes)
        runtime(world, company, "Segment")
        world.finding(company, title="Old", priority=None)
        reply = visitor.get(inbox_path(company, f"?group={by}"))
        found = re.findall(r"<summary><bdi>([^<]*)</bdi>.*?</details>", reply.text, re.DOTALL)
        assert found[0] == next(iter(wanted))
        for name, its in wanted.items():
            (shown,) = re.findall(rf"<summary><bdi>{name}</bdi>.*?</details>", reply.text, re.DOTALL)
            assert sorted(re.findall(r"<h3><a href=[^>]*>([^<]*)</a></h3>", shown)) == sorted(its)
        reply = visitor.press("Accept", fill={f"Select all of {found[0]}": True}, on=reply)
        assert f"{len(wanted[found[0]])} finding" in text_of(reply)
        assert not set(wanted[found[0]]) & set(titles(reply))

    def test_a_search_goes_on_page_by_page_and_finds_each_match_once(self, visitor, world, company, now, monkeypatch):
        monkeypatch.setattr("dashboard.findings.pages.ITEMS_PER_PAGE", 2)
        monkeypatch.setattr("controlplane.findings.lists.MOST_SORTED", 4)
        for number in range(11):
            now.advance(1)
            world.finding(company, title=f"{'Match' if number % 3 else 'Other'} {number}")
        pages = [titles(it) for it in pages_of(visitor, inbox_path(company, "?text=match"), "Search more findings")]
        assert [title for page in pages for title in page] == [f"Match {it}" for it in (10, 8, 7, 5, 4, 2, 1)]
        assert len(pages) >= 4

    def test_a_cursor_of_other_filters_returns_400_and_text_is_escaped(self, visitor, world, company, monkeypatch):
        monkeypatch.setattr("dashboard.findings.pages.ITEMS_PER_PAGE", 1)
        for _ in range(2):
            world.finding(company)
        cursor = re.search(r"cursor=([^\"&]+)", visitor.get(inbox_path(company)).text)[1]
        assert len(titles(visitor.get(inbox_path(company, f"?cursor={cursor}")))) == 1
        assert visitor.get(inbox_path(company, f"?cursor={cursor}&priority=P2")).status == 400
        query = "&".join(f"{name}={quote(HOSTILE)}" for name in ("text", "vendor", "repository"))
        shown = visitor.get(inbox_path(company, f"?{query}"))
        assert (shown.status, "<script>alert" in shown.text, "673229" in shown.text) == (200, False, False)


class TestDecisions:
    @pytest.fixture
    def found(self, world, company):
        return [world.finding(company, title=f"Finding {name}") for name in "abc"]

    def test_each_button_decides_about_the_selected_findings(self, visitor, company, found):
        for label, status in (("Accept", "accepted"), ("Dismiss", "dismissed"), ("Resolve", "resolved")):
            reply = decide(visitor, opened(visitor, company), found[:2], label, "not ours")
            assert f"2 findings are {status}." in text_of(reply)
            assert statuses(found) == [status, status, "open"]
            assert inbox.get_item(found[0].item_id).status_reason == "not ours"
        assert "2 findings are reopened." in text_of(decide(visitor, opened(visitor, company), found[:2], "Reopen"))
        assert statuses(found) == ["open"] * 3

    def test_a_decision_about_findings_of_any_status_can_be_repeated_and_undone(self, visitor, company, found):
        found[2] = inbox.change_status(found[2], "accepted", found[2].version, company.owner.user_id, "we know")
        page = opened(visitor, company)
        versions = set()
        for _ in range(2):
            decide(visitor, page, found[:1], "Dismiss", "not ours")
            versions.add(inbox.get_item(found[0].item_id).version)
        assert len(versions) == 1
        decide(visitor, opened(visitor, company), found[1:], "Dismiss", "not ours")
        assert statuses(found) == ["dismissed"] * 3
        assert "2 findings are restored." in text_of(visitor.press("Undo"))
        assert statuses(found) == ["dismissed", "open", "accepted"]
        assert inbox.get_item(found[2].item_id).status_reason == "we know"

    def test_a_dismissal_can_have_an_end_which_undo_restores(self, visitor, company, found):
        page = opened(visitor, company)
        selected = {f"Select {found[0].title}": True, "Reason": "until spring", "Dismiss until": "2026-03-05"}
        visitor.press("Dismiss", fill=selected, on=page)
        shown = visitor.get(path(company, found[0]))
        assert "dismissed this finding until 2026-03-05" in text_of(shown)
        visitor.press("Accept", on=shown)
        assert inbox.get_item(found[0].item_id).dismissed_until is None
        visitor.press("Undo")
        assert inbox.get_item(found[0].item_id).dismissed_until == "2026-03-05T00:00:00.000Z"

    def test_a_dismissal_cant_have_ended_before(self, visitor, company, found):
        page = opened(visitor, company)
        for day in ("2026-03-04", "soon"):
            fill = {f"Select {found[0].title}": True, "Dismiss until": day}
            assert "Choose a day in the future" in text_of(visitor.press("Dismiss", fill=fill, on=page))
        assert statuses(found[:1]) == ["open"]

    def test_undo_leaves_what_changed_since_and_what_the_decision_did_not_change(self, visitor, world, company, found):
        member = world.member(company, person=world.person(name="Grace Hopper"))
        before, changed, restored = found
        inbox.change_status(before, "dismissed", before.version, company.owner.user_id, None)
        decide(visitor, opened(visitor, company), found, "Dismiss")
        sent = visitor.sends("Undo").keys() - {"form_token", "action"}
        assert sent == {f"item-{changed.item_id}", f"item-{restored.item_id}"}
        current = inbox.get_item(changed.item_id)
        inbox.change_status(current, "accepted", current.version, member.user_id, "it is ours")
        shown = text_of(visitor.press("Undo"))
        assert ("1 finding is restored." in shown, "Grace Hopper accepted it on" in shown) == (True, True)
        assert statuses(found) == ["dismissed", "accepted", "open"]

    def test_a_stale_finding_says_who_changed_it_and_can_be_decided_again(self, visitor, world, company, found):
        member = world.member(company, person=world.person(name="Grace Hopper"))
        page, (fresh, stale, _) = opened(visitor, company), found
        inbox.change_status(stale, "accepted", stale.version, member.user_id, "it is ours")
        shown = text_of(decide(visitor, page, [fresh, stale], "Resolve", "fixed"))
        assert "1 finding is resolved." in shown
        assert "1 finding was not resolved:" in shown
        assert "Grace Hopper accepted it on March 4, 2026, 05:06 UTC: “it is ours”" in shown
        assert statuses([fresh, stale]) == ["resolved", "accepted"]
        assert "1 finding is resolved." in text_of(visitor.press("Resolve it anyway"))
        decided = inbox.get_item(stale.item_id)
        assert (decided.status, decided.status_reason) == ("resolved", "fixed")

    def test_neither_more_than_100_findings_nor_those_of_another_organization_change(
        self, visitor, world, company, found
    ):
        many = {f"item-{found[0].item_id[:-3]}{number:03}": "x" for number in range(101)}
        reply = visitor.forge(inbox_path(company), {**many, "action": "dismissed"})
        assert (reply.status, "at most 100" in text_of(reply)) == (400, True)
        other = world.finding(world.company(), title="Foreign")
        fields = {"action": "dismissed"} | {f"item-{it.item_id}": it.version for it in (found[0], other)}
        reply = visitor.forge(inbox_path(company), fields)
        assert ("exist anymore" in text_of(reply), "Foreign" in reply.text) == (True, False)
        assert statuses([found[0], other]) == ["dismissed", "open"]
        assert visitor.forge(inbox_path(world.company()), fields).status == 404

    def test_a_member_can_decide_about_fifty_findings_at_once(self, browser, world, company):
        found = [world.finding(company, title=f"Finding {number}") for number in range(50)]
        browser.signed_in(world.member(company).user_id)
        reply = decide(browser, opened(browser, company), found, "Accept")
        assert "50 findings are accepted." in text_of(reply)
