"""POST /v1/inbox/{itemId}/github-issue, with the worker behind it."""

from dataclasses import replace

import pytest

from controlplane.core.settings import settings
from controlplane.queues import issue_messages, messages
from controlplane.rules import issues
from controlplane.store import inbox, issue_attempts, keys, publications, repositories, waiting
from controlplane.store.table import Delete, table
from tests.functional.issue_creation.conftest import QUEUE, Opening
from tests.support.sweeping import swept
from tests.support.table import PREPARED
from tests.support.world import World, table_dump


def attempts() -> list[dict]:
    return [item for item in table_dump() if item["pk"]["S"] == "ISSUEATTEMPTS"]


class Test201:
    def test_returns_the_item_with_its_issue(self, opening: Opening, now):
        reply = opening.post()
        assert reply.status == 201
        assert reply.data["id"] == opening.item.item_id
        assert reply.data["githubIssue"] == {
            "number": 1,
            "url": f"https://github.com/acme/{opening.repository.name}/issues/1",
            "createdAt": "2026-03-04T05:06:07Z",
            "state": "open",
        }
        assert len(opening.issues) == 1
        assert attempts() == []

    def test_the_item_shows_the_issue_everywhere_and_moves_to_the_top(self, opening: Opening, world: World):
        world.finding(opening.company)
        data = opening.post().data
        token = opening.company.owner.token
        assert opening.api.get("/v1/inbox", token).data[0] == data
        assert opening.api.get("/v1/inbox?status=open", token).data[0] == data
        assert opening.api.get(f"/v1/inbox/{opening.item.item_id}", token).data["githubIssue"] == data["githubIssue"]
        assert data["version"] != opening.item.version

    def test_an_existing_issue_is_returned_without_calling_the_code_host(self, opening: Opening):
        first = opening.post()
        opening.host.requests.clear()
        before = len(opening.pauses)
        second = opening.post()
        assert (second.status, second.data) == (201, first.data)
        assert opening.host.requests == []
        assert len(opening.pauses) == before
        assert opening.sqs.letters == []

    def test_an_existing_issue_is_returned_even_if_the_repository_is_gone(self, opening: Opening):
        first = opening.post()
        repositories.unlink_project(opening.repository.repository_id, opening.repository.links[0].project_id)
        assert opening.post().data == first.data

    def test_an_admin_can_open_an_issue(self, opening: Opening, world: World):
        assert opening.post(world.member(opening.company, "admin").token).status == 201

    def test_works_in_any_status_of_the_item(self, opening: Opening):
        item = opening.item
        inbox.change_status(item, "dismissed", item.version, opening.company.owner.user_id, None)
        reply = opening.post()
        assert (reply.status, reply.data["status"]) == (201, "dismissed")

    def test_an_issue_whose_response_was_lost_is_found_by_its_marker(self, opening: Opening):
        opening.host.script.append("lost")
        assert opening.post().error["details"] == {"status": "creation_pending"}
        opening.work_until_quiet()
        assert opening.post().data["githubIssue"]["number"] == 1
        assert (len(opening.issues), opening.host.count("create")) == (1, 1)

    def test_a_lagging_list_is_read_again(self, opening: Opening):
        opening.host.lag_seconds = 400
        opening.host.script.append("lost")
        opening.post()
        opening.work_until_quiet()
        assert opening.post().status == 201
        assert (len(opening.issues), opening.host.count("create")) == (1, 1)
        assert opening.sqs.letters == []

    def test_a_request_that_never_reached_the_code_host_is_retried(self, opening: Opening):
        opening.host.script.append("unreached")
        assert opening.post().status == 409
        opening.work_until_quiet()
        assert opening.post().status == 201
        assert (len(opening.issues), opening.host.count("create")) == (1, 2)

    def test_the_code_hosts_rate_limit_is_waited_for_without_requests_or_receives(self, opening: Opening, now):
        other = replace(opening, item=opening.world.finding(opening.company, opening.repository, identity=("other",)))
        now.advance(61)
        swept(messages.resend)  # the events of the findings
        opening.sqs.letters.clear()
        opening.host.script.append((429, {"Retry-After": "3000"}))
        assert opening.post().error["details"] == {"status": "creation_pending"}
        sent = len(opening.host.requests)
        assert opening.sqs.letters == []
        for _ in range(49):
            now.advance(60)
            assert (swept(messages.resend), swept(issue_messages.resend_overdue)) == (0, 0)
        # Another finding's issue waits, too.
        other.post()
        assert len(opening.host.requests) == sent
        now.advance(120)
        assert (swept(messages.resend), swept(issue_messages.resend_overdue)) == (2, 0)
        opening.work()
        assert opening.post().status == other.post().status == 201
        assert len(opening.issues) == 2

    def test_a_request_succeeds_after_one_that_crashed_before_sending_its_message(self, opening: Opening, now):
        issue_attempts.begin_attempt(opening.item.item_id, opening.company.owner.user_id)
        now.advance(61)
        assert opening.post().status == 201

    def test_the_sweep_sends_the_message_if_the_queue_is_unavailable(self, opening: Opening, now):
        from controlplane.queues import issue_messages

        opening.sqs.broken = True
        assert opening.post().error["details"] == {"status": "creation_pending"}
        opening.sqs.broken = False
        assert swept(issue_messages.resend_overdue) == 0
        now.advance(60)
        assert swept(issue_messages.resend_overdue) == 1
        opening.work_until_quiet()
        assert opening.post().status == 201

    def test_after_a_refusal_the_next_request_tries_again(self, opening: Opening):
        opening.host.script.append(410)
        assert opening.post().status == 409
        assert opening.post().status == 201
        assert len(opening.issues) == 1


