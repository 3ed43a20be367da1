"""Changes to an item when a source reports the same finding again."""

from typing import Any

import pytest

from controlplane.store import inbox, issue_attempts, publications
from controlplane.store.inbox_items import Discovery, Evidence, GithubIssue, InboxItem, Resolution
from controlplane.store.status_history import Status
from controlplane.store.table import table
from tests.support.calls import before_the_transaction, intercepted
from tests.support.world import Company, World, table_dump

LATER = "2026-03-04T06:00:00.000Z"


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def found(company: Company, world: World) -> Discovery:
    return world.discovery(company, world.connected_repository(company))


def brought_to(status: Status, item: InboxItem) -> InboxItem:
    return inbox.change_status(item, status, item.version, "usr_" + "0" * 16, None)


class TestFirst:
    def test_a_new_finding_is_open(self, found: Discovery):
        item = publications.publish_finding(found)
        assert (item.status, item.source, item.title) == ("open", "code-audit", found.title)
        assert item == inbox.get_item(found.item_id)

    def test_a_finding_settled_elsewhere_is_resolved(self, found: Discovery):
        assert publications.publish_finding(found._replace(settled=True)).status == "resolved"

    def test_a_finding_that_a_later_scan_no_longer_has_is_resolved(self, found: Discovery):
        later = Resolution("scn_later", LATER, "The scan no longer finds it.")
        assert publications.publish_finding(found._replace(resolution=later)).status == "resolved"

    def test_two_organizations_have_two_items(self, found: Discovery, world: World):
        other = found._replace(organization_id=world.company().organization_id)
        assert publications.publish_finding(found).item_id != publications.publish_finding(other).item_id

    def test_texts_that_are_too_long_are_truncated(self, found: Discovery):
        long = found._replace(
            title="t" * 500,
            summary="s" * 5_000,
            description="d" * 9_000,
            references=("https://e.com/" + "x" * 3_000, *(f"https://e.com/{number}" for number in range(50))),
            evidence=(Evidence("e" * 5_000, "https://e.com/" + "x" * 3_000, "a.html", snippet="c" * 9_000),) * 50,
        )
        item = publications.publish_finding(long)
        assert (len(item.title), len(item.summary or ""), len(item.description or "")) == (200, 1_000, 4_000)
        assert item.title.endswith("…")
        assert (len(item.references), len(item.evidence)) == (20, 20)
        assert (item.evidence[0].url, len(item.evidence[0].snippet or "")) == (None, 2_000)

    def test_texts_of_the_greatest_length_are_kept(self, found: Discovery):
        url = "https://e.com/".ljust(2_000, "x")
        evidence = (Evidence("e" * 1_000, url, "a.html", snippet="c" * 2_000),)
        texts = {"title": "t" * 200, "summary": "s" * 1_000, "description": "d" * 4_000, "remediation": "r" * 4_000}
        longest = found._replace(**texts, references=(url,), evidence=evidence)
        item = publications.publish_finding(longest)
        assert {name: getattr(item, name) for name in texts} == texts
        assert (item.references, item.evidence) == ((url,), evidence)


