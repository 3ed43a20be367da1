"""Compares what each function calls while the functional tests run with what its policy allows.

A call that a policy does not allow fails the test that made it. A permission that no test uses fails the whole run, if
the run was of all functional tests: pytest shows that as one more test. The stack tells which function makes a call.

On the table, a permission is also limited to partition keys (`dynamodb:LeadingKeys`). The policies and the recording
name a kind of partition key the same way: up to the first `#`, and `*` for the rest.

The signing secret counts as a permission: a function may use it if the template gives it the variable.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from botocore.client import BaseClient

from controlplane import keyring
from tests.support.template import policies, signing_functions

ROOT = Path(__file__).parents[2]
FUNCTIONAL = ROOT / "tests" / "functional"
_FUNCTIONS = f"{ROOT / 'functions'}/"
_TESTS = f"{FUNCTIONAL}/"
_API, _WORKER = "tests/support/api.py", "controlplane/worker.py"
# What only Lambda itself calls in a function's name: to hand it the messages of its queue.
_LAMBDA_CALLS = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
# Called once a process where the App's key is in Secrets Manager, which it is in no functional test of a function.
# tests/architecture/test_template_permissions.py holds who may.
_ELSEWHERE = {"secretsmanager:GetSecretValue"}
# A transaction asks for the permissions of its legs.
_LEGS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


_SIGN = ("sign", "SigningSecret")


class Permission(NamedTuple):
    """An action of a function, named after its folder, on a resource of the template or an index of its table.

    keys: the kind of partition key, as in `USER#*`. Empty where a policy doesn't limit them: in queues and indexes.
    """

    function: str
    action: str
    target: str
    keys: str = ""

    def __str__(self) -> str:
        return f"{self.function}: {self.action} on {self.target}{self.keys and f' with keys {self.keys}'}"


seen: set[Permission] = set()


@cache
def granted() -> frozenset[Permission]:
    """What the policies of the template allow and a function calls by itself, and who has the signing secret."""
    signs = {Permission(function, *_SIGN) for function in signing_functions()}
    return frozenset(signs).union(
        Permission(function, action, target, keys)
        for function, statements in policies().items()
        for statement in statements
        for action in statement.actions
        for target in statement.targets
        for keys in statement.keys or [""]
        if action not in _LAMBDA_CALLS | _ELSEWHERE
    )


def unused() -> list[str]:
    """What is allowed and was not seen."""
    return sorted(map(str, granted() - seen))


def missing() -> list[str]:
    """What was seen and AWS would have refused."""
    return sorted(map(str, seen - granted()))


def caller(frame: FrameType | None) -> str | None:
    """The function on whose behalf this frame runs; None for what a test does itself, also amid a request.

    What is innermost counts: a request may wait for a worker.
    """
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_FUNCTIONS):
            return name.removeprefix(_FUNCTIONS).partition("/")[0]
        if name.endswith(_WORKER) and "queue" in frame.f_locals:
            return str(frame.f_locals["queue"].value).replace("-", "_")
        if name.endswith(_API) and "group" in frame.f_locals:
            return str(frame.f_locals["group"])
        if name.startswith(_TESTS):
            return None
        frame = frame.f_back
    return None


def note(service: str, operation: str, parameters: dict[str, Any]) -> None:
    """Remembers a call for the function that made it, if one did."""
    function = caller(sys._getframe(1))
    if function is not None:
        seen.update(Permission(function, f"{service}:{action}", *on) for action, *on in _uses(operation, parameters))


def _uses(operation: str, parameters: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Each use as (action, target), or (action, target, kind of partition key) for an item of the table."""
    if "QueueUrl" in parameters:
        yield operation, _queue(parameters["QueueUrl"])
    elif operation == "TransactWriteItems":
        for item in parameters["TransactItems"]:
            yield from ((_LEGS[kind], "Table", *_keys(leg)) for kind, leg in item.items())
    elif "IndexName" in parameters:
        yield operation, f"Table/index/{parameters['IndexName']}"
    elif "RequestItems" in parameters:
        for items in parameters["RequestItems"].values():
            for item in items["Keys"] if operation == "BatchGetItem" else items:
                yield from ((operation, "Table", *_keys(part)) for part in _parts(operation, item))
    else:
        yield operation, "Table", *_keys(parameters)


def _parts(operation: str, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if operation == "BatchGetItem":
        yield {"Key": item}
    else:
        yield from item.values()


def _keys(parameters: dict[str, Any]) -> tuple[str, ...]:
    """The kind of partition key of an item or of a query. Nothing for a call that has none, which no policy allows."""
    values = parameters.get("Key") or parameters.get("Item")
    value = values["pk"] if values else parameters.get("ExpressionAttributeValues", {}).get(":pk")
    return (kind_of(value["S"]),) if value else ()


def kind_of(partition_key: str) -> str:
    name, mark, _ = partition_key.partition("#")
    return f"{name}#*" if mark else name


def _queue(url: str) -> str:
    """The logical id of a queue, from the address that tests/conftest.py made of it."""
    name = "".join(part.capitalize() for part in url.rpartition("/")[2].split("-"))
    return name if name.endswith("DeadLetters") else f"{name}Queue"


@contextmanager
def watched() -> Iterator[None]:
    """While open, every call of the SDK and every use of the signing secret is noted.

    The tests' own queues note theirs.
    """
    inner, ring = BaseClient._make_api_call, keyring.ring

    def outer(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service == "dynamodb":
            note(service, operation, parameters)
        return inner(client, operation, parameters)

    def outer_ring() -> tuple[keyring.SigningKey, ...]:
        function = caller(sys._getframe(1))
        if function is not None:
            seen.add(Permission(function, *_SIGN))
        return ring()

    BaseClient._make_api_call, keyring.ring = outer, outer_ring
    try:
        yield
    finally:
        BaseClient._make_api_call, keyring.ring = inner, ring


class Run:
    """Hooks of pytest: gathers what all processes saw, and judges the run."""

    NAME = "tests/functional/conftest.py::every permission is made use of"

    def __init__(self) -> None:
        self.whole = False
        self.deselected = False

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected |= any(item.path.is_relative_to(FUNCTIONAL) for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        collected = {item.path for item in session.items if item.path.is_relative_to(FUNCTIONAL)}
        self.whole = not self.deselected and collected == {*FUNCTIONAL.rglob("test_*.py")}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over what a process of xdist saw. One that crashed says nothing, and its test has failed."""
        if output := getattr(node, "workeroutput", None):
            seen.update(Permission(*entry) for entry in output["permissions"])
            self.whole |= output["whole"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output |= {"permissions": [[*permission] for permission in seen], "whole": self.whole}
        elif self.whole and exitstatus == pytest.ExitCode.OK:
            self._judge(session)

    def _judge(self, session: pytest.Session) -> None:
        idle = unused()
        report = pytest.TestReport(
            nodeid=self.NAME,
            location=("tests/functional/conftest.py", None, "every permission is made use of"),
            keywords={},
            outcome="failed" if idle else "passed",
            longrepr="template.yaml allows what no functional test was seen to do:\n" + "\n".join(idle)
            if idle
            else None,
            when="call",
        )
        session.config.hook.pytest_runtest_logreport(report=report)
        if idle:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
