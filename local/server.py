"""The server of `make run`: every function behind the double of the gateway, and the stand-ins.

It is imported again after every edit.
"""

import asyncio
import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from local import checkout, environment, mail, sign_in, webhook_receiver, workers
from local.front_door import FrontDoor
from local.gateway import Event, Gateway, Request, Response, template_routes
from local.github import setup
from local.github.app import create_app as create_github
from local.github.secret_scanning import SecretScanning
from local.github.stand_in import StandIn
from local.github.webhooks import Webhooks

_TRANSPORT_SECURITY = "strict-transport-security"


class Server:
    """Serves HTTP requests through `respond`, each in a thread, and prints a line for each.

    Never prints queries and headers: they can contain sign-in codes and credentials.
    """

    def __init__(self, respond: Callable[[Request], Response]) -> None:
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http, started_at = HttpRequest(scope, receive), time.perf_counter()
        path, query = scope["raw_path"].decode("ascii", "backslashreplace"), scope["query_string"].decode("latin-1")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        target = f"{path}?{query}" if query else path
        request = Request(http.method, target, headers, await http.body(), scope["client"][0])
        response = await run_in_threadpool(_with_event_loop, self._respond, request)
        await _to_http(response)(scope, receive, send)
        duration_ms = (time.perf_counter() - started_at) * 1000
        request_id = dict(response.headers).get("x-request-id", "-")
        line = f"{http.method} {path} {response.status} {duration_ms:.0f} ms {request_id}"
        print(time.strftime("%H:%M:%S"), line, flush=True)


def _with_event_loop(respond: Callable[[Request], Response], request: Request) -> Response:
    """Responds in a thread, which has no event loop. Handlers need one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return respond(request)
    finally:
        loop.close()


def _to_http(response: Response) -> HttpResponse:
    """Returns the response without the header that is only for HTTPS."""
    answer = HttpResponse(response.body, response.status)
    given = [it for it in response.headers if it[0] != _TRANSPORT_SECURITY]
    if any(name == "content-length" for name, _ in given):
        del answer.headers["content-length"]
    answer.raw_headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
    return answer


def load_handlers() -> dict[str, Callable[[Event, Any], Any]]:
    """Returns the handler of every function with a route, by name."""
    names = {route.function for route in template_routes()}
    return {name: importlib.import_module(f"{name}.app").handler for name in sorted(names)}


def _create_service() -> Server:
    handlers = load_handlers()
    respond = Gateway(lambda function, event: handlers[function](event, None)).respond
    secret = settings.front_door_secret
    return Server(respond if secret is None else FrontDoor(respond, secret.current).respond)


def _create_github() -> Starlette:
    """Returns the GitHub stand-in, which sends its webhooks and reports to this server."""
    service, secret = f"{settings.public_base_url}/v1/github", settings.github_webhook_secret
    webhooks = Webhooks(f"{service}/webhooks", secret.current if secret else "")
    return create_github(StandIn(checkout.DIRECTORY / setup.FOLDER), webhooks, SecretScanning(f"{service}/leaked-keys"))


def _create_mail() -> Starlette:
    """Returns SES's stand-in, whose reports go to the worker's queue, as those of SES do."""
    emails = mail.Emails(checkout.DIRECTORY / mail.FOLDER)
    return mail.create_app(emails, lambda message: messages.send(messages.Queue.EMAILS, message))


def _mount_sign_in() -> list[Mount]:
    """Returns the sign-in page of the user pool, whose ID ends the issuer's. A test that imports this has no pool."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint:
        return []
    client = environment.create_client("cognito-idp", endpoint)
    pool_id = (settings.sign_in_issuer or "").rpartition("/")[2]
    return [Mount(sign_in.PREFIX, sign_in.create_app(client, endpoint, pool_id))]


def _end_with_parent() -> None:
    """Stops this process when the one that watches the files is gone, even if that one was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _start_background_work() -> None:
    """Starts the workers once the server accepts connections: they call the GitHub stand-in."""
    while not checkout.is_listening(urlsplit(settings.public_base_url or "").port or 80):
        pass
    workers.start()


if multiprocessing.parent_process() is not None:  # not in a test that imports this, which has no queues
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Thread(target=_start_background_work, daemon=True).start()

app = Starlette(
    routes=[
        Mount(setup.PREFIX, _create_github()),
        Mount(mail.PREFIX, _create_mail()),
        *_mount_sign_in(),
        Mount(webhook_receiver.PREFIX, webhook_receiver.WebhookReceiver().create_app()),
        Mount("", _create_service()),
    ]
)
