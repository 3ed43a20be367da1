"""Comments on a finding: plain text of members, which mentions others, and is deleted with the finding."""

import pytest

from controlplane.findings import conversations, inbox
from controlplane.organizations import members
from tests.functional.inbox.conftest import Organization
from tests.support.browser import Browser

UNKNOWN = "usr_0000000000000000"


class Thread:
    """A finding on which the owner comments, unless `who` is another caller's token."""

    def __init__(self, acme: Organization) -> None:
        self.acme, self.item = acme, acme.find()
        self.path = f"/v1/inbox/{self.item.item_id}/comments"

    def say(self, text, who=None, **options):
        return self.acme.api.post(self.path, who or self.acme.owner.token, json_body={"text": text}, **options)

    def read(self, who=None):
        return self.acme.get(self.item, who)["comments"]

    def texts(self):
        return [it["text"] for it in self.read()]

    def remove(self, comment_id, who=None):
        return self.acme.api.delete(f"{self.path}/{comment_id}", who or self.acme.owner.token)


@pytest.fixture
def thread(acme):
    return Thread(acme)


def test_they_are_listed_oldest_first_with_their_authors(thread, acme, world, now):
    member = world.member(acme.company)
    first = thread.say("  Is this <b>ours</b>?\nI think so.  ")
    assert (first.status, first.data["comments"][0]["text"]) == (201, "Is this <b>ours</b>?\nI think so.")
    now.advance(1)
    second = thread.say("Yes.", member.token).data["comments"][1]
    assert second["author"] == {"id": member.user_id, "name": member.name, "email": member.email}
    assert second["createdAt"] == "2026-03-04T05:06:08.000Z"
    assert thread.read() == [*first.data["comments"], second]
    current = inbox.get_item(thread.item.item_id)
    assert (current.version, current.updated_at) == (thread.item.version, thread.item.updated_at)


@pytest.mark.parametrize("text", ["", " \n ", "x" * 1_001, None, 1])
def test_a_text_has_1_to_1000_characters(thread, text):
    assert thread.say(text).status == 400


def test_a_finding_has_at_most_50(thread):
    for number in range(50):
        conversations.add_comment(thread.item, str(number), thread.acme.owner.user_id, {})
    reply = thread.say("one more")
    assert (reply.status, reply.error["details"]["reason"]) == (409, "comment_limit")
    assert thread.remove(thread.read()[0]["id"]).status == 200
    assert thread.say("one more").status == 201


def test_authors_and_admins_delete_them(thread, acme, world):
    admin, member = world.member(acme.company, "admin"), world.member(acme.company)
    made = [
        thread.say(str(number), who).data["comments"][-1]["id"]
        for number, who in enumerate([None, member.token, member.token])
    ]
    assert thread.remove(made[0], member.token).code == "FORBIDDEN"
    assert len(thread.remove(made[1], member.token).data["comments"]) == 2
    assert [thread.remove(it, admin.token).status for it in (made[2], made[2], "cmt_0")] == [200, 404, 404]
    assert thread.texts() == ["0"]


def test_a_comment_that_was_deleted_meanwhile_moves_the_others(thread):
    made = [thread.say(str(number)).data["comments"][-1]["id"] for number in range(3)]
    before = inbox.get_item(thread.item.item_id)
    assert thread.remove(made[0]).status == 200
    conversations.delete_comment(before, made[1], thread.acme.owner.user_id, "member")
    assert thread.texts() == ["2"]


def test_members_are_mentioned_by_address_and_stored_without_it(thread, acme, world):
    member, stranger = world.member(acme.company), world.person()
    text = f"@{member.email.upper()} and @{stranger.email}, see @{acme.owner.user_id} or mail a@{member.email}"
    reply = thread.say(text).data["comments"][0]["text"]
    assert reply == f"@{member.name} and @{stranger.email}, see @{acme.owner.name} or mail a@{member.email}"
    (stored,) = inbox.get_item(thread.item.item_id).comments
    assert stored.text.startswith(f"@{member.user_id} and")
    (seen,) = thread.read(world.key(acme.company))
    assert seen["text"] == stored.text
    assert seen["author"] == {"id": acme.owner.user_id, "name": None, "email": None}
    members.remove_member(acme.id, member.user_id)
    assert thread.texts()[0].startswith(f"@{member.user_id} and")


def test_the_first_10_mentions_count(thread, acme, world):
    people = [world.member(acme.company) for _ in range(11)]
    thread.say(" ".join(f"@{it.email}" for it in people))
    (stored,) = inbox.get_item(thread.item.item_id).comments
    assert stored.text.split() == [*(f"@{it.user_id}" for it in people[:10]), f"@{people[10].email}"]


def test_only_members_whom_a_comment_mentioned_when_it_was_written_are_looked_up(thread, acme, world):
    invented = " ".join(f"@usr_{number:016d}" for number in range(45))
    for _ in range(2):
        assert thread.say(f"{invented}").status == 201
    assert conversations.people_of(inbox.get_item(thread.item.item_id).comments) == {acme.owner.user_id}
    assert thread.texts() == [invented] * 2
    page = Browser(acme.api).signed_in(acme.owner.user_id)
    assert invented in page.get(f"/organizations/{acme.company.slug}/inbox/{thread.item.item_id}").text


def test_an_address_tells_nothing_to_those_who_may_not_read_members(thread, acme, world):
    member, stranger = world.member(acme.company), world.person()
    writer = world.token(acme.owner.user_id, ["inbox.read", "inbox.write"])
    text = f"@{member.email} @{stranger.email} @{member.user_id}"
    assert thread.say(text, writer).data["comments"][0]["text"] == text
    assert thread.texts() == [f"@{member.email} @{stranger.email} @{member.name}"]


def test_a_repeated_form_adds_its_text_and_mention_once(thread, acme):
    browser = Browser(acme.api).signed_in(acme.owner.user_id)
    page = browser.get(f"/organizations/{acme.company.slug}/inbox/{thread.item.item_id}")
    longest = "x\n".ljust(1_000 - len(f"@{UNKNOWN} "), "x")
    for _ in range(2):
        fill = {"Add a comment": longest}
        assert browser.press("Comment", on=page, fill=fill, forged={"mention": UNKNOWN}).status == 303
    assert thread.texts() == [f"@{UNKNOWN} {longest}"]


def test_the_author_of_a_former_member_is_not_named(thread, acme, world):
    member = world.member(acme.company)
    thread.say("Bye", member.token)
    members.remove_member(acme.id, member.user_id)
    assert thread.read()[0]["author"] == {"id": member.user_id, "name": None, "email": None}
    page = Browser(acme.api).signed_in(acme.owner.user_id)
    assert "A former member" in page.get(f"/organizations/{acme.company.slug}/inbox/{thread.item.item_id}").text
