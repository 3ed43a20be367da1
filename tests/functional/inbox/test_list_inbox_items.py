"""GET /v1/inbox: its order and its pages."""

import random

from controlplane.findings import inbox, lists
from tests.functional.inbox.conftest import STATUSES, Organization
from tests.support.calls import recorded_calls
from tests.support.each import each


def test_a_page_has_50_items_by_default_and_reads_one_more_than_it_shows(acme):
    for _ in range(51):
        acme.find()
    assert (len(acme.ids()), len(acme.ids("&limit=100"))) == (50, 51)
    for query in ("", "&status=open"):
        with recorded_calls() as calls:
            acme.listed(f"&limit=3{query}")
        assert [it.parameters["Limit"] for it in calls if "IndexName" in it.parameters] == [4]


def test_urgent_items_are_first_in_each_part_that_is_sorted(acme, now, monkeypatch):
    made = {}
    for number, priority in enumerate(("P1", None, "P0", "P3", "P1", "P0", "P2")):
        made[acme.find(priority=priority).item_id] = f"{priority} {number}"
        now.advance(1)
    for most, order in {
        500: ["P0 5", "P0 2", "P1 4", "P1 0", "P2 6", "P3 3", "None 1"],
        3: ["P0 5", "P1 4", "P2 6", "P0 2", "P3 3", "None 1", "P1 0"],
    }.items():
        monkeypatch.setattr(lists, "MOST_SORTED", most)
        for limit in (1, 2, 3, 100):
            assert [made[it] for it in acme.walk(f"&sort=priority&limit={limit}")] == order
            assert [made[it] for it in acme.walk(f"&sort=priority&status=open&priority=P1&limit={limit}")] == [
                "P1 4",
                "P1 0",
            ]
    with recorded_calls() as calls:
        acme.listed("&sort=priority&limit=2")
    assert [it.parameters["Limit"] for it in calls if "IndexName" in it.parameters] == [4]


def test_search_finds_items_that_contain_each_word(acme):
    repository = acme.connect()
    hotjar = acme.find(repository, title="Hotjar is loaded", summary="Before consent").item_id
    clarity = acme.find(repository, title="Clarity is loaded", summary="Before consent").item_id
    for words, found in {
        "HOTJAR before": [hotjar],
        "loaded": [clarity, hotjar],
        "hotjar clarity": [],
        "%20": [clarity, hotjar],
    }.items():
        assert sorted(acme.ids(f"&q={words}")) == sorted(found), words
    for wrong in ("&q=", f"&q={'x' * 201}", "&sort=", "&sort=title"):
        assert acme.listed(wrong).code == "INVALID_PAYLOAD"


@each("seed", range(6))
def test_unchanged_items_appear_exactly_once_while_others_move(seed, api, world, now, monkeypatch):
    draw, acme = random.Random(seed), Organization(api, world)
    made = []
    for _ in range(15):
        made.append(acme.find(priority=draw.choice(["P0", "P1", None])))
        now.advance(draw.choice([0, 0.5]))
    still = {item.item_id for item in made}

    def between() -> None:
        now.advance(draw.choice([0, 0.25]))
        for item in draw.sample(made, draw.randint(0, 3)):
            current = inbox.get_item(item.item_id).status
            acme.move(item, draw.choice([status for status in STATUSES if status != current]))
            still.discard(item.item_id)
        if draw.random() < 0.5:
            acme.find()

    monkeypatch.setattr(lists, "MOST_SORTED", draw.choice([4, 50]))
    query = f"{draw.choice(['', '&status=open'])}{draw.choice(['', '&sort=priority'])}"
    seen = acme.walk(f"&limit={draw.randint(1, 6)}{query}", between)
    assert {item_id: seen.count(item_id) for item_id in still} == dict.fromkeys(still, 1)
