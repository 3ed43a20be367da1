"""SnapStart: one snapshot is restored many times, so state created at import must be valid in every copy, at any time.

A snapshot must not contain connections, credentials, timestamps, or random state.
"""

import ast
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

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
from awsclient.credentials import CredentialSource
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


# Initializes a function, as before a snapshot, and continues from there twice. Each copy tells what it makes.
COPIES = """
import json, os
from system.app import handler
from awsclient.errors import NoAnswer
from awsclient.retries import Attempts, Quota
from controlplane.core import ids
from local.events import rest_event

def tell():
    event = rest_event("GET", "/health")
    event["requestContext"].pop("requestId")
    answer = handler(event, None)
    told = {
        "status": answer["statusCode"],
        "ids": [ids.new_root("org"), ids.new_local(), ids.new_part(), answer["headers"]["x-request-id"]],
        "pauses": [Attempts(Quota(), 1.0).pause_after(NoAnswer("lost")) for _ in range(20)],
    }
    print("TOLD" + json.dumps(told), flush=True)

for _ in range(2):
    if os.fork() == 0:
        tell()
        os._exit(0)
    os.wait()
"""


class _Aws(BaseHTTPRequestHandler):
    """Gives new credentials to each who asks, and notes with which ones the table is read."""

    given: ClassVar[list[str]] = []
    used: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.given.append(f"KEY{len(self.given)}")
        names = {"AccessKeyId": self.given[-1], "SecretAccessKey": "secret", "Token": "token"}
        self._answer({**names, "Expiration": "2100-01-01T00:00:00Z"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.used.append(self.headers["Authorization"].partition("Credential=")[2].partition("/")[0])
        self._answer({})

    def _answer(self, content: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


class TestCopies:
    def test_two_copies_of_a_snapshot_have_their_own_ids_pauses_and_credentials(self):
        with ThreadingHTTPServer(("127.0.0.1", 0), _Aws) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}"
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COV"))}
            done = subprocess.run(
                [sys.executable, "-c", COPIES],
                capture_output=True,
                text=True,
                check=False,
                cwd=ROOT,
                env={
                    **kept,
                    "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
                    "AWS_REGION": "eu-central-1",
                    "AWS_ENDPOINT_URL_DYNAMODB": url,
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/credentials",
                    "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT / 'layers/shared'}:{ROOT}",
                },
            )
            server.shutdown()
        assert done.stderr == ""
        one, other = (json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("TOLD"))
        assert one["status"] == other["status"] == 200, done.stdout
        assert set(one["ids"]).isdisjoint(other["ids"])
        assert one["pauses"] != other["pauses"]
        # None were requested before the copies were made, and each copy signs with its own.
        assert _Aws.given == _Aws.used == ["KEY0", "KEY1"]


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
