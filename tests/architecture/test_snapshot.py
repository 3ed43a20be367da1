"""SnapStart: one snapshot is restored many times, so state created at import must be valid in every copy, at any time.

A snapshot must not contain connections, credentials, timestamps, or random state.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.each import each

ROOT = Path(__file__).parents[2]
PRODUCT = [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
GROUPS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
# Modules whose calls return a time, a random value, a connection, or a credential.
PASSING = {
    "clock",
    "time",
    "datetime",
    "random",
    "secrets",
    "uuid",
    "socket",
    "requests",
    "session",
    "Session",
    "tokens",
}

# Imports one function as Lambda does before a snapshot, with all network access blocked, and reports the state that it
# then holds.
PROGRAM = """
import importlib, json, socket, sys

def refuse(*_):
    raise AssertionError("a connection before the snapshot")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
module = importlib.import_module(sys.argv[1] + ".app")
from controlplane.queues import messages
from controlplane.store.table import table
held = [name for name, made in (("table", table._client), ("queues", messages.sender._client)) if made is not None]
import gc
from controlplane.aws.credentials import CredentialSource
gc.unfreeze()
held += ["credentials" for it in gc.get_objects() if isinstance(it, CredentialSource)]
print(json.dumps({"held": held, "handler": callable(module.handler)}))
"""


def before_snapshot(group: str, program: str = PROGRAM) -> tuple[list[dict], dict]:
    """Returns what the function printed during import, and the state that it held afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", program, group],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **environment,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
            "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT / 'layers/shared'}:{ROOT / 'layers/analysis'}",
            "POWERTOOLS_SERVICE_NAME": group,
        },
    )
    assert done.returncode == 0, done.stderr
    *lines, told = map(json.loads, done.stdout.splitlines())
    return lines, told


@each("group", GROUPS)
class TestEachFunction:
    def test_no_function_has_a_connection_or_credential_in_its_snapshot(self, group: str):
        lines, told = before_snapshot(group)
        assert told == {"held": [], "handler": True}
        if (ROOT / "functions" / group / "routes.py").exists():
            (request,) = lines
            assert (request["requestId"].rpartition("-")[0], request["status"]) == ("before-the-snapshot", 404)
        else:
            assert lines == []


class TestTheseTests:
    @pytest.mark.parametrize(
        ("wrong", "held"),
        [
            ("from controlplane.store.table import table; table.client", ["table", "credentials"]),
            ("from controlplane.queues.messages import sender; sender.client", ["queues", "credentials"]),
        ],
    )
    def test_a_client_created_at_import_is_detected(self, wrong: str, held: list[str]):
        _, told = before_snapshot(
            "billing",
            PROGRAM.replace(
                "from controlplane.queues import messages", f"{wrong}\nfrom controlplane.queues import messages"
            ),
        )
        assert told["held"][:2] == held

    @pytest.mark.parametrize("wrong", ["STARTED = clock.now()", "SALT: str = secrets.token_hex(8)", "x(time.time())"])
    def test_a_time_or_random_value_at_import_is_detected(self, wrong: str):
        assert made_at_import(ast.parse(wrong)) == [1]

    @pytest.mark.parametrize(
        "right", ["def f(): return clock.now()", "START = datetime(2020, 1, 1)", "new = lambda: secrets.token_hex(8)"]
    )
    def test_later_calls_are_allowed(self, right: str):
        assert made_at_import(ast.parse(right)) == []


def made_at_import(tree: ast.AST) -> list[int]:
    """Returns the lines that request a time, a random value, a connection, or a credential at import."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            # Default values are evaluated at import; the body isn't.
            found += [line for default in node.args.defaults for line in made_at_import(ast.Expression(default))]
            continue
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            # A datetime made from constants doesn't depend on the current time.
            fixed = isinstance(node.func, ast.Name) and node.func.id == "datetime"
            if isinstance(root, ast.Name) and root.id in PASSING and not fixed:
                found.append(node.lineno)
        found += made_at_import(node)
    return found


@each("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_reads_the_time_or_a_random_value_at_import(path: Path):
    assert made_at_import(ast.parse(path.read_text())) == []


def test_random_values_come_from_the_system():
    """The `random` module would continue from state in the snapshot, so every copy would draw the same values."""
    for path in PRODUCT:
        names = [
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        ]
        assert "random" not in names, path
