"""Compares the AWS calls of each function in the functional tests with its policy.

A call that the policy doesn't allow fails the test that made it. If all functional tests ran, an action, resource, or
kind of partition key of a statement that no test used fails the run, which pytest reports as one more test. The call
stack shows which function makes a call.

Permissions on the table are also limited to partition keys (`dynamodb:LeadingKeys`). Policies and recorded calls name a
kind of partition key in the same way: up to the first `#`, then `*`. Reads and writes are separate statements: a kind
that is only read is unused among the writes.

The signing secret counts as a permission: a function may use it if the template sets the variable for it.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import pytest

from awsclient.boto3_client import Boto3Client
from awsclient.client import Client, OwnClient
from controlplane.platform.core import keyring
from controlplane.platform.table import parallel
from tests.support.attributes import record_names
from tests.support.calls import parts_of
from tests.support.template import policies, signing_functions

ROOT = Path(__file__).parents[2]
FUNCTIONAL = ROOT / "tests" / "functional"
_FUNCTIONS = f"{ROOT / 'functions'}/"
_TESTS = f"{FUNCTIONAL}/"
_API, _WORKER = "tests/support/api.py", "controlplane/platform/queues/worker.py"
_INTERCEPTED = "tests/support/calls.py"
# Called only by Lambda itself with the function's role, to poll the function's queue.
_LAMBDA_CALLS = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
# Called once per process if the App's key is in Secrets Manager, which it isn't in functional tests.
# tests/architecture/test_template_permissions.py checks which functions have this permission.
_ELSEWHERE = {"secretsmanager:GetSecretValue"}
_SIGN = ("sign", "SigningSecret")
# In a thread of the product: `by` is the function that started it.
_started = threading.local()


class Permission(NamedTuple):
    """An action of a function (named by its folder) on a resource of the template or an index of its table.

    keys: the kind of partition key, as in `USER#*`. Empty if a policy doesn't limit keys: for queues and indexes.
    """

    function: str
    action: str
    target: str
    keys: str = ""

    def __str__(self) -> str:
        return f"{self.function}: {self.action} on {self.target}{self.keys and f' with keys {self.keys}'}"


used: set[Permission] = set()


@cache
def statements() -> tuple[frozenset[Permission], ...]:
    """Returns the permissions of each statement of the template's policies, except for Lambda's own calls.

    Those that an earlier statement of the function gives are left out, so that a call counts for one statement only.
    Access to the signing secret is a statement of its own.
    """
    found = [frozenset({Permission(function, *_SIGN)}) for function in signing_functions()]
    for function, policy in policies().items():
        before = set[Permission]()
        for statement in policy:
            allowed = {
                Permission(function, action, target, keys)
                for action in statement.actions
                for target in statement.targets
                for keys in statement.keys or [""]
                if action not in _LAMBDA_CALLS | _ELSEWHERE
            }
            found.append(frozenset(allowed - before))
            before |= allowed
    return tuple(found)


@cache
def granted() -> frozenset[Permission]:
    return frozenset().union(*statements())


def unused() -> list[str]:
    """Returns each action, resource, and kind of partition key of a statement that no call used."""
    idle = set()
    for allowed in statements():
        calls = allowed & used
        for function, action, target, keys in allowed:
            if not any(it.action == action for it in calls) or not any(it.target == target for it in calls):
                idle.add(f"{function}: {action} on {target}")
            if keys and not any(it.keys == keys for it in calls):
                actions = ", ".join(sorted({it.action for it in allowed if it.keys == keys}))
                idle.add(f"{function}: {actions} on {target} with keys {keys}")
    return sorted(idle)


def missing() -> list[str]:
    """Returns the permissions that were used but aren't granted."""
    return sorted(map(str, used - granted()))


def caller(frame: FrameType | None) -> str | None:
    """Returns the function whose code this frame runs, or None for the test's own calls, even during a request.

    The innermost frame counts: a request may run a worker. A call that a test intercepts and lets through is the
    function's own.
    """
    while frame is not None:
        if _intercepts(frame, "proceed"):
            frame = _outside(frame)
            continue
        name = frame.f_code.co_filename
        if name.startswith(_FUNCTIONS):
            return name.removeprefix(_FUNCTIONS).partition("/")[0]
        if name.endswith(_WORKER) and "queue" in frame.f_locals:
            queue = str(frame.f_locals["queue"].value).replace("-", "_")
            return "finding_intake" if queue == "audit_reports" else queue
        if name.endswith(_API) and "group" in frame.f_locals:
            return str(frame.f_locals["group"])
        if name.startswith(_TESTS):
            return None
        frame = frame.f_back
    by: str | None = getattr(_started, "by", None)
    return by


