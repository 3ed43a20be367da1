"""The log of `make run`: one line for each request, with the id that the response contains."""

import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The request by which `make run` finds out that the server is ready isn't the developer's.
READINESS_PROBE = "assent-readiness-probe"


class RequestLog:
    """Prints time, method, path, status, duration, and request ID of each request of the service.

    Never prints queries and headers: they can contain sign-in codes and credentials.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or Headers(scope=scope).get("user-agent") == READINESS_PROBE:
            await self._app(scope, receive, send)
            return
        started_at = time.perf_counter()

        async def send_and_log(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                duration_ms = (time.perf_counter() - started_at) * 1000
                print(_line(scope, message, duration_ms), flush=True)

        await self._app(scope, receive, send_and_log)


def _line(scope: Scope, start: Message, duration_ms: float) -> str:
    request_id = Headers(raw=start["headers"]).get("x-request-id", "-")
    # As it was sent: a decoded path could contain line breaks.
    path = scope["raw_path"].decode("ascii", "backslashreplace")
    return f"{time.strftime('%H:%M:%S')} {scope['method']} {path} {start['status']} {duration_ms:.0f} ms {request_id}"
