"""The table copes with answers of DynamoDB that no engine gives by itself: partial ones, refusals, and none."""

import time
from typing import Any

import pytest

from awsclient.client import Client
from awsclient.errors import NoAnswer, ServiceError
from controlplane.platform.core import acting, deadline
from controlplane.platform.core.actions import Action
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import (
    Check,
    Delete,
    Put,
    QueryPage,
    Recorded,
    Table,
    TableUnavailable,
    Throttled,
    Unrecorded,
    Update,
)
from tests.support.each import each
from tests.support.table import PREPARED

FIRST, SECOND = Key("A", "1"), Key("A", "2")
ITEMS = [{"pk": "A", "sk": str(number)} for number in range(1, 27)]
LEGS = {"item": Check(FIRST, "attribute_exists(pk)")}
UNKNOWN = NoAnswer("timed out")
LOST = ServiceError("", "InternalServerError", status=500)
RUNNING = ServiceError("", "TransactionInProgressException")
INVALID = ServiceError("", "ValidationException")
CONFLICT = ServiceError("", "TransactionConflictException")


class Script(Client):
    """Gives these answers in turn, and the last one again and again. Errors are raised."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        super().__init__("dynamodb")
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(parameters)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def scripted(*answers: dict[str, Any] | Exception) -> tuple[Table, list[dict[str, Any]]]:
    """Returns a table with these answers, and its calls."""
    made = Table("assent")
    made.client = script = Script(*answers)
    return made, script.calls


@pytest.fixture(autouse=True)
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns the pauses that were requested. None is made."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


class TestReads:
    def test_an_item_is_read_consistently_and_a_query_at_half_the_price(self):
        table, calls = scripted({"Items": []})
        table.get(FIRST)
        table.query("A")
        table.query("A", consistent=True)
        assert [call["ConsistentRead"] for call in calls] == [True, False, True]

    def test_a_query_reads_one_item_more_than_it_returns(self):
        table, calls = scripted({"Items": []})
        table.query("A", limit=2)
        table.query("A", limit=2, after="1")  # which is read, too
        assert [call["Limit"] for call in calls] == [3, 4]
        # DynamoDB rejects an empty bound.
        assert [call["ExpressionAttributeValues"][":low"]["S"] for call in calls] == ["\0", "1"]

    def test_more_than_100_keys_are_read_in_several_calls(self, paused):
        found = {"Responses": {"assent": [encode_item(FIRST._asdict())]}}
        table, calls = scripted(found)
        assert table.batch_get([FIRST, *(Key("B", str(number)) for number in range(100))]) == [ITEMS[0], *[None] * 100]
        assert sorted(len(call["RequestItems"]["assent"]["Keys"]) for call in calls) == [1, 100]
        assert paused == []


class TestPartialAnswers:
    def test_keys_that_were_not_read_are_requested_again(self, paused):
        left = {"assent": {"Keys": [encode_item(SECOND._asdict())], "ConsistentRead": True}}
        partly = {"Responses": {"assent": [encode_item(FIRST._asdict())]}, "UnprocessedKeys": left}
        table, calls = scripted(partly, {"Responses": {"assent": [encode_item(SECOND._asdict())]}})
        found = table.batch_get([SECOND, FIRST, Key("A", "3")])
        assert found == [SECOND._asdict(), FIRST._asdict(), None]
        assert calls[0]["RequestItems"]["assent"]["ConsistentRead"] is True
        assert calls[1] == {"RequestItems": left}
        assert len(paused) == 1
        table, calls = scripted({"Responses": {}, "UnprocessedKeys": left})
        with pytest.raises(Throttled):
            table.batch_get([SECOND])
        assert len(calls) == 5

    def test_items_that_were_not_written_are_written_again(self, paused):
        left = {"assent": [{"DeleteRequest": {"Key": encode_item(SECOND._asdict())}}]}
        table, calls = scripted({"UnprocessedItems": left}, {})
        table.put_all(ITEMS, PREPARED)
        assert [len(call["RequestItems"]["assent"]) for call in calls] == [25, 1, 1]
        assert calls[1] == {"RequestItems": left}
        assert len(paused) == 1
        table, calls = scripted({"UnprocessedItems": left})
        with pytest.raises(Throttled):
            table.delete_all([SECOND], PREPARED)
        assert len(calls) == 5

    def test_a_query_goes_on_after_a_page_of_1_mb(self):
        pages = [
            {"Items": [encode_item(item) for item in ITEMS[:2]], "LastEvaluatedKey": {"sk": {"S": "2"}}},
            {"Items": [encode_item(item) for item in ITEMS[2:3]], "LastEvaluatedKey": {"sk": {"S": "3"}}},
            {"Items": []},
        ]
        table, calls = scripted(*pages)
        assert table.query("A", limit=2) == QueryPage(ITEMS[:2], "2")
        assert [call.get("ExclusiveStartKey") for call in calls] == [None, {"sk": {"S": "2"}}]
        assert scripted(*pages)[0].query("A", limit=3) == scripted(*pages)[0].query("A") == QueryPage(ITEMS[:3], None)


class TestRefusals:
    @each(
        ("error", "raised", "reads", "tokens"),
        [
            (UNKNOWN, TableUnavailable, 1, 1),
            (LOST, TableUnavailable, 1, 1),
            (RUNNING, TableUnavailable, 1, 1),
            (ServiceError("", "500", status=500), TableUnavailable, 1, 1),
            (ServiceError("", "RequestLimitExceeded"), Throttled, 1, 5),
            (CONFLICT, Throttled, 5, 5),
        ],
    )
    def test_a_read_and_a_transaction_report_what_they_know(self, error, raised, reads, tokens, paused):
        paused.clear()
        table, calls = scripted(error)
        with pytest.raises(raised):
            table.get(FIRST)
        assert len(calls) == reads
        calls.clear()
        with pytest.raises(raised):
            table.transact(LEGS, PREPARED)
        assert (len(calls), len({call["ClientRequestToken"] for call in calls})) == (5, tokens)
        assert len(paused) == reads - 1 + 4

    def test_a_mistake_is_neither_repeated_nor_hidden(self):
        table, calls = scripted(INVALID)
        for act in (lambda: table.get(FIRST), lambda: table.transact(LEGS, PREPARED)):
            with pytest.raises(ServiceError, match="ValidationException"):
                act()
        assert len(calls) == 2
        reasons = {"CancellationReasons": [{"Code": "ValidationError"}]}
        table, calls = scripted(ServiceError("", "TransactionCanceledException", fields=reasons))
        with pytest.raises(ServiceError, match="TransactionCanceledException"):
            table.transact(LEGS, PREPARED)
        assert len(calls) == 1

    def test_a_transaction_keeps_its_token_once_an_attempt_may_have_been_applied(self):
        for doubt in (UNKNOWN, LOST, RUNNING):
            table, calls = scripted(CONFLICT, doubt, CONFLICT, {})
            table.transact(LEGS, PREPARED)
            first, *others = [call["ClientRequestToken"] for call in calls]
            assert len(others) == 3
            assert {*others} == {others[0]} != {first}

    def test_nothing_is_sent_after_the_deadline(self):
        table, calls = scripted({})
        for act in (lambda: table.get(FIRST), lambda: table.transact(LEGS, PREPARED)):
            with deadline.budget(0), pytest.raises(TableUnavailable):
                act()
        assert calls == []


class TestWrites:
    def test_a_write_without_a_reason_is_a_mistake(self):
        table, calls = scripted({})
        reason: Any = None
        for write in (
            lambda: table.update(Update(FIRST, "SET #a = :a", None, {"a": 1}), reason),
            lambda: table.put(Put(ITEMS[0]), reason),
            lambda: table.delete(Delete(FIRST), reason),
            lambda: table.put_all(ITEMS, reason),
            lambda: table.delete_all([FIRST], reason),
            lambda: table.transact(LEGS, reason),
        ):
            with pytest.raises(TypeError, match="needs an entry"):
                write()
        assert calls == []

    def test_a_transaction_has_every_entry_in_the_audit_log(self):
        table, calls = scripted({})
        table.transact(LEGS, tuple(Recorded(Action.PROJECT_UPDATE, "org_1", f"prj_{number}") for number in range(3)))
        assert len(calls[0]["TransactItems"]) == 1 + 3

    def test_a_dry_run_writes_only_that_it_was_made(self):
        for record, writes in ((Unrecorded.COUNTER, 1), (Unrecorded.REFUSAL, 1), (PREPARED, 0)):
            table, calls = scripted({})
            with acting.dry_run():
                table.put(Put(ITEMS[0]), record)
            assert len(calls) == writes
