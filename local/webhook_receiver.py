"""A receiver of webhooks on this machine, and a page that shows what arrived.

The receiver answers as chosen on the page: 200, 500, a redirect, or nothing at all. The pages of the endpoint show the
deliveries with their retries.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import SweepRun
from local import pages

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

    def create_app(self) -> FastAPI:
        """Returns the ASGI app. It can be mounted at any path."""
        app = FastAPI(openapi_url=None)
        app.get("/")(self._show)
        app.post("/mode")(self._choose)
        app.post("/send")(self._send)
        app.post("/hook")(self._receive)
        return app

    async def _receive(self, request: Request) -> Response:
        mode, body = self.mode, (await request.body()).decode(errors="replace")
        headers = {name: value for name, value in request.headers.items() if name.startswith("webhook-")}
        self.received.appendleft(Received(mode, headers, body))
        if mode == "hang":
            await asyncio.sleep(_HANG_SECONDS)
        if mode == "redirect":
            return RedirectResponse("elsewhere", 302)
        return Response(status_code=500 if mode == "500" else 200)

    async def _choose(self, request: Request) -> RedirectResponse:
        chosen = (await pages.form(request)).get("mode")
        self.mode = chosen if chosen in _MODES else self.mode
        return RedirectResponse("./", 303)

    @staticmethod
    def _send() -> RedirectResponse:
        """Sends what is due in the outbox, as the sweep does every minute."""
        messages.resend(SweepRun("ResentMessages", clock.monotonic() + _SEND_SECONDS))
        return RedirectResponse("./", 303)

    def _show(self, request: Request) -> HTMLResponse:
        received = [
            (it.mode, "\n".join(f"{name}: {value}" for name, value in it.headers.items()), it.body)
            for it in self.received
        ]
        return pages.page(
            request,
            "receiver.html",
            "Webhooks on this machine",
            url=pages.base_url(request),
            mode=self.mode,
            modes=_MODES,
            received=received,
        )
