"""POST /v1/inbox/{itemId}/github-issue with an existing issue, and the worker that looks it up."""

import asyncio
from contextlib import closing
from typing import Any

import pytest

from controlplane.queues import issue_messages, messages
from controlplane.rules import issues
from controlplane.store import inbox, issue_attempts, opened_issues
from tests.functional.issue_creation.conftest import QUEUE, Opening
from tests.support.issue_host import HostedIssue
from tests.support.sweeping import swept
from tests.support.world import World


class Test201:
    def test_links_the_issue_by_number_or_address_and_opens_none(self, opening: Opening, world: World):
        url = opening.exists(42)
        reply = opening.link(42)
        assert reply.status == 201
        issue = {"number": 42, "url": url, "createdAt": "2026-03-04T05:06:07Z", "state": "open"}
        assert reply.data["githubIssue"] == issue
        # Again, in all spellings, for the same item and for others: several findings can have one issue.
        for number, spelled in enumerate(("42", "#42", url, url.replace("acme", "ACME") + "/?x=1#issuecomment-1")):
            assert opening.link(spelled).data == reply.data
            opening.item = world.finding(opening.company, opening.repository, identity=(f"{number}",))
            assert opening.link(spelled).data["githubIssue"] == issue
            opening.item = inbox.get_item(opening.item.item_id)
            reply = opening.link(42)
        assert opening.post().data == reply.data
        assert opening.host.count("create") == 0
        assert len(opening_items(opening, 42)) == 5

    def test_a_repository_with_capital_letters_has_issues_too(self, opening: Opening, world: World):
        opening.repository = world.connected_repository(opening.company, owner="Acme", name="WebShop")
        opening.item = world.finding(opening.company, opening.repository)
        url = opening.exists(42)
        assert opening.link(url).data["githubIssue"]["url"] == url

    def test_a_closed_issue_is_linked_as_closed(self, opening: Opening):
        class Closed(HostedIssue):
            def shown(self, repository: str) -> dict[str, Any]:
                return {**super().shown(repository), "state": "closed"}

        opening.exists(43)
        opening.host.issues[f"acme/{opening.repository.name}"].append(Closed(42, "An issue", "", 0, 0))
        assert opening.link(42).data["githubIssue"]["state"] == "closed"

    def test_a_message_that_is_lost_or_duplicate_and_a_host_that_is_down_change_nothing(self, opening: Opening, now):
        opening.exists(42)
        opening.host.script.extend([503] * 3)
        assert opening.link(42).error["details"] == {"status": "creation_pending"}
        opening.sqs.letters.clear()
        now.advance(61)
        assert (swept(issue_messages.resend_overdue), swept(issue_messages.resend_overdue)) == (1, 0)
        now.advance(661)
        assert swept(issue_messages.resend_overdue) == 1
        assert len(opening.sqs.at(QUEUE)) == 2
        opening.work()
        assert opening.post().data["githubIssue"]["number"] == 42


class Test400:
    def test_returns_400_for_what_is_no_issue_of_the_repository(self, opening: Opening):
        url = opening.exists(42)
        wrong = ("", "0", "-1", "forty-two", "https://github.com/acme/other/issues/42", url.replace("issues", "pull"))
        for spelled in (*wrong, url.replace("github.com", "example.com"), "https://[", 0, 4.2, True, ["42"]):
            reply = opening.link(spelled)
            assert reply.status == 400, spelled
            assert [(it["code"], it["path"]) for it in reply.error["details"]] == [("issue_invalid", ["existingIssue"])]
        unknown = opening.api.post(opening.path, opening.company.owner.token, json_body={"issue": 42})
        assert unknown.status == 400
        assert opening.sqs.letters == []


