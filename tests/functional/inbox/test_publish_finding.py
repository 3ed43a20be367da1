"""Changes to an item when a source reports the same finding again."""

import pytest

from controlplane.findings import inbox, issue_attempts
from controlplane.findings.discoveries import Resolution
from controlplane.findings.items import Evidence, GithubIssue
from tests.functional.inbox.conftest import LATER, Organization, publish
from tests.support.each import each
from tests.support.world import table_dump

ISSUE = GithubIssue(7, "https://github.com/acme/shop/issues/7", "2026-03-04T05:06:07Z")


@pytest.fixture
def found(acme):
    return acme.world.discovery(acme.company, acme.connect())


def only(acme, status):
    """Returns the only item that the organization has in the status."""
    (item,) = inbox.list_items(acme.id, status, 10, None).items
    return item


@each(
    ("changes", "status"),
    [
        ({}, "open"),
        ({"settled": True}, "resolved"),
        ({"resolution": Resolution("scn_later", LATER, "The scan no longer finds it.")}, "resolved"),
    ],
)
def test_a_new_finding_is_open_unless_settled_or_gone(changes, status, api, world):
    acme = Organization(api, world)
    found = world.discovery(acme.company, acme.connect())
    item = publish(found, **changes)
    assert (item.status, item.source, item.title) == (status, "code-audit", found.title)
    assert item == inbox.get_item(found.item_id)


def test_two_organizations_have_two_items(acme, found, api, world):
    assert publish(found).item_id != publish(found, organization_id=Organization(api, world).id).item_id


def test_texts_that_are_too_long_are_truncated(found):
    url = "https://e.com/" + "x" * 3_000
    item = publish(
        found,
        title="t" * 500,
        summary="s" * 5_000,
        description="d" * 9_000,
        references=(url, *(f"https://e.com/{number}" for number in range(50))),
        evidence=(Evidence("e" * 5_000, url, "a.html", snippet="c" * 9_000),) * 50,
    )
    assert (len(item.title), len(item.summary), len(item.description)) == (200, 1_000, 4_000)
    assert item.title == "t" * 199 + "…"
    assert (len(item.references), len(item.evidence)) == (20, 20)
    assert (item.evidence[0].url, len(item.evidence[0].snippet)) == (None, 2_000)


def test_texts_of_the_greatest_length_are_kept(found):
    url = "https://e.com/".ljust(2_000, "x")
    texts = {"title": "t" * 200, "summary": "s" * 1_000, "description": "d" * 4_000, "remediation": "r" * 4_000}
    evidence = (Evidence("e" * 1_000, url, "a.html", snippet="c" * 2_000),)
    item = publish(found, **texts, references=(url,), evidence=evidence)
    assert {name: getattr(item, name) for name in texts} == texts
    assert (item.references, item.evidence) == ((url,), evidence)


def test_the_same_and_an_older_observation_write_nothing(found):
    publish(found, observed_at=LATER, title="Later")
    before = table_dump()
    assert publish(found, observed_at=LATER, title="Later").title == "Later"
    assert publish(found).title == "Later"
    assert table_dump() == before


# The status that a person sets, what the source reports an hour later, and the status after that.
@pytest.mark.parametrize(
    "case",
    [
        ("open", {}, "open"),
        ("accepted", {}, "accepted"),
        ("dismissed", {}, "dismissed"),
        ("resolved", {}, "open"),
        ("resolved", {"observed_at": "2026-03-04T05:06:07.001Z"}, "resolved"),
        ("resolved", {"settled": True}, "resolved"),
    ],
)
def test_only_a_resolved_finding_that_is_seen_later_reopens(case, acme, found, now):
    status, changes, after = case
    publish(found)
    now.advance(1)
    item = acme.move(found, status)
    now.advance(3_600)
    again = publish(found, **{"observed_at": LATER, **changes})
    assert again.status == only(acme, after).status == after
    assert (again.version != item.version) is (again.updated_at != item.updated_at) is (status != after)


@pytest.mark.parametrize(
    "changes", [{"title": "Another"}, {"summary": None}, {"priority": "P0"}, {"repository_name": "renamed"}]
)
def test_a_change_of_listed_fields_moves_the_item_to_the_top(changes, acme, found, now):
    item = publish(found)
    now.advance(3_600)
    again = publish(found, observed_at=LATER, **changes)
    assert again.version != item.version
    assert (again.updated_at > item.updated_at, only(acme, None).item_id) == (True, item.item_id)
    assert {name: getattr(again, name) for name in changes} == changes


def test_newer_evidence_doesnt_change_the_version_or_the_place_in_lists(acme, found, now):
    item = publish(found)
    now.advance(3_600)
    moved = (Evidence("src/moved.html, line 30", None, "src/moved.html", start_line=30, end_line=30, snippet="x"),)
    again = publish(found, observed_at=LATER, evidence=moved)
    assert (again.version, again.updated_at, again.evidence) == (item.version, item.updated_at, moved)
    listed = only(acme, "open")
    assert (listed.path, listed.version, listed.updated_at) == ("src/moved.html", item.version, item.updated_at)


def test_the_issue_and_the_path_are_kept(acme, found, now):
    item = publish(found)
    issue_attempts.complete(item.item_id, None, ISSUE)
    acme.move(item, "accepted")
    assert only(acme, "accepted").path == "src/index.html"
    now.advance(3_600)
    again = publish(found, observed_at=LATER, title="Another")
    assert (again.github_issue, again.title) == (ISSUE, "Another")
