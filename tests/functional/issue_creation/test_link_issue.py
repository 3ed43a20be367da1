"""POST /v1/inbox/{itemId}/github-issue with an existing issue, and the worker that looks it up."""

import asyncio
from contextlib import closing
from typing import Any

import pytest

from controlplane.findings import inbox, issue_attempts, issues
from controlplane.platform.queues import messages
from tests.functional.issue_creation.conftest import PENDING, QUEUE
from tests.support.cleanup import swept
from tests.support.issue_host import HostedIssue

NOT_FOUND = {"status": "link_refused", "reason": "issue_not_found"}


class Closed(HostedIssue):
    def shown(self, repository: str) -> dict[str, Any]:
        return {**super().shown(repository), "state": "closed"}


class Transferred(HostedIssue):
    def shown(self, repository: str) -> dict[str, Any]:
        return super().shown("acme/elsewhere")


class OfASimilarOwner(HostedIssue):
    def shown(self, repository: str) -> dict[str, Any]:
        return super().shown(f"not-{repository}")


def test_links_the_issue_by_number_or_address_and_opens_none(opening):
    url = opening.exists(42)
    reply = opening.link(42)
    issue = {"number": 42, "url": url, "createdAt": "2026-03-04T05:06:07Z", "state": "open"}
    assert (reply.status, reply.data["githubIssue"]) == (201, issue)
    # Again, in all spellings, for the same item and for others: several findings can have one issue.
    for spelled in ("42", "#42", url, url.replace("acme", "ACME") + "/?x=1#issuecomment-1"):
        assert opening.link(spelled).data == reply.data
        opening.finding()
        reply = opening.link(spelled)
        assert reply.data["githubIssue"] == issue
        reply = opening.link(42)
    assert opening.post().data == reply.data
    assert opening.host.count("create") == 0
    assert len(issue_attempts.find_items(opening.repository.repository_id, 42)) == 5


def test_a_closed_issue_of_a_repository_with_capital_letters_is_linked_as_closed(opening, world):
    opening.repository = world.connected_repository(opening.company, owner="Acme", name="WebShop")
    opening.finding()
    url = opening.exists(42, Closed)
    issue = opening.link(url).data["githubIssue"]
    assert (issue["url"], issue["state"]) == (url, "closed")


def test_a_message_that_is_lost_or_duplicate_and_a_host_that_is_down_change_nothing(opening, now):
    opening.exists(42)
    opening.host.script.extend([503] * 3)
    assert opening.link(42).error["details"] == PENDING
    opening.sqs.letters.clear()
    for pause, sent in ((61, 1), (0, 0), (661, 1)):
        now.advance(pause)
        assert swept(issue_attempts.resend_overdue) == sent
    assert len(opening.sqs.at(QUEUE)) == 2
    opening.work()
    assert opening.post().data["githubIssue"]["number"] == 42


def test_returns_400_for_what_is_no_issue_of_the_repository(opening):
    url = opening.exists(42)
    wrong = ("", "0", "-1", "forty-two", "https://github.com/acme/other/issues/42", url.replace("issues", "pull"))
    for spelled in (*wrong, url.replace("github.com", "example.com"), "https://[", 0, 4.2, True, ["42"]):
        reply = opening.link(spelled)
        assert reply.status == 400, spelled
        assert [(it["code"], it["path"]) for it in reply.error["details"]] == [("issue_invalid", ["existingIssue"])]
    assert opening.sqs.letters == []


def test_returns_409_for_a_missing_deleted_or_transferred_issue_and_a_pull_request_and_another_can_be_linked(opening):
    opening.exists(43, is_pull_request=True)
    opening.exists(44, Transferred)
    opening.exists(46, OfASimilarOwner)
    for number in (42, 44, 46):
        assert opening.link(number).error["details"] == NOT_FOUND
    assert opening.link(43).error["details"] == {"status": "link_refused", "reason": "is_pull_request"}
    opening.host.script.append(410)  # it was deleted
    assert opening.link(45).error["details"] == NOT_FOUND
    opening.exists(47)
    assert opening.link(47).status == 201


def test_returns_409_if_the_code_host_refuses_to_show_the_issue(opening):
    opening.host.script.append(451)
    assert opening.link(42).code == "REPOSITORY_NOT_LINKED"
    assert opening.sqs.letters == []


def test_the_code_hosts_rate_limit_is_waited_for(opening, now):
    opening.exists(42)
    opening.host.script.append((429, {"Retry-After": "3000"}))
    assert opening.link(42).error["details"] == PENDING
    assert opening.sqs.at(QUEUE) == []
    now.advance(3_000)
    assert (swept(messages.resend), swept(issue_attempts.resend_overdue)) == (2, 0)
    opening.work()
    assert opening.post().data["githubIssue"]["number"] == 42


def test_returns_409_if_the_finding_has_another_issue_also_one_that_it_got_since_it_was_read(opening):
    read, user_id = opening.item, opening.company.owner.user_id
    opening.post()
    opening.exists(42)
    assert opening.link(42).error["details"] == {"reason": "has_another_issue", "number": 1}
    assert opening.link(1).status == 201
    with pytest.raises(issues.HasAnotherIssue):
        issues.request_issue(read, user_id, 42)
    current = inbox.get_item(read.item_id)
    assert current.github_issue is not None
    with closing(asyncio.new_event_loop()) as loop:
        assert loop.run_until_complete(issues.open_issue(read, user_id)) == current


def test_returns_409_while_an_issue_is_being_opened_and_the_other_way_around(opening):
    opening.exists(42)
    opening.idle = True
    user_id = opening.company.owner.user_id
    for begun, linked in ((None, 42), (42, 43)):
        opening.finding()
        issue_attempts.begin_attempt(opening.item.item_id, user_id, begun)
        assert opening.link(linked).error["details"] == PENDING
    issue_attempts.send_message(opening.item.item_id)
    opening.idle = False
    # Who asks for any issue gets the one that is being linked.
    assert opening.post().data["githubIssue"]["number"] == 42
    assert opening.host.count("create") == 0
