"""Clients of the SDK whose requests go through the functions' handlers."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from cli.tests.support.script import ADDRESS
from openassent import Assent
from tests.support.api import Api


class Gateway(httpx.BaseTransport):
    """Forwards requests to the functions, as the gateway does.

    losing: how many responses to lose, after the functions have done what was requested.
    """

    def __init__(self, api: Api) -> None:
        self.losing = 0
        self.requests: list[httpx.Request] = []
        self._api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._send(self._api, request)

    def _send(self, api: Api, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        target = str(request.url).removeprefix(ADDRESS)
        headers = {name.title(): value for name, value in request.headers.items()}
        reply = api.call(request.method, target, raw_body=request.read() or None, headers=headers)
        if self.losing:
            self.losing -= 1
            raise httpx.ReadError("The connection was reset.", request=request)
        return httpx.Response(reply.status, headers=reply.headers, text=reply.text)


@pytest.fixture
def gateway(api: Api) -> Gateway:
    return Gateway(api)


@pytest.fixture
def connect(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Assent]:
    """Returns clients with a credential. Their retries don't pause."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    def create(token: str | None = None, **options: Any) -> Assent:
        return Assent(base_url=ADDRESS, api_key=token, transport=gateway, **options)

    return create
