"""The GitHub stand-in on a real socket, a client for it, and GitHub's published OpenAPI schema to check both."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from jsonschema import Draft202012Validator

from controlplane.code_host.github import app_auth, app_pages, client, connecting
from controlplane.code_host.github.app_auth import AppAuth
from controlplane.code_host.github.client import CodeHost
from controlplane.code_host.github.transport import RetryPolicy, Transport
from controlplane.platform.core.settings import settings
from local.github import setup
from local.github.app import create_app
from local.github.host import API
from local.github.secret_scanning import SecretScanning
from local.github.setup import DEMO_OWNER, installation_id, key_file
from local.github.webhooks import Webhooks
from tests.support.documented import FORMATS
from tests.support.github_faults import Exchange, Fault, FaultyStandIn

_DESCRIPTION = Path(__file__).parents[1] / "data" / "github-openapi.json"
# Long enough for the stand-in to respond on a busy machine.
POLICY = RetryPolicy(
    connect_timeout_seconds=20,
    read_timeout_seconds=20,
    total_timeout_seconds=50,
    max_attempts=3,
    first_backoff_seconds=0.01,
)
# For tests with HANG. The responses in between still have to arrive in this time.
SHORT_POLICY = replace(POLICY, read_timeout_seconds=0.8)
HANG = Fault(hang_seconds=1.5)


def policy_for(fault: Fault) -> RetryPolicy:
    return SHORT_POLICY if fault.hang_seconds else POLICY


_apps: list[Any] = []


async def _switch(scope: Any, receive: Any, send: Any) -> None:
    """Calls the current app. A process has a single server, because starting one takes longer than most tests."""
    await _apps[-1](scope, receive, send)


@cache
def _server_port() -> int:
    listener = socket.create_server(("127.0.0.1", 0))
    # The stand-in sends its own Date header, which follows the clock that tests set.
    config = uvicorn.Config(_switch, log_level="critical", lifespan="off", date_header=False, server_header=False)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.005)
    return int(listener.getsockname()[1])


_make_key = cache(rsa.generate_private_key)


@contextmanager
def github(root: Path) -> Iterator["GitHub"]:
    """Runs a stand-in with the demo repository, stored in a folder. Only one at a time per process."""
    with patch.object(rsa, "generate_private_key", _make_key):  # else making it takes longer than a test's requests
        setup.prepare(root)
        stand_in, scanning = FaultyStandIn(root), SecretScanning()
        _apps.append(create_app(stand_in, Webhooks("", setup.webhook_secret(root)), scanning))
        yield GitHub(stand_in, f"http://127.0.0.1:{_server_port()}", root, scanning)
        _apps.pop()


class GitHub:
    """A running stand-in. `slept` records the simulated pauses of its clients between requests."""

    def __init__(self, stand_in: FaultyStandIn, url: str, root: Path, scanning: SecretScanning) -> None:
        self.scanning = scanning
        self.exchanges = stand_in.exchanges
        self.stand_in = stand_in
        self.url = url
        self.root = root
        self.slept: list[float] = []

    def transport(self, policy: RetryPolicy = POLICY) -> Transport:
        return Transport(self.url + API, policy, self.slept.append)

    def auth(self, transport: Transport | None = None) -> AppAuth:
        return AppAuth(transport or self.transport(), setup.APP_ID, key_file(self.root).read_text)

    def host(self, owner: str = DEMO_OWNER, policy: RetryPolicy = POLICY) -> CodeHost:
        """Returns a client with the permissions of the owner's installation."""
        transport = self.transport(policy)
        return CodeHost(transport, self.auth(transport), installation_id(owner))

    def configure(self, monkeypatch: Any) -> None:
        """Sets it as the code host in the settings that `client.connect` uses."""
        variables = {name.lower(): value for name, value in setup.function_variables(self.root, "").items()}
        changed = settings.model_copy(update=variables | {"github_api_url": self.url + API})
        for module in (app_auth, app_pages, client, connecting):
            monkeypatch.setattr(module, "settings", changed)
        client.get_transport.cache_clear()
        connecting._app.cache_clear()

    def sent(self, operation: str) -> list[Any]:
        return [request for request in self.stand_in.requests if request.operation == operation]


def open_pull_request(stand_in: FaultyStandIn, **files: str) -> str:
    """Opens a pull request of the demo repository, whose branch has these changed files. Returns its head commit."""
    return stand_in.open_pull_request(setup.DEMO_OWNER, setup.DEMO_NAME, "A change", files or {"new.js": "1"}).head


@cache
def description() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_DESCRIPTION.read_text())
    return content


def violations(schema: Any, value: Any) -> list[str]:
    """Returns the errors of the value by one of GitHub's schemas."""
    whole = {"$defs": description()["$defs"], "allOf": [schema]}
    errors = Draft202012Validator(whole, format_checker=FORMATS).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def find_operation(exchange: Exchange) -> str:
    """Returns the operation of the exchange. A branch is one path segment, even if it contains slashes."""
    for operation in description()["operations"]:
        method, path = operation.split()
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        if method == exchange.method and re.fullmatch(pattern, exchange.path):
            return str(operation)
    raise AssertionError(f"{exchange.method} {exchange.path} isn't a documented operation")


def request_violations(exchange: Exchange) -> list[str]:
    """Returns the errors of a request by the schema, including undeclared parameters."""
    described = description()["operations"][find_operation(exchange)]
    declared = {it["name"]: it["schema"] for it in described["parameters"] if it["in"] == "query"}
    wrong = [f"{name} is not declared" for name in exchange.query if name not in declared]
    for name, value in exchange.query.items():
        schema = declared.get(name, {})
        wrong += violations(schema, int(value) if schema.get("type") == "integer" else value)
    if exchange.body is not None and not described["body"]:
        wrong.append("there is a body, and none is declared")
    elif exchange.body is not None:
        undeclared = exchange.body.keys() - described["body"]["properties"]
        wrong += violations(described["body"], exchange.body) + [f"{name} is not declared" for name in undeclared]
    return wrong


def response_violations(exchange: Exchange) -> list[str]:
    """Returns the errors of a response by the schema. An undeclared error status must have the basic error shape.

    307 is allowed too: GitHub documents it for its whole API, for writes to a renamed repository.
    """
    answers = description()["operations"][find_operation(exchange)]["answers"]
    if str(exchange.status) not in answers and exchange.status not in {307, *range(400, 600)}:
        return [f"{exchange.status} is not declared"]
    schema = answers.get(str(exchange.status), {"$ref": "#/$defs/basic-error"})
    if schema is None:
        return []
    return violations(schema, json.loads(exchange.answer))
