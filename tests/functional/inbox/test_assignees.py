"""A finding is assigned to a member or to no one. A person who leaves is no longer an assignee."""

import pytest

from controlplane.findings import inbox, issue_attempts
from controlplane.findings.items import GithubIssue
from controlplane.organizations import members
from tests.functional.inbox.conftest import Organization, publish
from tests.support.browser import Browser
from tests.support.calls import recorded_calls
from tests.support.world import Person

UNKNOWN = "usr_0000000000000000"


def assign(acme: Organization, item, user_id, who=None, **body):
    current = inbox.get_item(item.item_id)
    sent = {"assigneeId": user_id, "version": current.version, **body}
    return acme.api.patch(f"/v1/inbox/{item.item_id}", who or acme.owner.token, json_body=sent)


def shown(person: Person, name=None):
    return {"id": person.user_id, "name": name or person.name, "email": person.email}


def test_it_is_shown_and_kept_by_every_later_change(acme, world, now):
    found = world.discovery(acme.company, acme.connect())
    item, member = publish(found), world.member(acme.company)
    reply = assign(acme, item, member.user_id)
    assert (reply.status, reply.data["assignee"], reply.data["status"]) == (200, shown(member), "open")
    assert reply.data["version"] != item.version
    now.advance(60)
    acme.move(item, "accepted")
    issue_attempts.complete(item.item_id, None, GithubIssue(7, "https://git.test/7", "2026-03-04T05:06:07Z"))
    for title in ("Another", "Another", "A third"):
        now.advance(60)
        publish(found, observed_at=f"2026-03-04T06:00:0{len(title)}.000Z", title=title)
        (listed,) = acme.listed().data
        assert listed["assignee"] == acme.get(item)["assignee"] == shown(member)
    assert inbox.list_items(acme.id, None, 1, None).items[0].path == "src/index.html"
    assert assign(acme, item, None).data["assignee"] is None
    assert acme.listed().data[0]["assignee"] is None


def test_a_repetition_changes_nothing_and_one_request_can_change_the_status_too(acme):
    item = acme.find()
    first = assign(acme, item, "me", status="accepted", reason="real")
    assert (first.data["status"], first.data["assignee"]["id"]) == ("accepted", acme.owner.user_id)
    body = {"assigneeId": "me", "status": "accepted", "reason": "real", "version": item.version}
    assert acme.api.patch(f"/v1/inbox/{item.item_id}", acme.owner.token, json_body=body).data == first.data
    assert assign(acme, item, "me").data == first.data
    assert acme.change(item, "open").status == 409
    assert [it.status for it in inbox.get_item(item.item_id).history] == ["open", "accepted"]


def test_several_items_can_be_assigned_at_once(acme):
    items = [acme.find(identity=(name,)) for name in ("a", "b", "c")]
    changes = [{"id": it.item_id, "assigneeId": "me", "version": it.version} for it in items]
    changes[1]["version"], changes[2]["assigneeId"] = "stale", UNKNOWN
    results = acme.change_all(*changes).data["results"]
    assert [it["statusCode"] for it in results] == [200, 409, 409]
    assert results[0]["item"]["assignee"] == shown(acme.owner)


@pytest.mark.parametrize("body", [{}, {"status": None}, {"assigneeId": ""}, {"assigneeId": 1}])
def test_a_change_needs_a_status_or_an_assignee(acme, body):
    item = acme.find()
    sent = {"version": item.version, **body}
    assert acme.api.patch(f"/v1/inbox/{item.item_id}", acme.owner.token, json_body=sent).status == 400


def test_only_members_can_be_assignees(acme, world):
    item = acme.find()
    for user_id in (UNKNOWN, world.person().user_id, "no one"):
        reply = assign(acme, item, user_id)
        assert (reply.status, reply.error["details"]["reason"]) == (409, "not_a_member")
    with pytest.raises(inbox.NotAssignable):
        inbox.change_item(item, inbox.ItemChange(assignee="x" * 60_000), item.version, acme.owner.user_id)
    assert inbox.get_item(item.item_id).version == item.version


def test_a_person_who_leaves_is_no_longer_the_assignee_even_after_returning(acme, world, now):
    item, member = acme.find(), world.member(acme.company)
    assign(acme, item, member.user_id)
    assert acme.ids(f"&assignee={member.user_id}") == [item.item_id]
    members.remove_member(acme.id, member.user_id)
    now.advance(60)
    for is_back in (False, True):
        if is_back:
            world.member(acme.company, person=member)
        assert acme.get(item)["assignee"] is acme.listed().data[0]["assignee"] is None
        assert acme.ids(f"&assignee={member.user_id}") == []
        assert acme.ids("&assignee=none") == [item.item_id]
        for assignee, number in ((member.user_id, 0), ("none", 1)):
            page = Browser(acme.api).signed_in(acme.owner.user_id)
            shown_page = page.get(f"/organizations/{acme.company.slug}/inbox?assignee={assignee}").text
            assert f"{item.priority} ({number})" in shown_page
    assert assign(acme, item, member.user_id).data["assignee"] == shown(member)


def test_lists_can_be_limited_to_an_assignee(acme, world):
    member = world.member(acme.company)
    mine, theirs, nobodys = (acme.find(identity=(name,)).item_id for name in ("a", "b", "c"))
    for item_id, user_id in ((mine, acme.owner.user_id), (theirs, member.user_id)):
        assign(acme, inbox.get_item(item_id), user_id)
    assert [acme.ids(f"&assignee={it}") for it in ("me", member.user_id, "none")] == [[mine], [theirs], [nobodys]]
    assert [it["id"] for it in acme.listed("&assignee=me", member.token).data] == [theirs]
    key = world.key(acme.company)
    assert acme.listed("&assignee=me", key).status == 400
    with recorded_calls() as calls:
        (seen,) = acme.listed(f"&assignee={member.user_id}", key).data
    assert len([it for it in calls if "MEMBER#" in str(it.parameters.get("RequestItems"))]) == 1
    # An API key lacks the scope `members.read`.
    assert seen["assignee"] == {"id": member.user_id, "name": None, "email": None}
