"""SnapStart: one snapshot is restored many times, so state created at import must be valid in every copy, at any time.

A snapshot must not contain connections, credentials, timestamps, or random state.
"""

import ast
import json
from pathlib import Path

from tests.support.cold_start import run_as_lambda
from tests.support.each import each
from tests.support.scripted_server import Conversation, answer, scripted_server

ROOT = Path(__file__).parents[2]
PRODUCT = [
    path
    for folder in ("layers/shared", "layers/analysis/openassent_analysis", "functions")
    for path in (ROOT / folder).rglob("*.py")
]
# No snapshot is made of the worker of website audits.
GROUPS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/app.py")} - {"website_audits"})
SNAPSHOT = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
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

# Imports the functions as Lambda does before a snapshot, with all network access blocked, and reports the state that
# the process then holds: what one of them holds, all of them do.
PROGRAM = """
import gc, importlib, json, socket, sys

def refuse(*_):
    raise AssertionError("a connection before the snapshot")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
for group in sys.argv[1:]:
    assert callable(importlib.import_module(group + ".app").handler), group
from awsclient.credentials import CredentialSource
from controlplane.platform.queues import messages
from controlplane.platform.table.table import table
held = [name for name, made in (("table", table), ("queues", messages.sender)) if "client" in vars(made)]
gc.unfreeze()
held += ["credentials" for it in gc.get_objects() if isinstance(it, CredentialSource)]
print(json.dumps(held))
"""


def test_no_function_has_a_connection_or_credential_in_its_snapshot():
    *answers, held = map(json.loads, run_as_lambda(PROGRAM, *GROUPS, POWERTOOLS_SERVICE_NAME="test", **SNAPSHOT))
    assert held == []
    # Each function with routes has answered a request.
    with_routes = [group for group in GROUPS if (ROOT / "functions" / group / "routes.py").exists()]
    told = [(it["requestId"].rpartition("-")[0], it["status"]) for it in answers]
    assert told == [("before-the-snapshot", 404)] * len(with_routes)


# Initializes a function, as before a snapshot, and continues from there twice. Each copy tells what it makes.
COPIES = """
import json, os
from system.app import handler
from awsclient.errors import NoAnswer
from awsclient.client import Attempts, Quota
from awsclient.connection import NO_LIMIT
from controlplane.platform.core import ids
from tests.support.events import rest_event

def tell():
    event = rest_event("GET", "/health")
    event["requestContext"].pop("requestId")
    answer = handler(event, None)
    told = {
        "status": answer["statusCode"],
        "ids": [ids.new_root("org"), ids.new_local(), ids.new_part(), answer["headers"]["x-request-id"]],
        "pauses": [Attempts(Quota(), 1.0, NO_LIMIT).pause_after(NoAnswer("lost")) for _ in range(20)],
    }
    print("TOLD" + json.dumps(told), flush=True)

for _ in range(2):
    if os.fork() == 0:
        tell()
        os._exit(0)
    os.wait()
"""


def test_two_copies_of_a_snapshot_have_their_own_ids_pauses_and_credentials():
    given, used = list[str](), list[str]()

    def respond(asked: Conversation) -> bool:
        """Gives new credentials to each who asks, and notes with which ones the table is read."""
        if not asked.head.startswith(b"GET"):
            used.append(asked.headers["authorization"].partition("Credential=")[2].partition("/")[0])
            return answer({})(asked)
        given.append(f"KEY{len(given)}")
        names = {"AccessKeyId": given[-1], "SecretAccessKey": "secret", "Token": "token"}
        return answer({**names, "Expiration": "2100-01-01T00:00:00Z"})(asked)

    with scripted_server(respond) as server:
        settings = {
            "AWS_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL_DYNAMODB": server.url,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials",
        }
        lines = run_as_lambda(COPIES, without=("AWS_",), **SNAPSHOT, **settings)
    one, other = (json.loads(line[4:]) for line in lines if line.startswith("TOLD"))
    assert one["status"] == other["status"] == 200, lines
    assert set(one["ids"]).isdisjoint(other["ids"])
    assert one["pauses"] != other["pauses"]
    # None were requested before the copies were made, and each copy signs with its own.
    assert given == used == ["KEY0", "KEY1"]


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
    """The `random` module would continue from state in the snapshot, so every copy would draw the same values."""
    tree = ast.parse(path.read_text())
    assert made_at_import(tree) == []
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not any("random" in {getattr(it, "module", None), *(name.name for name in it.names)} for it in imports)
