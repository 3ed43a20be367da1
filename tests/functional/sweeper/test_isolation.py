"""A bad entry blocks nothing else, a step stays within its share of the time, and no entry starves."""

import json
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Any

import pytest

from awsclient.errors import ServiceError
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys, shards
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from sweeper import service
from sweeper.service import STEPS, SWEEP_SECONDS, StepsFailed
from tests.functional.projects.builders import make_project
from tests.functional.sweeper.conftest import NOTHING
from tests.support.calls import intercepted
from tests.support.logs import captured_logs
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.template import resources

BAD = "a-queue-of-a-later-release"

type Ticking = Callable[[float], None]


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Ticking:
    """Advances the monotonic clock by this many seconds per reading."""

    def start(seconds: float) -> None:
        ticks = count()
        monkeypatch.setattr(clock, "monotonic_source", lambda: next(ticks) * seconds)

    return start


def waiting(number: int, queue: str = "scan-preparation", shard: int = 0) -> None:
    """Stores an unsent message in the shard of the outbox, at that position."""
    key = keys.outbox_message(shard, f"2026-03-04T04:00:{number:02d}.000Z", f"{number:02d}")
    table.put(Put({**key._asdict(), "queue": queue, "message": {"number": number}}), PREPARED)


def sent(sqs: FakeSqs) -> list[int]:
    return [json.loads(letter.body)["number"] for letter in sqs.letters]


def counted(lines: str, name: str) -> float:
    """Returns the metric's value in the last line that has it."""
    found: list[float] = []
    for line in map(json.loads, lines.splitlines()):
        value: Any = line.get(name)
        if isinstance(value, list):
            found = value
    return sum(found)


class TestABadEntry:
    def test_is_skipped_counted_and_logged_by_its_keys_and_stops_no_later_sweep(self, sweep, sqs, capsys):
        waiting(0, BAD)
        waiting(1)
        with captured_logs() as log:
            assert sweep() == {**NOTHING, "ResentMessages": 1}
        (line,) = [entry for entry in map(json.loads, log.getvalue().splitlines()) if entry["level"] == "ERROR"]
        assert (line["message"], line["step"], line["partition"]) == ("entry failed", "ResentMessages", "OUTBOX#0")
        assert line["errorType"] == "ValueError"
        assert counted(capsys.readouterr().out, "FailedEntries") == 1
        for number in (2, 3):
            waiting(number)
            assert sweep() == {**NOTHING, "ResentMessages": 1}
        assert sent(sqs) == [1, 2, 3]
        assert len(table.query(keys.OUTBOX_PKS[0]).items) == 1

    def test_of_any_step_stops_no_other_entry(self, sweep, company, sqs, now):
        """Each step has an entry without any attributes before its valid entries."""
        project = make_project(company)
        projects.delete_project(project)
        now.advance(SETTLED_AFTER_SECONDS)
        waiting(1)
        sharded = (
            keys.SCAN_WATCH_PKS,
            keys.SCAN_SCHEDULE_PKS,
            keys.SCAN_QUEUE_PKS,
            keys.AUDIT_SCHEDULE_PKS,
            keys.AUDIT_WATCH_PKS,
            keys.SNOOZES_PKS,
            keys.ADVISORIES_PKS,
            keys.DELETIONS_PKS,
        )
        for pk in ("OUTBOX#0", keys.ISSUE_ATTEMPTS_PK, *(pks[-1] for pks in sharded)):
            table.put(Put({"pk": pk, "sk": "!"}), PREPARED)
        with captured_logs() as log:
            assert sweep() == {**NOTHING, "ResentMessages": 1, "FinishedDeletions": 1}
        failed = [line["step"] for line in map(json.loads, log.getvalue().splitlines()) if line["level"] == "ERROR"]
        assert failed == list(STEPS)


def test_a_refused_message_holds_back_neither_its_queue_nor_others_and_a_broken_queue_is_tried_once(
    sweep, sqs, monkeypatch
):
    refusals = [ServiceError("SendMessage", "KMS.DisabledException")]
    asked: list[Any] = []

    def send(**message: Any) -> dict[str, Any]:
        asked.append(message)
        if message["QueueUrl"] == Queue.SCAN_PREPARATION.url and refusals:
            raise refusals.pop()
        return FakeSqs.send_message(sqs, **message)

    monkeypatch.setattr(sqs, "send_message", send)
    waiting(0)
    waiting(1, "scan-execution")
    waiting(2)
    assert sweep() == {**NOTHING, "ResentMessages": 2}
    assert 1 in sent(sqs)
    sqs.broken = True
    asked.clear()
    for number in range(3, 8):
        waiting(number)
    assert (sweep(), len(asked)) == (NOTHING, 1)


