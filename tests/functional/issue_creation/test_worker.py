"""The queue's worker: the outcome of each delivery of a message."""

import json

import pytest

from controlplane.github import app_auth
from controlplane.queues import issue_messages
from controlplane.queues.messages import MAX_RECEIVES
from controlplane.store import inbox, issue_attempts
from controlplane.store.inbox_items import GithubIssue
from controlplane.store.keys import repository as repository_key
from controlplane.store.table import Delete, table
from issue_creation.app import handler
from tests.functional.issue_creation.conftest import DEAD_LETTERS, QUEUE, Opening
from tests.support.sweeping import swept
from tests.support.table import PREPARED


@pytest.fixture
def wanted(opening: Opening) -> Opening:
    """Returns an attempt whose message is on the queue and hasn't been received yet."""
    opening.idle = True
    opening.post()
    opening.idle = False
    return opening


def progress(opening: Opening) -> issue_attempts.IssueProgress:
    found = issue_attempts.find_progress(opening.item.item_id)
    assert found is not None
    return found


class TestDeliveries:
    def test_the_issue_has_the_text_and_the_marker(self, wanted: Opening):
        attempt = progress(wanted).attempt
        assert attempt is not None
        wanted.work()
        (issue,) = wanted.issues
        assert issue.title == f"{wanted.item.title} in index.html"
        assert f"<!-- assent-issue {attempt.marker} -->" in issue.body
        assert str(wanted.item.evidence[0].url) in issue.body

    def test_a_duplicate_message_changes_nothing(self, wanted: Opening):
        (letter,) = wanted.sqs.at(QUEUE)
        record = letter.record
        wanted.work()
        before = inbox.get_item(wanted.item.item_id)
        wanted.host.requests.clear()
        assert handler({"Records": [record, record]}, None) == {"batchItemFailures": []}
        assert wanted.host.requests == []
        assert inbox.get_item(wanted.item.item_id) == before

    def test_a_message_without_an_attempt_is_done(self, opening: Opening):
        opening.sqs.send_message(QueueUrl=QUEUE, MessageBody=_message(opening.item.item_id))
        opening.work()
        assert opening.sqs.letters == []
        assert opening.host.requests == []

    def test_a_message_for_an_unknown_item_is_done(self, opening: Opening):
        opening.sqs.send_message(QueueUrl=QUEUE, MessageBody=_message("inb_" + "0" * 34))
        opening.work()
        assert opening.sqs.letters == []

    def test_an_old_message_of_a_former_attempt_finds_the_new_one_settled(self, wanted: Opening):
        (old,) = wanted.sqs.at(QUEUE)
        old.visible_at += 3_600
        attempt = progress(wanted).attempt
        assert attempt is not None
        issue_attempts.withdraw(attempt)
        assert wanted.post().status == 201
        wanted.work_until_quiet()
        assert (len(wanted.issues), wanted.host.count("create")) == (1, 1)

    def test_only_the_bad_message_among_ten_is_dead_lettered(self, opening: Opening, world):
        items = [world.finding(opening.company, opening.repository) for _ in range(9)]
        for item in items:
            issue_attempts.begin_attempt(item.item_id, opening.company.owner.user_id)
        bodies = [_message(item.item_id) for item in items]
        bodies.insert(4, '{"kind": "create-issue", "version": 1, "itemId": "nonsense"}')
        for message in bodies:
            opening.sqs.send_message(QueueUrl=QUEUE, MessageBody=message)
        letters = opening.sqs.at(QUEUE)
        letters[4].receives = MAX_RECEIVES
        assert handler({"Records": [letter.record for letter in letters]}, None) == {"batchItemFailures": []}
        assert all(inbox.get_item(item.item_id).github_issue for item in items)
        (dead,) = opening.sqs.at(DEAD_LETTERS)
        assert dead.body == bodies[4]
        assert "itemId" in dead.attributes["reason"]["StringValue"]

    @pytest.mark.parametrize(
        "message",
        [
            "",
            "null",
            "[]",
            "{",
            json.dumps({"kind": "create-issue", "version": 2, "itemId": "inb_" + "0" * 34}),
            json.dumps({"kind": "prepare-scan", "version": 1, "requestId": "spr_" + "0" * 34}),
            json.dumps({"kind": "create-issue", "version": 1, "itemId": "inb_"}),
        ],
    )
    def test_a_malformed_message_is_dead_lettered(self, message: str, opening: Opening):
        opening.sqs.send_message(QueueUrl=QUEUE, MessageBody=message)
        opening.work_until_quiet()
        assert opening.sqs.at(QUEUE) == []
        assert len(opening.sqs.at(DEAD_LETTERS)) == 1


