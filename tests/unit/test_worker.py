"""A queue handler: each message is processed separately, and each rejected message has a reason."""

import json
import re
import time
from collections import Counter
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter

from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import MAX_RECEIVES, ExecuteScan, PublishScan, Queue, Unreachable
from controlplane.platform.queues.worker import Delayed, Malformed, Postponed, Rejected, _parse, create_worker
from local.template import load_template
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.template import resources

QUEUE = Queue.SCAN_EXECUTION
MESSAGE = {"kind": "execute-scan", "version": 1, "scanId": "scn_" + "0" * 34}
POISON = "scn_" + "z" * 34


def body(number: int) -> str:
    return json.dumps({"kind": "execute-scan", "version": 1, "scanId": f"scn_{number:034d}"})


def letters(count: int) -> list[SqsMessage]:
    return [SqsMessage(QUEUE.url, body(number), 0) for number in range(count)]


def handle(take: Any, given: list[SqsMessage]) -> set[str]:
    """Returns the messages that the handler reports as failed."""
    for letter in given:
        letter.receives += 1
    handler = create_worker(QUEUE, TypeAdapter(ExecuteScan), take)
    answer = handler({"Records": [letter.record for letter in given]}, None)
    return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "source", lambda: 1_000.0)


def pauses(sqs: FakeSqs, text: str, take: Any) -> list[float]:
    """Delivers a new message until its last receive is left. Returns the pauses between."""
    (letter,) = sqs.letters = [SqsMessage(QUEUE.url, text, 0)]
    found = []
    for _ in range(MAX_RECEIVES - 1):
        assert handle(take, [letter]) == {letter.record["messageId"]}
        found.append(letter.visible_at - 1_000)
    assert dead_letters(sqs) == []
    return found


def dead_letters(sqs: FakeSqs) -> list[tuple[str, str]]:
    return [(letter.body, letter.attributes["reason"]["StringValue"]) for letter in sqs.at(QUEUE.dead_letters_url)]


def test_nine_messages_are_done_once_and_one_is_dead_lettered_after_five_receives(sqs):
    done: Counter[str] = Counter()

    def take(message: ExecuteScan) -> None:
        if message.scan_id == POISON:
            raise ValueError("a secret: sk_live_1")
        done[message.scan_id] += 1

    left = letters(10)
    left[4].body = json.dumps({"kind": "execute-scan", "version": 1, "scanId": POISON})
    rounds = 0
    while left:
        failed = handle(take, left)
        left = [letter for letter in left if letter.record["messageId"] in failed]
        rounds += 1
    assert rounds == MAX_RECEIVES
    policies = [it["Properties"].get("RedrivePolicy", {}) for it in resources("AWS::SQS::Queue").values()]
    assert {policy["maxReceiveCount"] for policy in policies if policy} == {MAX_RECEIVES}
    assert sorted(done.values()) == [1] * 9
    ((dead, reason),) = dead_letters(sqs)
    assert json.loads(dead)["scanId"] == POISON
    assert reason.startswith("ValueError at test_worker.py")
    assert "sk_live" not in reason


@each(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '{"kind":"execute-scan","version":0,"scanId":"scn_' + "0" * 34 + '"}',
        '{"kind":"execute-scan","version":1,"scanId":"scn_1"}',
        '{"kind":"execute-scan","version":1,"scanId":"ada@example.com"}',
        '{"kind":"execute-scan","version":1}',
    ],
)
def test_a_malformed_message_is_dead_lettered_at_the_last_receive_with_the_error_but_not_its_content(text, sqs):
    taken: list[Any] = []
    assert pauses(sqs, text, taken.append) == [5, 20, 80, 320]
    assert handle(taken.append, [sqs.letters[0]]) == set()
    assert taken == []
    ((dead, reason),) = dead_letters(sqs)
    assert dead == text
    assert reason.startswith("malformed: ")
    assert "ada@" not in reason


def test_the_reason_names_the_field_and_is_cut(sqs):
    letter = SqsMessage(QUEUE.url, json.dumps({"x" * 600: "a"}), 0, receives=MAX_RECEIVES)
    create_worker(QUEUE, TypeAdapter(dict[str, int]), lambda _: None)({"Records": [letter.record]}, None)
    ((_, reason),) = dead_letters(sqs)
    assert reason == "malformed: " + "x" * 500
    with pytest.raises(Malformed) as failure:
        _parse(TypeAdapter(ExecuteScan), '{"kind":"execute-scan","version":1,"scanId":"ada@example.com"}')
    assert str(failure.value) == "malformed: scanId string_pattern_mismatch"


