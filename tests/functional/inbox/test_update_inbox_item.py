"""PATCH /v1/inbox/{itemId}."""

from dataclasses import replace
from itertools import product

from controlplane.findings import inbox
from controlplane.platform.core import clock
from tests.functional.inbox.conftest import STATUSES, stored
from tests.support.each import each


@each(("before", "after"), product(STATUSES, STATUSES))
def test_any_status_can_follow_any_other(before, after, acme, now):
    item = acme.move(acme.find(), before)
    now.advance(1)
    reply = acme.change(item, after)
    assert (reply.status, reply.data["status"]) == (200, after)
    assert (reply.data["version"] == item.version) is (before == after)
    assert reply.data["updatedAt"] == (item.updated_at if before == after else clock.timestamp())
    assert inbox.get_item(item.item_id).status == after


def test_nothing_but_the_status_changes_and_the_item_is_returned(acme):
    item = acme.find(acme.connect())
    body = {"title": "Mine", "priority": "P0", "projectId": "prj_x", "githubIssue": {"number": 1}, "id": "inb_x"}
    reply = acme.change(item, "accepted", **body)
    changed = inbox.get_item(item.item_id)
    moved = {name: getattr(changed, name) for name in ("version", "updated_at", "history")}
    assert changed == replace(item, status="accepted", **moved)
    assert acme.listed().data == [reply.data]


def test_the_same_status_and_a_repeated_request_write_nothing(acme):
    item = acme.find()
    before = stored()
    assert acme.change(item, "open", reason="why not").data["version"] == item.version
    assert stored() == before
    first, before = acme.change(item, "resolved", reason="fixed"), stored()
    second = acme.change(item, "resolved", reason="fixed")
    assert (second.status, second.data, stored()) == (200, first.data, before)


def test_the_reason_and_its_author_are_stored_until_the_next_change(acme, world):
    item, member = acme.find(), world.member(acme.company)
    first = acme.change(item, "dismissed", member.token, reason="a test page")
    (kept,) = stored()
    assert (kept["statusReason"], kept["statusBy"]) == ({"S": "a test page"}, {"S": member.user_id})
    acme.change(item, "open", version=first.data["version"], reason=None)
    assert acme.get(item)["statusReason"] is None


def test_a_change_of_nothing_returns_400_and_names_the_status(acme):
    item = acme.find()
    reply = acme.api.patch(f"/v1/inbox/{item.item_id}", acme.owner.token, json_body={"version": item.version})
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", ["status"])
    assert inbox.get_item(item.item_id) == item


def test_a_stale_version_returns_409_with_the_current_one(acme, world):
    item = acme.find()
    assert acme.change(item, "open", version="nonsense").error["details"]["currentVersion"] == item.version
    changed = acme.move(item, "accepted")
    for status, who in (("dismissed", None), ("accepted", world.member(acme.company).token)):
        reply = acme.change(item, status, who)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"currentVersion": changed.version, "currentStatus": "accepted"}
    assert inbox.get_item(item.item_id) == changed


def test_an_old_version_is_never_valid_again(acme):
    item = acme.find()
    versions = [item.version]
    for status in ("accepted", "open", "accepted", "open"):
        versions.append(acme.change(item, status, version=versions[-1]).data["version"])
    assert len(set(versions)) == 5
    assert {acme.change(item, "dismissed", version=stale).status for stale in versions[:-1]} == {409}
