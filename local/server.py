"""One ASGI app in front of every function's app, as API Gateway is on AWS. Every edit imports it again."""

import asyncio
import importlib
import multiprocessing
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Iterable
from multiprocessing.connection import wait
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import not_found_app
from controlplane.platform.queues import messages
from local import front_door, gateway, mail
from local.checkout import DIRECTORY, HOST, ROOT
from local.github import setup
from local.github.app import create_app
from local.github.secret_scanning import SecretScanning
from local.github.stand_in import StandIn
from local.github.webhooks import Webhooks
from local.queues import start_pollers
from local.request_log import RequestLog
from local.schedules import start_schedules
from local.webhook_receiver import PREFIX as RECEIVER_PREFIX
from local.webhook_receiver import WebhookReceiver

_PAUSE_SECONDS = 0.05
_TAKES_REPORTS = "/v1/github/leaked-keys"
# The page that asks the stand-in who the person is, and the operation that asks it for its public keys.
_CALLS_GITHUB = {"/github/callback", _TAKES_REPORTS}


def load_apps() -> dict[str, Any]:
    """Returns the app of every function by name. Workers have no app."""
    names = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    modules = {name: importlib.import_module(f"{name}.app") for name in names}
    return {name: module.app for name, module in modules.items() if hasattr(module, "app")}


class Gateway:
    """Hands each request to the app of its route's function, and renames headers of the response, as API Gateway does.

    A request that no route has gets the gateway's own 404, also if the path exists with other methods. A path with an
    encoded slash gets the functions' 404.
    """

    def __init__(self, apps: dict[str, Any], routes: Iterable[gateway.Route] | None = None) -> None:
        self._apps = apps
        self._routes = gateway.template_table() if routes is None else gateway.RouteTable(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._find(scope)(scope, receive, _renaming(send))

    def _find(self, scope: Scope) -> ASGIApp:
        if scope["raw_path"].count(b"/") != scope["path"].count("/"):
            return not_found_app
        route = self._routes.find(scope["method"], scope["raw_path"].decode("latin-1"))
        return _respond_unknown_route if route is None else self._apps[route.function]


async def _respond_unknown_route(scope: Scope, receive: Receive, send: Send) -> None:
    own = gateway.own_response("MISSING_AUTHENTICATION_TOKEN", str(uuid.uuid4()))
    headers = dict(own.headers)
    if scope["scheme"] != "https":
        del headers["strict-transport-security"]
    await Response(own.body, own.status, headers)(scope, receive, send)


def _renaming(send: Send) -> Send:
    """Returns `send` for responses of functions."""

    async def send_renamed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.decode(), value) for name, value in message["headers"]]
            message["headers"] = [(name.encode(), value) for name, value in gateway.rename_headers(headers)]
        await send(message)

    return send_renamed


class FrontDoor:
    """The gateway behind the template's front door, which proves itself with the secret."""

    def __init__(self, gateway: ASGIApp, secret: str) -> None:
        self._gateway = gateway
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_restored(message: Message) -> None:
            if message["type"] == "http.response.start":
                status, headers = front_door.restore_challenge(message["status"], _as_text(message["headers"]))
                message["status"], message["headers"] = status, _as_bytes(headers)
            await send(message)

        if scope["type"] != "http":
            await self._gateway(scope, receive, send)
            return
        headers = front_door.request_headers(_as_text(scope["headers"]), scope["client"][0], self._secret)
        await self._gateway({**scope, "headers": _as_bytes(headers)}, receive, send_restored)


def _as_text(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _as_bytes(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    """Accepts the lifespan protocol without doing anything: the functions have no lifespan on AWS either."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _end_with_parent() -> None:
    """Stops this process when the one that watches the files is gone, even where that one was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=_end_with_parent, daemon=True).start()


def _create_github() -> Starlette:
    """Returns the GitHub stand-in, which sends its webhooks to this server."""
    root = DIRECTORY / setup.FOLDER
    stand_in = StandIn(root)
    webhooks = Webhooks(stand_in, f"{settings.public_base_url}/v1/github/webhooks", setup.webhook_secret(root))
    scanning = SecretScanning(f"{settings.public_base_url}{_TAKES_REPORTS}")
    return Starlette(routes=[Mount(setup.PREFIX, create_app(stand_in, webhooks, scanning))])


_github = _create_github()
_receiver = WebhookReceiver().create_app()


def _create_mail() -> Starlette:
    """Returns SES's stand-in, whose reports go to the worker's queue, as those of SES do."""

    def report(message: dict[str, Any]) -> None:
        messages.send(messages.Queue.EMAILS, message)

    stand_in = mail.create_app(mail.Emails(DIRECTORY / mail.FOLDER), report)
    return Starlette(routes=[Mount(mail.PREFIX, stand_in)])


_mail = _create_mail()


def _start_background_work() -> None:
    """Starts the pollers and schedules once the server accepts connections: their work calls the GitHub stand-in."""
    address = urlsplit(settings.public_base_url)
    while True:
        try:
            socket.create_connection((HOST, address.port or 80), timeout=1).close()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
        else:
            break
    start_pollers()
    start_schedules()


if multiprocessing.parent_process() is not None:  # the server; a test that imports this has no queues
    threading.Thread(target=_start_background_work, daemon=True).start()

_service: ASGIApp = Gateway(load_apps())
if settings.front_door_secret is not None:
    _service = FrontDoor(_service, settings.front_door_secret.current)
_service = RequestLog(_service)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serves the service, and the stand-ins of GitHub and SES and the receiver of webhooks below their prefixes."""
    path = scope["path"] if scope["type"] == "http" else ""
    if path in _CALLS_GITHUB:
        await _in_a_thread(_service, scope, receive, send)
    else:
        await _served_by(path)(scope, receive, send)


def _served_by(path: str) -> ASGIApp:
    if path.startswith(f"{setup.PREFIX}/"):
        return _github
    if path.startswith(f"{RECEIVER_PREFIX}/"):
        return _receiver
    return _mail if path.startswith(f"{mail.PREFIX}/") else _service


async def _in_a_thread(service: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Serves a request with an event loop of its own, because it waits for a response of this server."""
    loop = asyncio.get_running_loop()

    async def receive_there() -> Message:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_result(receive()), loop))

    async def send_there(message: Message) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_result(send(message)), loop))

    await asyncio.to_thread(lambda: asyncio.run(_result(service(scope, receive_there, send_there))))


async def _result[T](awaited: Awaitable[T]) -> T:
    return await awaited
