"""POST /v1/inbox/{itemId}/github-issue, with the worker behind it."""

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox, issue_attempts, issues
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from controlplane.platform.table import keys, waiting
from controlplane.platform.table.table import Delete, table
from tests.functional.issue_creation.conftest import PENDING, QUEUE
from tests.support.cleanup import swept
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import publish_finding, table_dump


def attempts() -> list[dict]:
    return [item for item in table_dump() if item["pk"]["S"] == "ISSUEATTEMPTS"]


class TestSuccess:
    def test_returns_the_item_with_its_issue_and_moves_it_to_the_top_of_every_list(self, opening, world):
        world.finding(opening.company)
        reply = opening.post(world.member(opening.company, "admin").token)
        assert (reply.status, reply.data["id"]) == (201, opening.item.item_id)
        assert reply.data["githubIssue"] == {
            "number": 1,
            "url": f"https://github.com/acme/{opening.repository.name}/issues/1",
            "createdAt": "2026-03-04T05:06:07Z",
            "state": "open",
        }
        assert reply.data["version"] != opening.item.version
        assert (len(opening.issues), attempts()) == (1, [])
        token = opening.company.owner.token
        for path in ("/v1/inbox", "/v1/inbox?status=open"):
            assert opening.api.get(path, token).data[0] == reply.data
        shown = opening.api.get(f"/v1/inbox/{opening.item.item_id}", token).data
        assert shown["githubIssue"] == reply.data["githubIssue"]

    def test_an_existing_issue_is_returned_without_the_code_host_even_if_the_repository_is_gone(self, opening):
        first = opening.post()
        sent, paused = [*opening.host.requests], [*opening.pauses]
        second = opening.post()
        assert (second.status, second.data) == (201, first.data)
        assert (opening.host.requests, opening.pauses, opening.sqs.letters) == (sent, paused, [])
        repositories.unlink_project(opening.repository.repository_id, opening.repository.links[0].project_id)
        assert opening.post().data == first.data

    def test_works_in_any_status_of_the_item(self, opening):
        inbox.change_status(opening.item, "dismissed", opening.item.version, opening.company.owner.user_id, None)
        reply = opening.post()
        assert (reply.status, reply.data["status"]) == (201, "dismissed")

    @each(("outcome", "lag_seconds", "requests"), [("lost", 0, 1), ("lost", 400, 1), ("unreached", 0, 2), (502, 0, 2)])
    def test_after_a_failure_the_issue_is_found_by_its_marker_or_created(self, opening, outcome, lag_seconds, requests):
        opening.finding()
        made, sent = opening.created
        opening.host.lag_seconds = lag_seconds
        opening.host.script.append(outcome)
        assert opening.post().error["details"] == PENDING
        opening.work_until_quiet()
        assert opening.post().data["githubIssue"]["number"] == made + 1
        assert opening.created == (made + 1, sent + requests)
        assert opening.sqs.at(QUEUE) == []

    def test_the_code_hosts_rate_limit_is_waited_for_without_requests_or_receives(self, opening, now):
        first, second = opening.item, opening.finding()
        now.advance(61)
        swept(messages.resend)  # the events of the findings
        opening.sqs.letters.clear()
        opening.item = first
        opening.host.script.append((429, {"Retry-After": "3000"}))
        assert opening.post().error["details"] == PENDING
        sent = len(opening.host.requests)
        assert opening.sqs.letters == []
        for _ in range(49):
            now.advance(60)
            assert (swept(messages.resend), swept(issue_attempts.resend_overdue)) == (0, 0)
        # Another finding's issue waits, too.
        opening.item = second
        opening.post()
        assert len(opening.host.requests) == sent
        now.advance(120)
        assert (swept(messages.resend), swept(issue_attempts.resend_overdue)) == (2, 0)
        opening.work()
        for opening.item in (first, second):
            assert opening.post().status == 201
        assert len(opening.issues) == 2

    def test_a_request_succeeds_after_one_that_crashed_before_sending_its_message(self, opening, now):
        issue_attempts.begin_attempt(opening.item.item_id, opening.company.owner.user_id)
        now.advance(61)
        assert opening.post().status == 201

    def test_the_sweep_sends_the_message_if_the_queue_is_unavailable(self, opening, now):
        opening.sqs.broken = True
        assert opening.post().error["details"] == PENDING
        opening.sqs.broken = False
        for pause, sent in ((0, 0), (60, 1)):
            now.advance(pause)
            assert swept(issue_attempts.resend_overdue) == sent
        opening.work_until_quiet()
        assert opening.post().status == 201


