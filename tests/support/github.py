"""The GitHub stand-in behind a real socket, a client of it, and GitHub's published description to compare both with."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from jsonschema import Draft202012Validator, FormatChecker

from controlplane.github import app_auth, client
from controlplane.github.app_auth import AppAuth
from controlplane.github.client import CodeHost
from controlplane.github.transport import Patience, Transport
from local.github import setup
from local.github.app import API, create_app
from local.github.setup import DEMO_OWNER, installation_id, key_file
from local.github.stand_in import StandIn

_DESCRIPTION = Path(__file__).parents[1] / "data" / "github-openapi.json"
# Short, so that a test which waits for a timeout does not wait long.
PATIENCE = Patience(connect_seconds=1, read_seconds=0.4, total_seconds=3, tries=3, first_pause_seconds=0.01)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address at which the ASGI app answers, over a socket of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    # The Date header is the stand-in's own, so that it follows the clock that tests set.
    config = uvicorn.Config(app, log_level="critical", lifespan="off", date_header=False, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(5)
        listener.close()


@contextmanager
def github(root: Path) -> Iterator["GitHub"]:
    """A stand-in with the demo repository, over a new folder."""
    setup.prepare(root)
    stand_in = StandIn(root)
    with served(create_app(stand_in)) as url:
        yield GitHub(stand_in, url, root)


class GitHub:
    """A served stand-in. `slept` is how long its clients waited between requests, without waiting."""

    def __init__(self, stand_in: StandIn, url: str, root: Path) -> None:
        self.stand_in = stand_in
        self.url = url
        self.root = root
        self.slept: list[float] = []

    def transport(self, patience: Patience = PATIENCE) -> Transport:
        return Transport(self.url + API, patience, self.slept.append)

    def auth(self, transport: Transport | None = None) -> AppAuth:
        return AppAuth(transport or self.transport(), setup.APP_ID, key_file(self.root).read_text)

    def host(self, owner: str = DEMO_OWNER, patience: Patience = PATIENCE) -> CodeHost:
        """A client with the rights of the owner's installation."""
        transport = self.transport(patience)
        return CodeHost(transport, self.auth(transport), installation_id(owner))

    def configure(self, monkeypatch: Any) -> None:
        """Makes it the code host of the settings, which `client.connect` asks."""
        variables = {name.lower(): value for name, value in setup.function_variables(self.root, "").items()}
        changed = client.settings.model_copy(update=variables | {"github_api_url": self.url + API})
        monkeypatch.setattr(client, "settings", changed)
        monkeypatch.setattr(app_auth, "settings", changed)
        client._app.cache_clear()

    def sent(self, operation: str) -> list[Any]:
        return [request for request in self.stand_in.requests if request.operation == operation]


@cache
def description() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_DESCRIPTION.read_text())
    return content


def complaints(schema: Any, value: Any) -> list[str]:
    """What is wrong with the value by one of the description's schemas."""
    whole = {"$defs": description()["$defs"], "allOf": [schema]}
    errors = Draft202012Validator(whole, format_checker=_formats()).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def parameter_complaints(operation: str, query: dict[str, str]) -> list[str]:
    """What is wrong with the query: values that the description does not take, and names that it does not know."""
    declared = {it["name"]: it["schema"] for it in description()["operations"][operation]["parameters"]}
    wrong = [f"{name} is not declared" for name in query if name not in declared]
    for name, value in query.items():
        schema = declared.get(name, {})
        wrong += complaints(schema, int(value) if schema.get("type") == "integer" else value)
    return wrong


def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())

    @checker.checks("date-time", raises=ValueError)
    def _is_date_time(value: object) -> bool:
        return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None

    @checker.checks("uri", raises=ValueError)
    def _is_uri(value: object) -> bool:
        return not isinstance(value, str) or bool(urlsplit(value).scheme and " " not in value)

    return checker