class TestUnknownOutcomes:
    def test_nothing_is_sent_again_within_ten_minutes(self, wanted: Opening, now):
        wanted.host.script.append("lost")
        wanted.host.lag_seconds = 10_000
        wanted.work()
        for _ in range(5):
            now.advance(119)
            for letter in wanted.sqs.at(QUEUE):
                letter.visible_at, letter.receives = 0, 1
            wanted.work()
        assert wanted.host.count("create") == 1
        assert wanted.host.count("list") == 5
        now.advance(5)
        wanted.sqs.at(QUEUE)[0].visible_at = 0
        wanted.work()
        assert wanted.host.count("create") == 2

    def test_a_lost_issue_is_searched_for_after_20_and_120_seconds_and_once_it_must_be_listed(
        self, wanted: Opening, now
    ):
        began, moments = now(), []
        wanted.host.script.append("lost")
        wanted.host.lag_seconds = 10_000
        wanted.host.around = lambda operation, proceed: (moments.append((operation, now() - began)), proceed())[1]
        wanted.work_until_quiet()
        assert moments == [("create", 0), ("list", 20), ("list", 120), ("list", 601), ("create", 601)]
        assert all("since=2026-03-04T05" in url for kind, url in wanted.host.requests if kind == "list")

    def test_after_ten_minutes_without_it_the_attempt_is_sent_again(self, wanted: Opening):
        wanted.host.script.append((502, {}))
        wanted.work()
        attempt = progress(wanted).attempt
        assert attempt is not None
        assert attempt.state == "sending"
        wanted.work_until_quiet()
        assert wanted.host.count("create") == 2
        assert len(wanted.issues) == 1
        assert progress(wanted).item.github_issue is not None

    def test_a_failed_list_proves_nothing(self, wanted: Opening, now):
        wanted.host.script.append("lost")
        wanted.work()
        now.advance(700)
        wanted.host.list_script.extend([500] * 3)
        wanted.work()
        assert wanted.host.count("create") == 1
        wanted.work_until_quiet()
        assert (len(wanted.issues), wanted.host.count("create")) == (1, 1)

    def test_while_issues_cant_be_listed_the_sweep_tries_again_every_eleven_minutes(self, wanted: Opening, now):
        wanted.host.script.append("lost")
        wanted.work()
        wanted.host.list_script.extend([404] * 4)
        now.advance(20)
        for _ in range(2):
            wanted.work()
            assert wanted.sqs.at(QUEUE) == []
            now.advance(659)
            assert swept(issue_messages.resend_overdue) == 0
            now.advance(1)
            assert swept(issue_messages.resend_overdue) == 1
        assert progress(wanted).item.github_issue is None
        wanted.host.list_script.clear()
        wanted.work()
        assert (len(wanted.issues), wanted.host.count("create")) == (1, 1)
        assert progress(wanted).item.github_issue is not None

    def test_while_the_apps_key_is_unreadable_nothing_is_sent_and_the_message_is_retried(
        self, wanted: Opening, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(app_auth, "read_configured_key", lambda: "no key")
        wanted.work()
        attempt = progress(wanted).attempt
        assert attempt is not None
        assert (attempt.state, wanted.host.requests, len(wanted.sqs.at(QUEUE))) == ("wanted", [], 1)

    def test_another_attempts_issue_is_not_adopted(self, wanted: Opening):
        wanted.host.script.append((500, {}))
        wanted.work()
        wanted.host.issues[f"acme/{wanted.repository.name}"] = []
        other = text_of_another_attempt(wanted)
        wanted.host.issues[f"acme/{wanted.repository.name}"].append(other)
        wanted.work_until_quiet()
        issue = progress(wanted).item.github_issue
        assert issue is not None
        assert issue.number != other.number

    def test_a_repository_that_is_disconnected_concurrently_ends_the_attempt(self, wanted: Opening):
        wanted.host.script.append((500, {}))
        wanted.work()
        table.delete(Delete(repository_key(*wanted.repository.location)), PREPARED)
        wanted.work_until_quiet()
        after = progress(wanted)
        assert after.attempt is None
        assert after.refusal is not None
        assert after.refusal.reason == "repository-not-connected"

    def test_after_five_receives_the_message_is_dead_lettered_and_the_sweep_takes_over(self, wanted: Opening, now):
        wanted.host.script.extend(["unreached"] * 5)
        wanted.work_until_quiet()
        (dead,) = wanted.sqs.at(DEAD_LETTERS)
        assert dead.attributes["reason"]["StringValue"] == "the code host is not reached"
        assert swept(issue_messages.resend_overdue) == 0
        now.advance(660)
        assert swept(issue_messages.resend_overdue) == 1
        wanted.work_until_quiet()
        assert len(wanted.issues) == 1


class TestPeople:
    def test_an_issue_recorded_by_an_operator_belongs_to_the_item(self, wanted: Opening):
        wanted.host.script.append((500, {}))
        wanted.work()
        issue_attempts.complete(
            wanted.item.item_id, None, GithubIssue(77, "https://x.example/77", "2026-03-04T05:00:00Z")
        )
        wanted.work_until_quiet()
        assert wanted.issues == []
        assert wanted.post().data["githubIssue"]["number"] == 77

    def test_an_issue_found_for_a_withdrawn_attempt_is_recorded(self, wanted: Opening):
        attempt = progress(wanted).attempt
        assert attempt is not None
        wanted.host.around = lambda operation, proceed: (
            issue_attempts.withdraw(progress(wanted).attempt),  # type: ignore[arg-type]
            proceed(),
        )[1]
        wanted.work()
        after = progress(wanted)
        assert after.attempt is None
        assert after.item.github_issue is not None


def _message(item_id: str) -> str:
    return json.dumps({"kind": "create-issue", "version": 1, "itemId": item_id})


def text_of_another_attempt(opening: Opening):
    from issue_creation import text
    from tests.support.issue_host import HostedIssue

    title, body = text.compose(opening.item, "f" * 32)
    return HostedIssue(1, title, body, 1_772_600_767, 0)