class TestNewerRelease:
    """While functions of two releases run, and after a rollback, a worker gets messages of the newer one."""

    def test_an_added_field_is_ignored(self, sqs):
        taken: list[ExecuteScan] = []
        text = json.dumps({**MESSAGE, "priority": "high"})
        assert handle(taken.append, [SqsMessage(QUEUE.url, text, 0)]) == set()
        assert (taken, dead_letters(sqs)) == ([ExecuteScan(scan_id=MESSAGE["scanId"])], [])

    @each("fields", [{"version": 2}, {"version": 2, "scanId": 7}, {"kind": "archive-scan", "scanId": 7}])
    def test_a_message_is_postponed_for_longer_than_the_slowest_deployment(self, fields, sqs):
        taken: list[ExecuteScan] = []
        text = json.dumps({**MESSAGE, **fields})
        waited = pauses(sqs, text, taken.append)
        assert waited == [60, 600, 1_800, 5_400]
        styles = load_template()["Parameters"]["DeploymentStyle"]["AllowedValues"]
        linear = [re.fullmatch(r"Linear10PercentEvery(\d+)Minutes?", style) for style in styles]
        assert sum(waited) > max(10 * 60 * int(found[1]) for found in linear if found)
        assert handle(taken.append, [sqs.letters[0]]) == set()
        ((dead, reason),) = dead_letters(sqs)
        assert (dead, taken) == (text, [])
        assert reason.startswith("newer release: ")

    def test_an_unknown_kind_among_several_is_postponed(self, sqs):
        accepted: TypeAdapter[Any] = TypeAdapter(Annotated[ExecuteScan | PublishScan, Field(discriminator="kind")])
        letter = SqsMessage(QUEUE.url, json.dumps({"kind": "archive-scan", "version": 1}), 0, receives=1)
        sqs.letters.append(letter)
        create_worker(QUEUE, accepted, lambda _: None)({"Records": [letter.record]}, None)
        assert letter.visible_at == 1_060


@each(
    ("failure", "expected"),
    [
        (ValueError(), [5, 20, 80, 320]),
        (Postponed(77, "later"), [77] * 4),
        (Postponed(0, "later"), [1] * 4),
        (Postponed(100_000, "later"), [900] * 4),
        (Postponed(60, "another is at it", may_end_sooner=True), [5, 20, 60, 60]),
    ],
)
def test_the_pause_grows_with_each_failure_or_is_what_the_work_asks_for_within_bounds(failure, expected, sqs):
    def take(message: ExecuteScan) -> None:
        raise failure

    assert pauses(sqs, body(0), take) == expected


def test_a_delay_is_at_least_a_second():
    assert [Delayed(seconds, "limited").seconds for seconds in (-1, 0, 1, 2, 5_000)] == [1, 1, 1, 2, 5_000]


def test_each_message_is_one_log_line_with_its_outcome_and_duration(monkeypatch):
    (letter,) = letters(1)

    def take(message: ExecuteScan) -> None:
        monkeypatch.setattr(time, "perf_counter", lambda: 5.12346)

    monkeypatch.setattr(time, "perf_counter", lambda: 5.0)
    with captured_logs() as lines:
        handle(take, [letter])
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["messageId"], line["receives"]) == (letter.record["messageId"], 1)
    assert (line["outcome"], line["durationMs"]) == ("done", 123.5)


def test_a_queue_whose_address_the_function_does_not_have_is_unreachable(monkeypatch):
    for name in ("queue_url", "dead_letters_url"):
        monkeypatch.setitem(settings.__dict__, f"scan_execution_{name}", None)
    for address in (lambda: QUEUE.url, lambda: QUEUE.dead_letters_url):
        with pytest.raises(Unreachable):
            address()


def test_an_unreachable_dead_letter_queue_keeps_the_message_in_its_queue(sqs):
    def take(message: ExecuteScan) -> None:
        raise Rejected("no")

    sqs.broken = True
    (letter,) = letters(1)
    assert handle(take, [letter]) == {letter.record["messageId"]}