class TestTime:
    def test_a_steps_time_is_its_share_of_the_remainder(self, monkeypatch):
        monkeypatch.setattr(clock, "monotonic_source", lambda: 1_000.0)
        ends: list[float] = []
        monkeypatch.setattr(service, "STEPS", dict.fromkeys("ABCD", lambda run: ends.append(run._ends_at)))
        service.sweep()
        # No step used any time, so each may use the remaining time divided by the number of remaining steps.
        assert ends == [1_000 + SWEEP_SECONDS / left for left in (4, 3, 2, 1)]

    def test_a_step_that_uses_up_its_time_doesnt_use_up_the_others(self, sweep, company, ticking, sqs, now):
        for number in range(120):
            waiting(number)
        projects.delete_project(make_project(company))
        now.advance(SETTLED_AFTER_SECONDS)
        ticking(0.1)
        finished = sweep()
        assert 0 < finished["ResentMessages"] < 120
        assert finished["FinishedDeletions"] == 1

    def test_a_step_that_runs_out_of_time_is_continued_by_the_next_sweep(self, sweep, ticking, sqs, capsys):
        """However many earlier entries always fail, the later ones get processed."""
        for number in range(20):
            waiting(number, BAD)
        waiting(20)
        sweeps = 0
        ticking(1)
        while not sent(sqs):
            sweep()
            sweeps += 1
            assert sweeps < 10
        assert sweeps > 1
        ticking(0)
        capsys.readouterr()
        sweep()
        assert table.get(keys.sweep_position("ResentMessages")) is None

    def test_a_run_that_ends_between_partitions_is_continued_with_the_next_one(self, ticking):
        table.put_all(({"pk": f"PK#{name}", "sk": name} for name in "abc"), PREPARED)
        partitions = ["PK#a", "PK#b", "PK#c"]
        ticking(1)  # once for each entry, and after each partition
        runs = [SweepRun("Test", ends_at) for ends_at in (1, 3, 5)]
        visited = [[entry["sk"] for entry in run.entries(partitions)] for run in runs]
        assert visited == [["a"], ["b"], ["c"]]
        assert [run.unfinished for run in runs] == [True, True, False]
        assert table.get(keys.sweep_position("Test")) is None
        assert [it["sk"] for it in SweepRun("Test", inf).entries(partitions, before="b")] == ["a"]

    def test_a_position_in_another_releases_partition_restarts_the_step(self, sweep, sqs):
        key = keys.sweep_position("ResentMessages")
        table.put(Put({**key._asdict(), "partition": "OUTBOX#99999", "after": "x"}), PREPARED)
        waiting(0)
        assert sweep() == {**NOTHING, "ResentMessages": 1}
        assert table.get(key) is None

    def test_the_sweep_ends_before_the_functions_timeout_and_a_failed_entry_raises_an_alarm(self):
        timeout = resources("AWS::Serverless::Function")["SweeperFunction"]["Properties"]["Timeout"]
        assert SWEEP_SECONDS + 10 < timeout < 60
        alarms = [it["Properties"] for it in resources("AWS::CloudWatch::Alarm").values()]
        assert [alarm.get("MetricName") for alarm in alarms].count("FailedEntries") == 1


def test_an_unreadable_partition_hides_no_other_and_its_error_is_raised(sweep, sqs):
    waiting(0)
    waiting(1, shard=shards.ENTRIES - 1)

    def throttled(call: Any, proceed: Callable[[], Any]) -> Any:
        values = call.parameters.get("ExpressionAttributeValues", {})
        if call.operation == "Query" and values[":pk"]["S"] in {keys.OUTBOX_PKS[0], "PK#a", "PK#b"}:
            raise ServiceError("Query", f"of {values[':pk']['S']}")
        return proceed()

    with intercepted(table.client, throttled):
        with pytest.raises(StepsFailed):
            sweep()
        with pytest.raises(ServiceError, match="of PK#a"):
            list(SweepRun("Test", inf).entries(["PK#a", "PK#b"]))
    assert sent(sqs) == [1]
