"""Fault injection reaches every call, raises the client's errors, and detects non-atomic writes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from awsclient.errors import NoAnswer, ServiceError
from tests.support.faults import Case, Crashed, Kind, Trial, explore_faults
from tests.unit.support.cap import Cap

pytestmark = pytest.mark.races


def scenario_of(
    client: Any, table: str, act: Callable[[Cap], Any], check: Callable[[Cap, Case], None]
) -> Callable[[], Trial]:
    """Creates a fresh owner without keys for each run."""

    def scenario() -> Trial:
        cap = Cap(client, table)
        cap.fill(0)
        return Trial(lambda: act(cap), lambda case: check(cap, case))

    return scenario


class TestFaults:
    def test_each_call_gets_each_fault_that_applies_to_it(self, client: Any, engine_table: str) -> None:
        met: Counter[tuple[str, Kind]] = Counter()

        def act(cap: Cap) -> None:
            cap.counted()
            cap.create()

        def check(cap: Cap, case: Case) -> None:
            met[case.calls[case.position].operation, case.fault.kind] += 1

        runs = explore_faults(client, scenario_of(client, engine_table, act, check))
        assert runs == met.total()
        assert {kind for operation, kind in met if operation == "GetItem"} == {
            Kind.NONE, Kind.CRASH, Kind.LOST, Kind.THROTTLED, Kind.SERVER_ERROR,
        }  # fmt: skip
        assert {kind for operation, kind in met if operation == "TransactWriteItems"} == set(Kind) - {Kind.NONE}
        assert met["TransactWriteItems", Kind.CONFLICT] == 2  # one a leg

    def test_a_fault_applies_the_call_or_not_as_its_name_says(self, client: Any, engine_table: str) -> None:
        stored: dict[str, int] = {}
        errors: dict[str, type | None] = {}

        def check(cap: Cap, case: Case) -> None:
            stored[case.fault.name] = cap.stored()
            errors[case.fault.name] = type(case.first.error) if case.first.error else None

        def scenario() -> Trial:
            cap = Cap(client, engine_table)
            cap.fill(0)
            return Trial(cap.create, lambda case: check(cap, case), again=lambda: None)

        explore_faults(client, scenario)
        applied = {
            "no fault",
            "crash after",
            "response lost",
            "response lost on the wire",
            "response lost, then conflict",
            "response lost, then conflict at the SDK's retry",
            "server error, applied",
        }
        assert {name for name, keys in stored.items() if keys == 1} == applied
        assert {name for name, error in errors.items() if error is None} == {"no fault", "response lost on the wire"}
        assert errors["crash before"] is errors["crash after"] is Crashed
        assert errors["request lost"] is NoAnswer
        assert errors["response lost"] is NoAnswer

    def test_a_refusal_is_lost_like_any_response(self, client: Any, engine_table: str) -> None:
        def act(cap: Cap) -> None:
            item = {"pk": {"S": cap.owner}, "sk": {"S": "META"}}  # it is there already
            client.put_item(TableName=engine_table, Item=item, ConditionExpression="attribute_not_exists(pk)")

        def check(cap: Cap, case: Case) -> None:
            if case.fault.name == "crash after":
                assert isinstance(case.first.error, Crashed)
            if case.fault.name == "response lost":
                assert isinstance(case.first.error, NoAnswer)

        explore_faults(client, scenario_of(client, engine_table, act, check))

    def test_a_conflict_names_the_leg_as_dynamodb_does(self, client: Any, engine_table: str) -> None:
        reasons: list[list[str]] = []

        def check(cap: Cap, case: Case) -> None:
            if case.fault.kind is Kind.CONFLICT:
                assert isinstance(case.first.error, ServiceError)
                assert case.first.error.code == "TransactionCanceledException"
                reasons.append([reason["Code"] for reason in case.first.error.fields["CancellationReasons"]])

        explore_faults(client, scenario_of(client, engine_table, Cap.create, check))
        assert reasons == [["TransactionConflict", "None"], ["None", "TransactionConflict"]]

    def test_a_conditional_write_whose_response_is_lost_returns_refused(self, client: Any, engine_table: str) -> None:
        """The client retries by itself, so a failed condition may be caused by our own write."""

        def act(cap: Cap) -> None:
            item = {"pk": {"S": cap.owner}, "sk": {"S": "ONCE"}}
            client.put_item(TableName=engine_table, Item=item, ConditionExpression="attribute_not_exists(pk)")

        def check(cap: Cap, case: Case) -> None:
            if case.fault.kind is Kind.LOST_ON_THE_WIRE:
                assert isinstance(case.first.error, ServiceError)
                assert case.first.error.code == "ConditionalCheckFailedException"
                assert len(case.paused_seconds) == 1

        explore_faults(client, scenario_of(client, engine_table, act, check))

    def test_nothing_reaches_the_table_after_a_crash(self, client: Any, engine_table: str) -> None:
        def act(cap: Cap) -> None:
            try:
                cap.counted()
            finally:
                cap.create()

        def check(cap: Cap, case: Case) -> None:
            if case.fault.name == "crash before":
                assert cap.stored() == 1  # the second attempt's
                assert isinstance(case.first.error, Crashed)

        explore_faults(client, scenario_of(client, engine_table, act, check), kinds=frozenset({Kind.CRASH}))

    def test_repeated_faults_last_until_the_second_attempt(self, client: Any, engine_table: str) -> None:
        def act(cap: Cap) -> int:
            conflicts = 0
            for _ in range(5):
                try:
                    cap.create()
                except ServiceError as error:
                    conflicts += error.code == "TransactionCanceledException"
            return conflicts

        def check(cap: Cap, case: Case) -> None:
            if case.fault.kind is Kind.CONFLICT:
                assert case.first.get() == 5 - case.position
                assert case.second.get() == 0

        scenario = scenario_of(client, engine_table, act, check)
        explore_faults(client, scenario, kinds=frozenset({Kind.CONFLICT}), every_time=True)


class TestTwin:
    @staticmethod
    def counter_equals_keys(cap: Cap, case: Case) -> None:
        assert cap.counted() == cap.stored()

    def test_a_single_transaction_passes_under_every_fault(self, client: Any, engine_table: str) -> None:
        explore_faults(client, scenario_of(client, engine_table, Cap.create, self.counter_equals_keys))

    def test_two_writes_are_caught_and_the_fault_named(
        self, client: Any, engine_table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scenario = scenario_of(client, engine_table, Cap.create_in_two_writes, self.counter_equals_keys)
        with pytest.raises(AssertionError) as caught:
            explore_faults(client, scenario)
        assert "REPLAY_FAULT='0: crash after'" in caught.value.__notes__[-1]

        monkeypatch.setenv("REPLAY_FAULT", "0: crash after")
        with pytest.raises(AssertionError):
            explore_faults(client, scenario)

        monkeypatch.setenv("REPLAY_FAULT", "0: crash before")
        assert explore_faults(client, scenario) == 2
