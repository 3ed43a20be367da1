"""A receiver of webhooks on this machine, and a page that shows every delivery, so that retries can be watched.

The receiver answers as chosen on the page: 200, 500, a redirect, or nothing at all.
"""

import asyncio
import html
from collections import deque
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import codec, keys
from controlplane.platform.table.table import table

PREFIX = "/webhook-receiver"
_MODES = {
    "200": "answers 200",
    "500": "answers 500",
    "redirect": "redirects to another address",
    "hang": "doesn't answer for 30 seconds",
}
_HANG_SECONDS = 30
_SEND_SECONDS = 10
_MOST_KEPT = 50


class Received(NamedTuple):
    """A request as it arrived, and how it was answered."""

    mode: str
    headers: dict[str, str]
    body: str


class WebhookReceiver:
    """The receiver's mode, and the latest requests, the newest first."""

    def __init__(self) -> None:
        self.mode = "200"
        self.received: deque[Received] = deque(maxlen=_MOST_KEPT)

    def create_app(self) -> Starlette:
        """Returns the ASGI app, for paths below PREFIX."""
        routes = [
            Route(f"{PREFIX}/", self._show, methods=["GET"]),
            Route(f"{PREFIX}/mode", self._choose, methods=["POST"]),
            Route(f"{PREFIX}/send", self._send, methods=["POST"]),
            Route(f"{PREFIX}/hook", self._receive, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    async def _receive(self, request: Request) -> Response:
        mode, body = self.mode, (await request.body()).decode(errors="replace")
        headers = {name: value for name, value in request.headers.items() if name.startswith("webhook-")}
        self.received.appendleft(Received(mode, headers, body))
        if mode == "hang":
            await asyncio.sleep(_HANG_SECONDS)
        if mode == "redirect":
            return RedirectResponse(f"{PREFIX}/elsewhere", 302)
        return Response(status_code=500 if mode == "500" else 200)

    async def _choose(self, request: Request) -> Response:
        chosen = (await request.body()).decode(errors="replace").removeprefix("mode=")
        self.mode = chosen if chosen in _MODES else self.mode
        return RedirectResponse(f"{PREFIX}/", 303)

    async def _send(self, _request: Request) -> Response:
        await run_in_threadpool(_send_due)
        return RedirectResponse(f"{PREFIX}/", 303)

    async def _show(self, request: Request) -> Response:
        deliveries = await run_in_threadpool(_list_deliveries)
        return HTMLResponse(_page(str(request.base_url).rstrip("/"), self, deliveries))


def _send_due() -> None:
    """Sends what is due in the outbox, as the sweep does every minute."""
    messages.resend(SweepRun("ResentMessages", clock.monotonic() + _SEND_SECONDS))


def _list_deliveries() -> list[dict[str, Any]]:
    """Returns every delivery of the local table, the latest first. Only a local table is small enough for that."""
    found: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = table.client.scan(TableName=table.name, **start)
        items = (item for item in page["Items"] if item["sk"]["S"].startswith(keys.WEBHOOK_DELIVERY_PREFIX))
        found += [codec.decode_item(item) for item in items]
        if "LastEvaluatedKey" not in page:
            return sorted(found, key=lambda item: item["createdAt"], reverse=True)
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _page(base_url: str, receiver: WebhookReceiver, deliveries: list[dict[str, Any]]) -> str:
    modes = "".join(
        f'<button name=mode value="{mode}"{" disabled" if mode == receiver.mode else ""}>{text}</button> '
        for mode, text in _MODES.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Webhooks on this machine</title>"
        "<h1>Webhooks on this machine</h1>"
        f"<p>Create an endpoint with the URL <code>{html.escape(base_url)}{PREFIX}/hook</code> on the page Webhooks of "
        f"an organization. The receiver {_MODES[receiver.mode]}. A retry is due a minute after the first failure.</p>"
        f'<form method=post action="{PREFIX}/mode">{modes}</form>'
        f"<form method=post action='{PREFIX}/send'><button>Send what is due now</button></form>"
        f"<h2>Deliveries</h2>{_deliveries(deliveries)}<h2>Received</h2>{_received(receiver)}</html>"
    )


def _deliveries(deliveries: list[dict[str, Any]]) -> str:
    rows = (
        (
            item["createdAt"],
            item["event"],
            item["webhookId"],
            item["status"],
            item["attempts"],
            ", ".join(str(it.get("status") or it.get("error")) for it in item["log"]),
            item.get("nextAttemptAt") or "",
        )
        for item in deliveries
    )
    return _table(("Created", "Event", "Endpoint", "Status", "Attempts", "Results", "Next attempt"), rows)


def _received(receiver: WebhookReceiver) -> str:
    rows = (
        (it.mode, "\n".join(f"{name}: {value}" for name, value in it.headers.items()), it.body)
        for it in receiver.received
    )
    return _table(("Answer", "Headers", "Body"), rows)


def _table(head: tuple[str, ...], rows: Any) -> str:
    cells = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td><pre>{html.escape(str(cell))}</pre></td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table border=1><tr>{cells}</tr>{body}</table>"