class TestPending:
    def test_returns_409_if_the_outcome_is_unknown_after_eight_seconds_and_sends_no_second_message(self, opening, now):
        opening.idle = True
        for pause, waited in ((0, 8), (0, 8), (31, 0)):
            now.advance(pause)
            opening.pauses.clear()
            reply = opening.post()
            assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", PENDING)
            assert int(reply.headers["retry-after"]) > 0
            assert sum(opening.pauses) == pytest.approx(waited)
        assert (len(opening.sqs.at(QUEUE)), len(attempts())) == (1, 1)

    def test_while_too_many_requests_wait_it_responds_at_once_and_a_worker_gets_its_message(self, opening, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 20)
        assert None not in [waiting.acquire_slot(8) for _ in range(2)]
        opening.idle = True
        assert opening.post().error["details"] == PENDING
        assert sum(opening.pauses) == 0
        opening.work_until_quiet()
        assert opening.post().status == 201

    def test_a_slot_is_held_while_waiting_and_released_afterward(self, opening, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 10)
        opening.idle = True
        opening.post()
        assert sum(opening.pauses) == pytest.approx(8)
        assert waiting.acquire_slot(8) is not None


class TestRefusals:
    @each("source", ["advisory", "runtime"])
    def test_only_a_code_finding_can_have_an_issue(self, source, opening, world):
        opening.item = world.finding(opening.company, source=source)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "not_a_code_finding", "source": source}
        assert attempts() == opening.sqs.letters == []

    def test_returns_409_for_a_repository_without_a_linked_project(self, opening):
        repositories.unlink_project(opening.repository.repository_id, opening.repository.links[0].project_id)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "REPOSITORY_NOT_LINKED")
        assert reply.error["details"] == {"repositoryId": opening.repository.repository_id}
        assert attempts() == opening.sqs.letters == []

    def test_returns_409_for_a_repository_that_is_disconnected_before_or_concurrently(self, opening, world):
        opening.idle = True
        opening.post()
        table.delete(Delete(keys.repository(*opening.repository.repository_id.location)), PREPARED)
        opening.work()
        with pytest.raises(issues.RepositoryNotLinked):
            issues.find_issue(opening.item.item_id)
        unknown = opening.repository.repository_id[:-18] + "0" * 18
        opening.item = publish_finding(world.discovery(opening.company, opening.repository, repository_id=unknown))
        assert opening.post().code == opening.link("https://github.com/a/b/issues/1").code == "REPOSITORY_NOT_LINKED"

    @each(("status", "reason"), [(410, "issues_disabled"), (422, "text_refused"), (451, "status_451")])
    def test_returns_409_if_the_code_host_refuses_and_the_next_request_tries_again(self, status, reason, opening):
        opening.finding()
        opening.host.script.append(status)
        reply = opening.post()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"status": "creation_refused", "reason": reason}
        assert attempts() == opening.sqs.at(QUEUE) == []
        assert opening.post().status == 201

    @each("status", [401, 403, 404])
    def test_returns_409_if_the_code_host_revoked_access(self, status, opening):
        opening.host.script.extend([status] * 2)
        assert opening.post().code == "REPOSITORY_NOT_LINKED"
        assert attempts() == opening.issues == []
        opening.host.script.clear()
