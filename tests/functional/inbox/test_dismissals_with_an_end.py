"""A dismissal can have an end, at which the sweep opens the finding again, or a scan that sees it."""

import pytest

from controlplane.findings import inbox, snoozes
from tests.functional.inbox.conftest import Organization, publish
from tests.support.cleanup import swept
from tests.support.told import told
from tests.support.world import World, table_dump

_END = "2026-03-05T00:00:00.000Z"
_BEFORE, _AFTER = "2026-03-04T23:59:59.999Z", "2026-03-05T00:00:00.000Z"


def dismissed(acme: Organization, world: World, **changes):
    found = world.discovery(acme.company, acme.connect())
    item = publish(found, **changes)
    reply = acme.change(item, "dismissed", reason="The page goes in March", until="2026-03-05T01:00:00+01:00")
    assert reply.status == 200
    return found, inbox.get_item(item.item_id)


def test_it_is_shown_until_the_next_change_of_status(acme, world):
    _, item = dismissed(acme, world)
    assert acme.get(item)["dismissedUntil"] == _END
    assert item.history[-1].until == _END
    acme.change(item, "dismissed")
    assert acme.get(item)["dismissedUntil"] is None


def test_a_repeated_request_writes_nothing_and_another_end_is_a_change(acme, world):
    _, item = dismissed(acme, world)
    first = acme.change(item, "dismissed", until="2027-01-01T00:00:00Z")
    assert (first.status, first.data["version"] == item.version) == (200, False)
    assert acme.change(item, "dismissed", until="2027-01-01T00:00:00Z").data == first.data
    assert acme.change(item, "dismissed", until="2028-01-01T00:00:00Z").status == 409


@pytest.mark.parametrize(("observed_at", "status"), [(_BEFORE, "dismissed"), (_AFTER, "open")])
def test_the_next_observation_after_the_end_opens_the_finding(acme, world, observed_at, status):
    found, item = dismissed(acme, world)
    publish(found, observed_at=observed_at)
    current = inbox.get_item(item.item_id)
    assert current.status == status
    assert current.dismissed_until == (_END if status == "dismissed" else None)


def test_without_an_end_and_for_a_settled_finding_it_lasts(acme, world):
    found, item = dismissed(acme, world)
    publish(found, observed_at=_AFTER, settled=True)
    assert inbox.get_item(item.item_id).status == "dismissed"
    acme.move(item, "dismissed")
    publish(found, observed_at="2026-03-06T00:00:00.000Z")
    assert inbox.get_item(item.item_id).status == "dismissed"


@pytest.mark.parametrize(
    "body", [{"status": "accepted", "until": "2027-01-01T00:00:00Z"}, {"status": "dismissed", "until": "2027-01-01"}]
)
def test_returns_400_for_another_status_and_for_a_day_without_a_time(acme, body):
    item = acme.find()
    assert acme.change(item, **body).status == 400
    assert inbox.get_item(item.item_id).status == "open"


def test_each_of_several_dismissals_has_its_own_end(acme):
    items = [acme.find(identity=(name,)) for name in ("a", "b")]
    changes = [{"id": it.item_id, "status": "dismissed", "version": it.version} for it in items]
    reply = acme.change_all({**changes[0], "until": "2027-01-01T00:00:00Z"}, changes[1])
    assert [it["statusCode"] for it in reply.data["results"]] == [200, 200]
    assert [inbox.get_item(it.item_id).dismissed_until for it in items] == ["2027-01-01T00:00:00.000Z", None]


def ends():
    return [it for it in table_dump() if it["pk"]["S"].startswith("SNOOZES#")]


def test_the_sweep_opens_the_finding_at_the_end(acme, world, now):
    _, item = dismissed(acme, world)
    assert swept(snoozes.reopen_due) == 0
    now.advance(70_000)  # half an hour after the end
    assert swept(snoozes.reopen_due) == 1
    current = inbox.get_item(item.item_id)
    assert (current.status, current.history[-1].by, current.dismissed_until) == ("open", None, None)
    assert [it.item_id for it in inbox.list_items(acme.id, "open", 9, None).items] == [item.item_id]
    assert told(acme.company) == [("finding.opened", [item.item_id])]
    assert ends() == []
    assert swept(snoozes.reopen_due) == 0


@pytest.mark.parametrize("status", ["accepted", "dismissed"])
def test_the_sweep_keeps_what_was_decided_since(acme, world, now, status):
    _, item = dismissed(acme, world)
    later = {"until": "2027-01-01T00:00:00Z"} if status == "dismissed" else {}
    acme.change(item, status, **later)
    now.advance(70_000)  # half an hour after the end
    assert swept(snoozes.reopen_due) == 0
    assert inbox.get_item(item.item_id).status == status
    assert len(ends()) == len(later)
