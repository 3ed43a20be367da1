"""The queue's worker: the outcome of each delivery of a message."""

import json

import pytest

from controlplane.code_host.github import app_auth
from controlplane.findings import inbox, issue_attempts
from controlplane.findings.items import GithubIssue
from controlplane.platform.table.table import Delete, table
from issue_creation import text
from issue_creation.app import handler
from tests.functional.issue_creation.conftest import DEAD_LETTERS, QUEUE
from tests.support.cleanup import swept
from tests.support.issue_host import HostedIssue
from tests.support.table import PREPARED


@pytest.fixture
def wanted(opening):
    """Returns an attempt whose message is on the queue and hasn't been received yet."""
    opening.idle = True
    opening.post()
    opening.idle = False
    return opening


def message(item_id: str = "inb_" + "0" * 34, **changes: object) -> str:
    return json.dumps({"kind": "create-issue", "version": 1, "itemId": item_id, **changes})


class TestDeliveries:
    def test_the_issue_has_the_text_and_the_marker_and_a_duplicate_message_changes_nothing(self, wanted):
        (letter,) = wanted.sqs.at(QUEUE)
        record, marker = letter.record, wanted.attempt.marker
        wanted.work()
        (issue,) = wanted.issues
        assert issue.title == f"{wanted.item.title} in index.html"
        assert f"<!-- assent-issue {marker} -->" in issue.body
        assert str(wanted.item.evidence[0].url) in issue.body
        before, sent = inbox.get_item(wanted.item.item_id), [*wanted.host.requests]
        assert handler({"Records": [record, record]}, None) == {"batchItemFailures": []}
        assert (inbox.get_item(wanted.item.item_id), wanted.host.requests) == (before, sent)

    def test_a_message_without_an_attempt_or_for_an_unknown_item_is_done(self, opening):
        for body in (message(opening.item.item_id), message()):
            opening.sqs.send_message(QueueUrl=QUEUE, MessageBody=body)
            opening.work()
        assert opening.sqs.letters == opening.host.requests == []

    def test_a_late_message_of_an_earlier_attempt_creates_no_second_issue(self, wanted):
        (old,) = wanted.sqs.at(QUEUE)
        old.visible_at += 3_600
        issue_attempts.refuse(wanted.attempt, "withdrawn")
        assert wanted.post().status == 201
        wanted.work_until_quiet()
        assert wanted.created == (1, 1)


class TestUnknownOutcomes:
    def test_nothing_is_sent_again_within_ten_minutes(self, wanted, now):
        wanted.host.script.append("lost")
        wanted.host.lag_seconds = 10_000
        wanted.work()
        for pause, created in (*[(119, 1)] * 5, (5, 2)):
            now.advance(pause)
            for letter in wanted.sqs.at(QUEUE):
                letter.visible_at, letter.receives = 0, 1
            wanted.work()
            assert wanted.host.count("create") == created
        assert wanted.host.count("list") == 6

    def test_a_lost_issue_is_searched_for_after_20_and_120_seconds_and_once_it_must_be_listed(self, wanted, now):
        began, moments = now(), []
        wanted.host.script.append("lost")
        wanted.host.lag_seconds = 10_000
        wanted.host.around = lambda operation, proceed: (moments.append((operation, now() - began)), proceed())[1]
        wanted.work_until_quiet()
        assert moments == [("create", 0), ("list", 20), ("list", 120), ("list", 601), ("create", 601)]
        assert all("since=2026-03-04T05" in url for kind, url in wanted.host.requests if kind == "list")

    def test_a_failed_list_proves_nothing(self, wanted, now):
        wanted.host.script.append("lost")
        wanted.work()
        now.advance(700)
        wanted.host.list_script.extend([500] * 3)
        wanted.work()
        assert wanted.host.count("create") == 1
        wanted.work_until_quiet()
        assert wanted.created == (1, 1)

    def test_while_issues_cant_be_listed_the_sweep_tries_again_every_eleven_minutes(self, wanted, now):
        wanted.host.script.append("lost")
        wanted.work()
        wanted.host.list_script.extend([404] * 4)
        now.advance(20)
        for _ in range(2):
            wanted.work()
            assert wanted.sqs.at(QUEUE) == []
            for pause, sent in ((659, 0), (1, 1)):
                now.advance(pause)
                assert swept(issue_attempts.resend_overdue) == sent
        assert wanted.recorded is None
        wanted.host.list_script.clear()
        wanted.work()
        assert (wanted.created, wanted.recorded is not None) == ((1, 1), True)

    def test_while_the_apps_key_is_unreadable_nothing_is_sent_and_the_message_is_retried(self, wanted, monkeypatch):
        monkeypatch.setattr(app_auth, "read_configured_key", lambda: "no key")
        wanted.work()
        assert (wanted.attempt.state, wanted.host.requests, len(wanted.sqs.at(QUEUE))) == ("wanted", [], 1)

    def test_another_attempts_issue_is_not_adopted(self, wanted):
        wanted.host.script.append((500, {}))
        wanted.work()
        other = HostedIssue(1, *text.compose(wanted.item, "f" * 32), 1_772_600_767, 0)
        wanted.host.issues[f"acme/{wanted.repository.name}"] = [other]
        wanted.work_until_quiet()
        assert wanted.recorded.number != other.number

    def test_a_repository_that_is_disconnected_concurrently_ends_the_attempt(self, wanted):
        wanted.host.script.append((500, {}))
        wanted.work()
        table.delete(Delete(wanted.repository.key), PREPARED)
        wanted.work_until_quiet()
        after = issue_attempts.find_progress(wanted.item.item_id)
        assert (after.attempt, after.refusal.reason) == (None, "repository-not-connected")

    def test_after_five_receives_the_message_is_dead_lettered_and_the_sweep_takes_over(self, wanted, now):
        wanted.host.script.extend(["unreached"] * 5)
        wanted.work_until_quiet()
        (dead,) = wanted.sqs.at(DEAD_LETTERS)
        assert dead.attributes["reason"]["StringValue"] == "the code host is not reached"
        for pause, sent in ((0, 0), (660, 1)):
            now.advance(pause)
            assert swept(issue_attempts.resend_overdue) == sent
        wanted.work_until_quiet()
        assert len(wanted.issues) == 1


class TestPeople:
    def test_an_issue_recorded_by_an_operator_belongs_to_the_item(self, wanted):
        wanted.host.script.append((500, {}))
        wanted.work()
        recorded = GithubIssue(77, "https://x.example/77", "2026-03-04T05:00:00Z")
        issue_attempts.complete(wanted.item.item_id, None, recorded)
        wanted.work_until_quiet()
        assert wanted.issues == []
        assert wanted.post().data["githubIssue"]["number"] == 77

    def test_an_issue_found_for_a_withdrawn_attempt_is_recorded(self, wanted):
        wanted.host.around = lambda _, proceed: (issue_attempts.refuse(wanted.attempt, "withdrawn"), proceed())[1]
        wanted.work()
        assert wanted.attempt is None
        assert wanted.recorded is not None