class Test409:
    def test_returns_409_for_a_missing_or_deleted_issue_and_a_pull_request_and_another_can_be_linked(
        self, opening: Opening
    ):
        opening.exists(43, is_pull_request=True)
        for number, reason in ((42, "issue_not_found"), (43, "is_pull_request")):
            details = opening.link(number).error["details"]
            assert details == {"status": "link_refused", "reason": reason}
        opening.host.script.append(410)  # it was deleted
        assert opening.link(45).error["details"] == {"status": "link_refused", "reason": "issue_not_found"}
        opening.exists(44)
        assert opening.link(44).status == 201

    def test_returns_409_for_an_issue_that_was_transferred_to_another_repository(self, opening: Opening):
        class Transferred(HostedIssue):
            def shown(self, repository: str) -> dict[str, Any]:
                return super().shown("acme/elsewhere")

        opening.exists(43)
        opening.host.issues[f"acme/{opening.repository.name}"].append(Transferred(42, "An issue", "", 0, 0))
        assert opening.link(42).error["details"] == {"status": "link_refused", "reason": "issue_not_found"}

    def test_an_issue_of_an_owner_whose_name_ends_alike_is_another_repositorys(self, opening: Opening):
        class Transferred(HostedIssue):
            def shown(self, repository: str) -> dict[str, Any]:
                return super().shown(f"not-{repository}")

        opening.exists(43)
        opening.host.issues[f"acme/{opening.repository.name}"].append(Transferred(42, "An issue", "", 0, 0))
        assert opening.link(42).error["details"] == {"status": "link_refused", "reason": "issue_not_found"}

    def test_returns_409_if_the_code_host_refuses_to_show_the_issue(self, opening: Opening):
        opening.host.script.append(451)
        assert opening.link(42).code == "REPOSITORY_NOT_LINKED"
        assert opening.sqs.letters == []

    def test_the_code_hosts_rate_limit_is_waited_for(self, opening: Opening, now):
        opening.exists(42)
        opening.host.script.append((429, {"Retry-After": "3000"}))
        assert opening.link(42).error["details"] == {"status": "creation_pending"}
        assert opening.sqs.at(QUEUE) == []
        now.advance(3_000)
        assert (swept(messages.resend), swept(issue_messages.resend_overdue)) == (2, 0)
        opening.work()
        assert opening.post().data["githubIssue"]["number"] == 42

    def test_returns_409_if_the_finding_has_another_issue(self, opening: Opening):
        opening.post()
        opening.exists(42)
        assert opening.link(42).error["details"] == {"reason": "has_another_issue", "number": 1}
        assert opening.link(1).status == 201

    def test_a_finding_that_got_an_issue_since_it_was_read_keeps_it(self, opening: Opening):
        read, user_id = opening.item, opening.company.owner.user_id
        opening.post()
        opening.exists(42)
        with pytest.raises(issues.HasAnotherIssue):
            issues.request_issue(read, user_id, 42)
        current = inbox.get_item(read.item_id)
        assert current.github_issue is not None
        with closing(asyncio.new_event_loop()) as loop:
            assert loop.run_until_complete(issues.open_issue(read, user_id)) == current

    def test_returns_409_while_an_issue_is_being_opened_and_the_other_way_around(self, opening: Opening, world: World):
        opening.exists(42)
        opening.idle = True
        user_id = opening.company.owner.user_id
        issue_attempts.begin_attempt(opening.item.item_id, user_id)
        assert opening.link(42).error["details"] == {"status": "creation_pending"}
        opening.item = world.finding(opening.company, opening.repository, identity=("other",))
        issue_attempts.begin_attempt(opening.item.item_id, user_id, 42)
        assert opening.link(43).error["details"] == {"status": "creation_pending"}
        issue_messages.send_message(opening.item.item_id)
        opening.idle = False
        # Who asks for any issue gets the one that is being linked.
        assert opening.post().data["githubIssue"]["number"] == 42
        assert opening.host.count("create") == 0


def opening_items(opening: Opening, number: int) -> list:
    return opened_issues.find_items(opening.repository.repository_id, number)
