"""The filters of GET /v1/inbox."""

import random
from itertools import product
from typing import Any
from urllib.parse import quote

from controlplane.findings import inbox
from controlplane.findings import lists as inbox_lists
from controlplane.findings.items import InboxItem, RuntimeVendor
from controlplane.platform.table.table import table
from tests.functional.inbox.conftest import STATUSES, Organization, cursor_of
from tests.functional.projects.builders import make_project
from tests.support.calls import recorded_calls


def fill(acme: Organization, now) -> list[InboxItem]:
    """Creates findings of all sources, projects, and repositories in turn. Returns them, oldest first."""
    repositories = [acme.connect() for _ in range(2)]
    project_id = make_project(acme.company).project_id
    vendors = [RuntimeVendor(project_id, name, "Vendor", "vendor.example") for name in ("segment", "hotjar")]
    made = []
    for number, priority in product(range(6), ("P0", "P1", None)):
        now.advance(1)
        if number < 3:
            made.append(acme.find(repositories[number % 2], priority=priority))
        elif number < 5:
            vendor = vendors[number % 2]
            made.append(acme.find(priority=priority, source="runtime", project_id=project_id, runtime_vendor=vendor))
        else:
            made.append(acme.find(priority=priority))
    for number, item in enumerate(made[::4]):
        now.advance(1)
        acme.move(item, STATUSES[1 + number % 3])
    return [inbox.get_item(item.item_id) for item in made]


def selected(items: list[InboxItem], filters: dict[str, str]) -> list[str]:
    """Returns the IDs of the items that the filters select, most recently updated first: the model of the list."""

    def value(item: InboxItem, name: str) -> Any:
        if name == "vendorId":
            return item.runtime_vendor.vendor_id if item.runtime_vendor else None
        names = {"projectId": "project_id", "repositoryId": "repository_id"}
        return getattr(item, names.get(name, name))

    found = [
        item
        for item in items
        if all(item.updated_at >= it if name == "since" else value(item, name) == it for name, it in filters.items())
    ]
    return [item.item_id for item in sorted(found, key=lambda item: item.updated_at, reverse=True)]


def test_any_combination_selects_what_it_says(acme, now, monkeypatch):
    items = fill(acme, now)
    code, runtime = items[0], items[9]
    choices = {
        "status": STATUSES,
        "priority": ["P0", "P1"],
        "source": ["code-audit", "runtime", "advisory"],
        "projectId": [code.project_id, runtime.project_id, "prj_unknown"],
        "repositoryId": [code.repository_id, "rep_unknown"],
        "vendorId": ["segment", "hotjar", "unknown"],
        "since": [items[6].updated_at, items[-1].updated_at, "2999-01-01T00:00:00.000Z"],
    }
    draw, hits = random.Random(7), 0
    monkeypatch.setattr(inbox_lists, "MOST_READ", 5)
    combinations = [{}, *({name: value} for name, values in choices.items() for value in values)]
    for _ in range(25):
        names = draw.sample([*choices], draw.randint(2, 4))
        combinations.append({name: draw.choice(choices[name]) for name in names})
    for filters in combinations:
        wanted = selected(items, filters)
        hits += bool(wanted)
        query = "".join(f"&{name}={quote(value)}" for name, value in filters.items())
        assert acme.walk(f"&limit={draw.choice([1, 3, 100])}{query}") == wanted, filters
    assert hits > 15


def test_a_page_with_filters_reads_a_bounded_part_and_can_be_empty(acme, now, monkeypatch):
    monkeypatch.setattr(inbox_lists, "MOST_READ", 4)
    wanted = acme.find(priority="P0")
    for _ in range(5):
        now.advance(1)
        acme.find()
    with recorded_calls() as calls:
        first = acme.listed("&priority=P0")
    assert [it.parameters["Limit"] for it in calls if it.operation == "Query"] == [5]
    assert (first.data, first.body["pagination"]["hasMore"]) == ([], True)
    assert acme.ids(f"&priority=P0{cursor_of(first)}") == [wanted.item_id]


def test_a_repository_filter_reads_only_findings_that_match_the_other_filters(acme):
    repository = acme.connect()
    wanted = acme.find(repository, priority="P0")
    acme.find(repository, priority="P1"), acme.find(priority="P0")
    with recorded_calls() as calls:
        assert acme.ids(f"&repositoryId={repository.repository_id}&priority=P0") == [wanted.item_id]
    (read,) = (it for it in calls if "INBOX#" in str(it.parameters.get("RequestItems")))
    assert len(read.parameters["RequestItems"][table.name]["Keys"]) == 1


def test_a_repository_is_found_under_its_former_name(acme):
    repository = acme.connect()
    item = acme.find(repository, repository_name="former-name")
    acme.find(acme.connect(owner="other"), repository_name=repository.name)
    assert acme.ids(f"&repositoryId={repository.repository_id}") == [item.item_id]


def test_a_vendor_that_is_too_long_for_lists_is_found(acme):
    project_id = make_project(acme.company).project_id
    vendor = RuntimeVendor(project_id, "segment", "Segment" * 20, ".".join(["x" * 62] * 16))
    item = acme.find(source="runtime", project_id=project_id, runtime_vendor=vendor)
    assert (acme.ids("&vendorId=segment"), acme.ids("&vendorId=hotjar")) == ([item.item_id], [])


def test_since_includes_its_own_millisecond_and_understands_time_zones(acme):
    acme.find()  # at 05:06:07.000Z
    for since, count in {
        "2026-03-04T05:06:07Z": 1,
        "2026-03-04T06:06:07.000+01:00": 1,
        "2026-03-04T05:06:06.999999Z": 1,
        "2026-03-04T05:06:07.000001Z": 0,
        "2026-03-04T05:06:07.001Z": 0,
    }.items():
        for status in ("", "&status=open"):
            assert len(acme.ids(f"&since={quote(since)}{status}")) == count, since


def test_ids_of_another_organization_select_nothing(acme, api, world):
    theirs = Organization(api, world)
    repository = theirs.connect()
    item = theirs.find(repository)
    assert acme.ids(f"&repositoryId={repository.repository_id}") == []
    assert acme.ids(f"&projectId={item.project_id}") == []
