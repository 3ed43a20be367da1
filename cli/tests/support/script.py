"""Parts that tests of the SDK share. It imports nothing of the application."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx

from openassent import Assent

ADDRESS = "https://api.assent.test"
SECRET = "assent_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine. Unlike asyncio.run, it keeps the thread's event loop, which the functions' handlers need."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class Pauses:
    """A clock that only sleeping moves, and that records how long each sleep was."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


class Script:
    """A service that gives these answers in order, the last one again and again, and records the requests."""

    def __init__(self, *answers: httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]) -> None:
        self.requests: list[httpx.Request] = []
        self._answers: Iterator[Any] = iter(answers)
        self._answer: Any = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self._answer = next(self._answers, self._answer)
        if isinstance(self._answer, Exception):
            raise self._answer
        if isinstance(self._answer, httpx.Response):
            # A response can be sent only once.
            return httpx.Response(self._answer.status_code, headers=self._answer.headers, content=self._answer.content)
        return self._answer(request)  # type: ignore[no-any-return]

    def client(self, **options: Any) -> Assent:
        return Assent(**{"base_url": ADDRESS, "api_key": SECRET, "transport": httpx.MockTransport(self), **options})


def success(data: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"success": True, "data": data}, headers=headers)


def failure(status: int, code: str = "INTERNAL_ERROR", details: Any = None, **headers: str) -> httpx.Response:
    """Returns an error in the service's envelope. Headers are in snake case: `retry_after`."""
    error = {"code": code, "message": "Something is wrong.", **({} if details is None else {"details": details})}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"success": False, "error": error}, headers={"X-Request-Id": "req-1", **sent})


def page(items: list[Any], cursor: str | None = None) -> httpx.Response:
    pagination = {"nextCursor": cursor, "hasMore": cursor is not None}
    return httpx.Response(200, json={"success": True, "data": items, "pagination": pagination})


REGION = {"id": "eu-central", "label": "Frankfurt"}
CODE = {
    "deviceCode": "dc",
    "userCode": "ABCD-EFGH",
    "verificationUri": "https://dashboard.assent.test/device",
    "verificationUriComplete": "https://dashboard.assent.test/device?code=ABCD-EFGH",
    "expiresIn": 60,
    "interval": 5,
}
TOKEN = {"accessToken": "a", "tokenType": "Bearer", "expiresIn": 3600, "refreshToken": "r", "scope": "projects.read"}
ORGANIZATION = {"id": "org_1", "slug": "acme", "name": "Acme", "role": "owner"}
