"""`assent-ops inbox` and `assent-ops issue`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.session import Session

from controlplane.store import inbox, issue_attempts
from controlplane.store.inbox_items import InboxItem
from controlplane.store.issue_attempts import AttemptItem
from tests.functional.ops.conftest import Ops
from tests.support.each import each
from tests.support.world import Company, World, table_dump


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def item(company: Company, world: World) -> InboxItem:
    return world.finding(company, world.connected_repository(company))


@pytest.fixture
def attempt(item: InboxItem, company: Company) -> AttemptItem:
    return issue_attempts.begin_attempt(item.item_id, company.owner.user_id)[0]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Returns a function that lists the messages on the queue."""
    client = Session().create_client("sqs", region_name="eu-central-1")
    url = client.create_queue(QueueName="issue-creation")["QueueUrl"]
    monkeypatch.setenv("ISSUE_CREATION_QUEUE_URL", url)
    yield lambda: [json.loads(it["Body"]) for it in client.receive_message(QueueUrl=url).get("Messages", [])]
    client.delete_queue(QueueUrl=url)


class TestInbox:
    def test_inbox_list_shows_the_latest_first_and_filters_by_status(
        self, ops: Ops, company: Company, item: InboxItem, world: World, now
    ):
        now.advance(1)
        later = world.finding(company)
        listed = ops("inbox", "list", company.slug).document
        assert [it["itemId"] for it in listed] == [later.item_id, item.item_id]
        assert listed[1] == {
            "itemId": item.item_id,
            "status": "open",
            "priority": "P2",
            "source": "code-audit",
            "title": item.title,
            "updatedAt": "2026-03-04T05:06:07.000Z",
        }
        assert len(ops("inbox", "list", company.slug, "--limit", "1").document) == 1
        assert ops("inbox", "list", company.slug, "--status", "dismissed").document == []

    def test_inbox_list_exits_2_for_an_invalid_status(self, ops: Ops, company: Company):
        assert ops("inbox", "list", company.slug, "--status", "closed").exit_code == 2

    def test_inbox_show_includes_the_attempt_to_open_an_issue(self, ops: Ops, item: InboxItem, attempt: AttemptItem):
        shown = ops("inbox", "show", item.item_id).document
        assert (shown["itemId"], shown["ruleId"]) == (item.item_id, "tracker-before-consent")
        assert shown["evidence"] == [item.evidence[0].url]
        assert shown["issueAttempt"]["marker"] == attempt.marker
        assert shown["issueRefusal"] is None

    @pytest.mark.parametrize("reference", ["inb_nonsense", "", "inb_" + "0" * 34])
    def test_inbox_show_exits_3_for_an_unknown_item(self, ops: Ops, reference: str):
        assert ops("inbox", "show", reference).exit_code == 3


class TestIssueList:
    def test_issue_list_shows_the_open_attempts(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem, company: Company
    ):
        assert ops("issue", "list").document == [
            {
                "itemId": item.item_id,
                "state": "wanted",
                "requestedBy": company.owner.user_id,
                "requestedAt": "2026-03-04T05:06:07.000Z",
                "sentAt": None,
                "overdue": False,
                "marker": attempt.marker,
            }
        ]


class TestIssueReconcile:
    def test_issue_reconcile_has_the_worker_check_again(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem, queue: Any
    ):
        expected = {"itemId": item.item_id, "outcome": "sent"}
        assert ops("issue", "reconcile", item.item_id).document == expected
        assert queue() == [{"kind": "create-issue", "version": 1, "itemId": item.item_id}]

    def test_issue_reconcile_records_an_issue_and_ends_the_attempt(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem
    ):
        words = ("--number", "42", "--url", "https://github.com/acme/shop/issues/42", "--yes")
        outcome = ops("issue", "reconcile", item.item_id, *words, "--created-at", "2026-03-04T05:00:00Z").document
        assert outcome["outcome"] == "recorded"
        issue = inbox.get_item(item.item_id).github_issue
        assert issue == (42, "https://github.com/acme/shop/issues/42", "2026-03-04T05:00:00Z", "open")
        assert ops("issue", "list").document == []
        assert ops("issue", "reconcile", item.item_id, *words).exit_code == 4

    def test_issue_reconcile_ends_an_attempt_that_created_no_issue(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem
    ):
        outcome = ops("issue", "reconcile", item.item_id, "--absent", "--yes").document
        assert outcome == {"itemId": item.item_id, "outcome": "withdrawn"}
        assert ops("inbox", "show", item.item_id).document["issueRefusal"] == "withdrawn"
        assert ops("issue", "reconcile", item.item_id, "--absent", "--yes").exit_code == 4

    def test_issue_reconcile_refuses_while_an_issue_may_still_appear(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem, now
    ):
        issue_attempts.start_sending(attempt)
        now.advance(599)
        outcome = ops("issue", "reconcile", item.item_id, "--absent", "--yes")
        assert outcome.exit_code == 1
        assert "2026-03-04T05:16:07.000Z" in outcome.error["message"]
        now.advance(1)
        assert ops("issue", "reconcile", item.item_id, "--absent", "--yes").exit_code == 0

    def test_issue_reconcile_exits_4_without_an_attempt(self, ops: Ops, item: InboxItem):
        assert ops("issue", "reconcile", item.item_id).exit_code == 4

    @each(
        "words",
        [
            ("--number", "42"),
            ("--url", "https://x.example/1"),
            ("--number", "1", "--url", "https://x.example/1", "--absent"),
            ("--number", "0", "--url", "https://x.example/1"),
            ("--number", "1", "--url", "x.example/1"),
            ("--number", "1", "--url", "https://x.example/1", "--created-at", "yesterday"),
            ("--absent",),
        ],
    )
    def test_issue_reconcile_exits_2_for_wrong_usage_and_changes_nothing(
        self, ops: Ops, item: InboxItem, attempt: AttemptItem, words: tuple[str, ...]
    ):
        before = table_dump()
        assert ops("issue", "reconcile", item.item_id, *words).exit_code == 2
        assert table_dump() == before

    def test_issue_reconcile_exits_3_for_an_unknown_item(self, ops: Ops):
        assert ops("issue", "reconcile", "inb_nonsense").exit_code == 3
