"""The recorder that compares the functions' permissions with their calls notices missing and excess permissions.

The functional tests together check that each permission is used: tests/support/permissions.py.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import permissions
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.permissions import Permission, Run

READS = {f"dynamodb:{action}" for action in ("BatchGetItem", "ConditionCheckItem", "GetItem", "Query")}


class TestRecording:
    """A recorder that sees nothing, or that assumes permissions, would accept every policy."""

    @pytest.fixture(autouse=True)
    def _nothing_seen(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(permissions, "used", set())

    def test_an_empty_recording_finds_every_action_and_every_kind_unused(self):
        assert permissions.missing() == []
        idle = permissions.unused()
        assert len(permissions.granted()) > 100
        for function, action, target, keys in permissions.granted():
            assert f"{function}: {action} on {target}" in idle
            assert not keys or any(
                it.startswith(function) and it.endswith(f" on {target} with keys {keys}") for it in idle
            )

    @each(
        ("superfluous", "line"),
        [
            (lambda it: it.action == "dynamodb:BatchGetItem", "billing: dynamodb:BatchGetItem on Table"),
            (
                lambda it: it.keys == "USER#*",
                "billing: dynamodb:BatchGetItem, dynamodb:GetItem, dynamodb:Query on Table with keys USER#*",
            ),
            (lambda it: it.keys == "RATE#*", "billing: dynamodb:UpdateItem on Table with keys RATE#*"),
            (lambda it: it.target == "ScanExecutionQueue", "code_audit: sqs:SendMessage on ScanExecutionQueue"),
            # A kind that is only read, among the writes.
            (
                lambda it: it.keys == "ORG#*" and it.action not in READS | {"dynamodb:UpdateItem"},
                "projects: dynamodb:DeleteItem, dynamodb:PutItem on Table with keys ORG#*",
            ),
        ],
    )
    def test_one_superfluous_permission_is_detected(self, superfluous: Callable[[Permission], bool], line: str):
        function = line.partition(":")[0]
        permissions.used.clear()
        permissions.used.update(it for it in permissions.granted() if it.function != function or not superfluous(it))
        assert permissions.unused() == [line]

    @each(("action", "keys"), [("dynamodb:PutItem", "TH#*"), ("dynamodb:GetItem", "KH#*")])
    def test_a_missing_action_or_kind_is_detected(self, action: str, keys: str):
        permissions.used.clear()
        permissions.used.update(permissions.granted() | {Permission("billing", action, "Table", keys)})
        assert permissions.missing() == [f"billing: {action} on Table with keys {keys}"]

    def test_a_call_without_a_partition_key_is_detected(self):
        self.record_call(
            "Query", {"KeyConditionExpression": "pk = :other", "ExpressionAttributeValues": {":other": {}}}
        )
        assert permissions.missing() == ["billing: dynamodb:Query on Table"]

    def test_a_transactions_legs_require_their_permissions(self):
        key, other = {"pk": {"S": "TH#9f86d0"}}, {"pk": {"S": "SCANWATCH"}}
        legs = [{"Put": {"Item": other}}, *({kind: {"Key": key}} for kind in ("ConditionCheck", "Update", "Delete"))]
        self.record_call("TransactWriteItems", {"TransactItems": legs})
        actions = {"ConditionCheckItem", "UpdateItem", "DeleteItem"}
        assert permissions.used == {
            Permission("billing", "dynamodb:PutItem", "Table", "SCANWATCH"),
            *(Permission("billing", f"dynamodb:{action}", "Table", "TH#*") for action in actions),
        }

    def test_every_item_of_a_batch_or_query_requires_its_key(self):
        keys = [{"pk": {"S": "ORG#1"}, "sk": {"S": "META"}}, {"pk": {"S": "USER#1"}, "sk": {"S": "PROFILE"}}]
        self.record_call("BatchGetItem", {"RequestItems": {"t": {"Keys": keys}}})
        writes = [{"PutRequest": {"Item": keys[0]}}, {"DeleteRequest": {"Key": keys[1]}}]
        self.record_call("BatchWriteItem", {"RequestItems": {"t": writes}})
        self.record_call("Query", {"ExpressionAttributeValues": {":pk": {"S": "OUTBOX#3"}}})
        expected = {(f"Batch{kind}Item", keys) for kind in ("Get", "Write") for keys in ("ORG#*", "USER#*")}
        assert permissions.used == {
            Permission("billing", f"dynamodb:{action}", "Table", keys)
            for action, keys in expected | {("Query", "OUTBOX#*")}
        }

    def test_a_call_that_a_test_lets_proceed_is_attributed_to_the_function_and_the_tests_own_call_is_not(self):
        """As one of the functional tests intercepts it."""
        names: dict[str, Any] = {"record_call": permissions.record_call}
        source = """def around(call, proceed):
            record_call("dynamodb", "GetItem", {"Key": {"pk": {"S": "TESTS"}}})
            return proceed()"""
        exec(compile(source, f"{permissions.FUNCTIONAL}/test_x.py", "exec"), names)
        client = SimpleNamespace(call=lambda *call: permissions.record_call("dynamodb", *call))
        with intercepted(client, names["around"]):
            run_as_billing("call('GetItem', {'Key': {'pk': {'S': 'HEALTH'}}})", call=client.call)
        assert permissions.used == {Permission("billing", "dynamodb:GetItem", "Table", "HEALTH")}

    def record_call(self, operation: str, parameters: dict) -> None:
        """Records a call as if the function `billing` had made it."""
        run_as_billing(
            "record('dynamodb', operation, parameters)",
            record=permissions.record_call,
            operation=operation,
            parameters=parameters,
        )

    def test_calls_of_tests_are_not_attributed_to_a_function(self):
        permissions.record_call("dynamodb", "Scan", {})
        assert permissions.used == set()

    def test_only_a_run_of_all_functional_tests_is_judged(self):
        paths = [*permissions.FUNCTIONAL.rglob("test_*.py")]
        for deselected, found, whole in (([], paths, True), ([], paths[1:], False), (paths[:1], paths, False)):
            run = Run()
            run.pytest_deselected([SimpleNamespace(path=it) for it in deselected])
            run.pytest_collection_finish(SimpleNamespace(items=[SimpleNamespace(path=it) for it in found]))
            assert run.whole is whole


def run_as_billing(source: str, **names: Any) -> None:
    """Runs code in a frame like the one in which tests/support/api.py calls the function `billing`."""
    exec(compile(source, "tests/support/api.py", "exec"), {**names, "group": "billing"})