class TestAgain:
    def test_the_same_observation_writes_nothing(self, found: Discovery):
        publications.publish_finding(found)
        before = table_dump()
        publications.publish_finding(found)
        assert table_dump() == before

    @pytest.mark.parametrize("status", ["open", "accepted", "dismissed"])
    def test_a_repeated_finding_keeps_its_status(self, status: Status, found: Discovery, now):
        item = brought_to(status, publications.publish_finding(found))
        now.advance(3_600)
        again = publications.publish_finding(found._replace(observed_at=LATER))
        assert (again.status, again.version, again.updated_at) == (status, item.version, item.updated_at)

    def test_a_resolved_finding_reopens_if_it_is_seen_later(self, found: Discovery, now):
        item = brought_to("resolved", publications.publish_finding(found))
        now.advance(3_600)
        again = publications.publish_finding(found._replace(observed_at=LATER))
        assert again.status == "open"
        assert again.version != item.version
        assert [it.item_id for it in inbox.list_items(found.organization_id, "open", 10, None).items] == [item.item_id]
        assert inbox.list_items(found.organization_id, "resolved", 10, None).items == []

    def test_a_resolved_finding_stays_resolved_if_it_was_seen_earlier_but_reported_later(self, found: Discovery, now):
        item = publications.publish_finding(found)
        now.advance(3_600)
        resolved = brought_to("resolved", item)
        seen_before = found._replace(observed_at="2026-03-04T05:30:00.000Z")
        assert publications.publish_finding(seen_before).status == "resolved"
        assert inbox.get_item(item.item_id).version == resolved.version

    def test_a_settled_finding_stays_resolved(self, found: Discovery, now):
        publications.publish_finding(found._replace(settled=True))
        now.advance(3_600)
        assert publications.publish_finding(found._replace(observed_at=LATER, settled=True)).status == "resolved"

    @pytest.mark.parametrize(
        "change", [{"title": "Another"}, {"summary": None}, {"priority": "P0"}, {"repository_name": "renamed"}]
    )
    def test_a_change_of_listed_fields_moves_the_item_to_the_top(self, change: dict[str, Any], found: Discovery, now):
        item = publications.publish_finding(found)
        now.advance(3_600)
        again = publications.publish_finding(found._replace(observed_at=LATER, **change))
        assert again.version != item.version
        assert again.updated_at == "2026-03-04T06:06:07.000Z"
        assert {name: getattr(again, name) for name in change} == change

    def test_newer_evidence_doesnt_change_the_version(self, found: Discovery, now):
        item = publications.publish_finding(found)
        now.advance(3_600)
        moved = Evidence("src/index.html, line 30", None, "src/index.html", start_line=30, end_line=30, snippet="x")
        again = publications.publish_finding(found._replace(observed_at=LATER, evidence=(moved,)))
        assert (again.version, again.updated_at, again.evidence) == (item.version, item.updated_at, (moved,))

    def test_an_older_observation_that_arrives_late_changes_nothing(self, found: Discovery):
        publications.publish_finding(found._replace(observed_at=LATER, title="Later"))
        before = table_dump()
        assert publications.publish_finding(found).title == "Later"
        assert table_dump() == before

    def test_issue_and_reason_are_kept(self, found: Discovery, now):
        from controlplane.store import issue_attempts
        from controlplane.store.inbox_items import GithubIssue

        item = publications.publish_finding(found)
        issue = GithubIssue(1, "https://x.example/1", "2026-03-04T05:06:07Z")
        issue_attempts.complete(item.item_id, None, issue)
        now.advance(3_600)
        again = publications.publish_finding(found._replace(observed_at=LATER, title="Another"))
        assert (again.github_issue, again.title) == (issue, "Another")

    def test_of_two_first_observations_at_the_same_time_the_later_one_wins(self, found: Discovery):
        with before_the_transaction(table.client, lambda: publications.publish_finding(found)):
            item = publications.publish_finding(found._replace(observed_at=LATER, title="Later"))
        assert item.title == "Later"

    def test_a_concurrent_change_is_not_overwritten(self, found: Discovery, now):
        item = publications.publish_finding(found)
        now.advance(3_600)
        dismissed: list[InboxItem] = []

        def dismiss_before_the_write(call, proceed):
            if call.operation == "UpdateItem" and not dismissed:
                dismissed.append(item)
                dismissed.append(brought_to("dismissed", item))
            return proceed()

        with intercepted(table.client, dismiss_before_the_write):
            again = publications.publish_finding(found._replace(observed_at=LATER, title="Another"))
        assert (again.status, again.title) == ("dismissed", "Another")


class TestPath:
    def test_the_position_follows_a_moved_finding_that_stays_in_its_place(self, world: World, now):
        company = world.company()
        found = world.discovery(company, world.connected_repository(company))
        item = publications.publish_finding(found)
        now.advance(60)
        moved = found.evidence[0]._replace(path="src/moved.html")
        publications.publish_finding(found._replace(observed_at="2026-03-04T05:07:00.000Z", evidence=(moved,)))
        (listed,) = inbox.list_items(company.organization_id, "open", 10, None).items
        assert (listed.path, listed.version, listed.updated_at) == ("src/moved.html", item.version, item.updated_at)

    def test_an_issue_and_a_decision_keep_the_path(self, world: World):
        company = world.company()
        item = world.finding(company, world.connected_repository(company))
        issue = GithubIssue(7, "https://github.com/acme/shop/issues/7", "2026-03-04T05:06:07Z")
        issue_attempts.complete(item.item_id, None, issue, path=item.path)
        current = inbox.get_item(item.item_id)
        inbox.change_status(current, "accepted", current.version, company.owner.user_id, None)
        (listed,) = inbox.list_items(company.organization_id, "accepted", 10, None).items
        assert listed.path == "src/index.html"
