"""The inbox: its list with filters, and decisions on many findings at once, which can be undone."""

import re
from collections.abc import Sequence
from urllib.parse import quote

import pytest

from controlplane.findings import inbox
from controlplane.findings.items import Evidence, InboxItem, RuntimeVendor
from controlplane.platform.table.table import table
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of
from tests.support.browser import Browser, text_of
from tests.support.calls import intercepted
from tests.support.reply import Reply
from tests.support.world import Company, World

path = pages_in("inbox")


def titles(reply: Reply) -> list[str]:
    assert reply.status == 200
    return re.findall(r"<h3><a href=[^>]*>([^<]*)</a></h3>", reply.text)


def opened(visitor: Browser, company: Company) -> Reply:
    return visitor.get(path(company, "?status=all"))


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
        reply = visitor.get(path(company))
        assert sorted(titles(reply)) == ["Finding b", "Finding c"]
        assert "Open 2 Accepted 0 Dismissed 1 Resolved 0 All" in text_of(reply)
        assert titles(visitor.get(path(company, "?status=dismissed"))) == ["Finding a"]
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
            reply = visitor.get(path(company, f"?{query}"))
            assert titles(reply)[:2] == wanted or set(wanted) <= set(titles(reply)), query
            if wanted and "P9" not in query:
                assert titles(reply) == wanted
                assert f"/inbox/inb_{company.organization_id[4:]}" in reply.text
                assert re.search(rf'<a href="[^"]*\?{re.escape(query)}">{wanted[0]}', reply.text), query

    def test_a_search_goes_on_page_by_page_and_finds_each_match_once(self, visitor, world, company, now, monkeypatch):
        monkeypatch.setattr("dashboard.findings.pages.ITEMS_PER_PAGE", 2)
        monkeypatch.setattr("controlplane.findings.lists.MOST_READ", 4)
        for number in range(11):
            now.advance(1)
            world.finding(company, title=f"{'Match' if number % 3 else 'Other'} {number}")
        limits: list[int] = []

        def noting(call, proceed):
            if call.operation == "Query" and "Limit" in call.parameters and "Select" not in call.parameters:
                limits.append(call.parameters["Limit"])
            return proceed()

        with intercepted(table.client, noting):
            pages = [titles(page) for page in pages_of(visitor, path(company, "?text=match"), "Search older findings")]
        found = [title for page in pages for title in page]
        assert found == [f"Match {number}" for number in (10, 8, 7, 5, 4, 2, 1)]
        assert len(pages) >= 4
        # The first and the next pages of items, and a page each of the projects and of the repositories to choose from.
        assert set(limits) == {4 + 1, 4 + 2, 100 + 1, 500 + 1}

    def test_a_cursor_of_other_filters_returns_400_and_text_is_escaped(self, visitor, world, company, monkeypatch):
        monkeypatch.setattr("dashboard.findings.pages.ITEMS_PER_PAGE", 1)
        for _ in range(2):
            world.finding(company, title=HOSTILE, summary=HOSTILE)
        cursor = re.search(r"cursor=([^\"&]+)", visitor.get(path(company)).text)[1]
        assert len(titles(visitor.get(path(company, f"?cursor={cursor}")))) == 1
        assert visitor.get(path(company, f"?cursor={cursor}&priority=P2")).status == 400
        query = "&".join(f"{name}={quote(HOSTILE)}" for name in ("text", "vendor", "repository"))
        for shown in (visitor.get(path(company)), visitor.get(path(company, f"?{query}"))):
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

    def test_an_unusable_form_changes_nothing_and_keeps_the_reason(self, visitor, world, company, found):
        chosen = {f"item-{found[0].item_id}": found[0].version}
        many = {f"item-{found[0].item_id[:-3]}{number:03}": "x" for number in range(51)}
        for fields, message in (
            ({"action": "dismissed", "reason": "because"}, "Select"),
            ({**chosen, "action": "deleted", "reason": "because"}, ""),
            ({**chosen, "action": "dismissed", "reason": "because" * 200}, ""),
            ({**many, "action": "dismissed", "reason": "because"}, "at most 50"),
        ):
            reply = visitor.forge(path(company), fields)
            assert (reply.status, message in text_of(reply)) == (400, True)
            assert visitor.entered("Reason") == fields["reason"]
        assert statuses(found) == ["open"] * 3
        other = world.finding(world.company(), title="Foreign")
        fields = {"action": "dismissed", **chosen, f"item-{other.item_id}": other.version}
        reply = visitor.forge(path(company), fields)
        assert ("exist anymore" in text_of(reply), "Foreign" in reply.text) == (True, False)
        assert statuses([found[0], other]) == ["dismissed", "open"]
        assert visitor.forge(path(world.company()), fields).status == 404

    def test_a_member_can_decide_about_fifty_findings_at_once(self, browser, world, company):
        found = [world.finding(company, title=f"Finding {number}") for number in range(50)]
        browser.signed_in(world.member(company).user_id)
        reply = decide(browser, opened(browser, company), found, "Accept")
        assert "50 findings are accepted." in text_of(reply)