class _Pool(ThreadPoolExecutor):
    """Threads whose calls are those of the function that started them."""

    def submit[T](self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        function = caller(sys._getframe(1))

        def run() -> T:
            _started.by = function
            return fn(*args, **kwargs)

        return super().submit(run)


def _intercepts(frame: FrameType, name: str) -> bool:
    """Returns whether the frame is that function of tests/support/calls.py."""
    return frame.f_code.co_name == name and frame.f_code.co_filename.endswith(_INTERCEPTED)


def _outside(frame: FrameType | None) -> FrameType | None:
    """Returns the frame that made the intercepted call, outside those of the test."""
    while frame is not None and not _intercepts(frame, "outer"):
        frame = frame.f_back
    return frame and frame.f_back


def record_call(service: str, operation: str, parameters: dict[str, Any]) -> None:
    """Records a call for the function that made it, if any."""
    function = caller(sys._getframe(1))
    if function is not None:
        used.update(Permission(function, f"{service}:{action}", *on) for action, *on in _uses(operation, parameters))


def _uses(operation: str, parameters: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields each use as (action, target), or (action, target, kind of partition key) for an item of the table."""
    if operation == "SendEmail":
        yield from ((operation, "EmailIdentity"), (operation, "EmailConfiguration"))
    elif "QueueUrl" in parameters:
        yield operation, _queue(parameters["QueueUrl"])
    elif "IndexName" in parameters:
        yield operation, f"Table/index/{parameters['IndexName']}"
    else:  # a transaction requires the permissions of its legs
        yield from ((action, "Table", *_keys(part)) for action, _, part in parts_of(operation, parameters))


def _keys(parameters: dict[str, Any]) -> tuple[str, ...]:
    """Returns the kind of partition key of an item or a query. Empty for other calls, which no policy allows."""
    values = parameters.get("Key") or parameters.get("Item")
    value = values["pk"] if values else parameters.get("ExpressionAttributeValues", {}).get(":pk")
    return (kind_of(value["S"]),) if value else ()


def kind_of(partition_key: str) -> str:
    name, mark, _ = partition_key.partition("#")
    return f"{name}#*" if mark else name


def _queue(url: str) -> str:
    """Returns the logical id of a queue, from the URL that tests/conftest.py derived from it."""
    name = "".join(part.capitalize() for part in url.rpartition("/")[2].split("-"))
    return name if name.endswith("DeadLetters") else f"{name}Queue"


@contextmanager
def watched() -> Iterator[None]:
    """While open, records every call to the table, the attributes that it names, and every use of the signing secret.

    The tests' in-memory queues record their own calls.
    """
    ring = keyring.ring

    def watch(kind: type[Client]) -> AbstractContextManager[Any]:
        inner = kind.call

        def outer(client: Client, operation: str, parameters: dict[str, Any]) -> Any:
            if client.service == "dynamodb":
                record_call(client.service, operation, parameters)
                record_names(operation, parameters)
            return inner(client, operation, parameters)

        return mock.patch.object(kind, "call", outer)

    def outer_ring() -> tuple[keyring.SigningKey, ...]:
        function = caller(sys._getframe(1))
        if function is not None:
            used.add(Permission(function, *_SIGN))
        return ring()

    threads = mock.patch.object(parallel, "ThreadPoolExecutor", _Pool)
    with watch(OwnClient), watch(Boto3Client), mock.patch.object(keyring, "ring", outer_ring), threads:
        yield


class Run:
    """Pytest hooks that collect the permissions used in all processes and check the run."""

    NAME = "tests/functional/conftest.py::every permission is used"

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
        """Collects what an xdist worker recorded. A crashed worker has no output, and its test has failed."""
        if output := getattr(node, "workeroutput", None):
            used.update(Permission(*entry) for entry in output["permissions"])
            self.whole |= output["whole"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output |= {"permissions": [[*permission] for permission in used], "whole": self.whole}
        elif self.whole and exitstatus == pytest.ExitCode.OK:
            self._report_unused(session)

    def _report_unused(self, session: pytest.Session) -> None:
        idle = unused()
        report = pytest.TestReport(
            nodeid=self.NAME,
            location=("tests/functional/conftest.py", None, "every permission is used"),
            keywords={},
            outcome="failed" if idle else "passed",
            longrepr="template.yaml allows actions that no functional test uses:\n" + "\n".join(idle) if idle else None,
            when="call",
        )
        session.config.hook.pytest_runtest_logreport(report=report)
        if idle:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