class Test403:
    def test_returns_403_for_a_member_and_writes_nothing(self, opening: Opening, world: World):
        token = world.member(opening.company).token
        assert opening.post(token).code == "FORBIDDEN"
        assert attempts() == opening.sqs.letters == []

    def test_returns_403_for_a_key_without_the_scope(self, opening: Opening, world: World):
        reply = opening.post(world.key(opening.company))
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "inbox.write"}


class Test404:
    def test_another_organizations_item_looks_like_an_unknown_one(self, opening: Opening, world: World):
        assert opening.post(world.company().owner.token).code == "NOT_FOUND"
        assert attempts() == []


class Test409:
    def test_returns_409_if_the_outcome_is_unknown_after_eight_seconds(self, opening: Opening):
        opening.idle = True
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"status": "creation_pending"}
        assert int(reply.headers["retry-after"]) > 0
        assert sum(opening.pauses) == pytest.approx(8)

    def test_a_repeated_request_while_pending_sends_no_second_message(self, opening: Opening):
        opening.idle = True
        for _ in range(3):
            assert opening.post().error["details"] == {"status": "creation_pending"}
        assert len(opening.sqs.at(QUEUE)) == 1
        assert len(attempts()) == 1

    def test_a_request_long_after_is_answered_at_once(self, opening: Opening, now):
        opening.idle = True
        opening.post()
        now.advance(31)
        opening.pauses.clear()
        assert opening.post().error["details"] == {"status": "creation_pending"}
        assert sum(opening.pauses) == 0

    def test_while_too_many_requests_wait_it_responds_at_once(
        self, opening: Opening, monkeypatch: pytest.MonkeyPatch, now
    ):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 20)
        taken = [waiting.acquire_slot(8) for _ in range(2)]
        assert None not in taken
        opening.idle = True
        reply = opening.post()
        assert reply.error["details"] == {"status": "creation_pending"}
        assert sum(opening.pauses) == 0
        # The worker still gets its message.
        opening.work_until_quiet()
        assert opening.post().status == 201

    def test_a_slot_is_held_while_waiting_and_released_afterward(
        self, opening: Opening, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 10)
        opening.idle = True
        opening.post()
        assert sum(opening.pauses) == pytest.approx(8)
        assert waiting.acquire_slot(8) is not None

    @pytest.mark.parametrize("source", ["advisory", "runtime"])
    def test_returns_409_unless_the_item_is_a_code_finding(self, source: str, opening: Opening, world: World):
        opening.item = world.finding(opening.company, source=source)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "not_a_code_finding", "source": source}
        assert attempts() == opening.sqs.letters == []

    def test_returns_409_for_a_repository_without_a_linked_project(self, opening: Opening):
        repositories.unlink_project(opening.repository.repository_id, opening.repository.links[0].project_id)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "REPOSITORY_NOT_LINKED")
        assert reply.error["details"] == {"repositoryId": opening.repository.repository_id}
        assert attempts() == opening.sqs.letters == []

    def test_returns_409_if_the_repository_is_disconnected_meanwhile(self, opening: Opening):
        opening.idle = True
        assert opening.post().error["details"] == {"status": "creation_pending"}
        table.delete(Delete(keys.repository(*opening.repository.repository_id.location)), PREPARED)
        opening.work()
        with pytest.raises(issues.RepositoryNotLinked):
            issues.find_issue(opening.item.item_id)

    def test_returns_409_for_a_disconnected_repository(self, opening: Opening, world: World):
        unknown = opening.repository.repository_id[:-18] + "0" * 18
        found = world.discovery(opening.company, opening.repository, repository_id=unknown)
        opening.item = publications.publish_finding(found)
        assert opening.post().code == opening.link("https://github.com/a/b/issues/1").code == "REPOSITORY_NOT_LINKED"

    @pytest.mark.parametrize(
        ("status", "reason"), [(410, "issues_disabled"), (422, "text_refused"), (451, "status_451")]
    )
    def test_returns_409_if_the_code_host_refuses(self, status: int, reason: str, opening: Opening):
        opening.host.script.append(status)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"status": "creation_refused", "reason": reason}
        assert attempts() == opening.sqs.letters == []

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_returns_409_if_the_code_host_revoked_access(self, status: int, opening: Opening):
        opening.host.script.extend([status] * 2)
        assert opening.post().code == "REPOSITORY_NOT_LINKED"
        assert attempts() == opening.issues == []
