"""The local server routes a request to the same app as API Gateway would."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from local.gateway import Route, body_of
from local.request_log import READINESS_PROBE, RequestLog
from local.server import FrontDoor, Gateway, load_apps
from tests.support.template import gateway_responses


def make_app(name: str, *routes: tuple[str, str]) -> FastAPI:
    async def answer() -> PlainTextResponse:
        return PlainTextResponse(name)

    app = FastAPI(openapi_url=None)
    for method, path in routes:
        app.add_api_route(path, answer, methods=[method])
    return app


async def send(app: Any, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://local.test") as client:
        return await client.request(method, path, headers=headers)


def run(sending: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
    # Not asyncio.run: it leaves the thread without an event loop, which the functions' handlers need.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(sending)
    finally:
        loop.close()


@pytest.fixture
def ask():
    routes = {
        "projects": [("GET", "/v1/projects/{projectId}"), ("GET", "/v1/projects")],
        "keys": [("POST", "/v1/keys"), ("GET", "/v1/projects/special")],
    }
    gateway = Gateway(
        {name: make_app(name, *own) for name, own in routes.items()},
        [Route(method, path, name) for name, own in routes.items() for method, path in own],
    )

    def ask(method: str, path: str) -> tuple[int, str]:
        response = run(send(gateway, method, path, {}))
        return response.status_code, response.text

    return ask


class TestGateway:
    def test_the_gateway_finds_the_app_with_the_route(self, ask):
        assert ask("GET", "/v1/projects/prj_1") == (200, "projects")
        assert ask("POST", "/v1/keys") == (200, "keys")

    def test_the_gateway_prefers_the_path_with_fewer_parameters(self, ask):
        assert ask("GET", "/v1/projects/special") == (200, "keys")

    def test_the_gateway_responds_to_unknown_paths_and_methods_as_the_template_says(self, ask):
        declared = gateway_responses()["MISSING_AUTHENTICATION_TOKEN"]
        _, text = body_of(declared)
        for method, path in (
            ("GET", "/v1/nothing"),
            ("GET", "/v1/projects/"),
            ("GET", "//v1/projects"),
            ("GET", "/V1/projects"),
            ("DELETE", "/v1/keys"),
            ("OPTIONS", "/v1/projects"),
        ):
            assert ask(method, path) == (404, text), (method, path)


class TestLoadApps:
    def test_every_function_with_an_app_is_loaded(self):
        assert {"system", "organizations", "members", "projects", "api_keys", "billing"} <= load_apps().keys()


class TestFrontDoor:
    def test_the_front_door_changes_headers_of_requests_and_responses_as_the_templates_does(self):
        async def gateway(scope: Scope, receive: Receive, send: Send) -> None:
            headers = Headers(scope=scope)
            assert headers.getlist("x-front-door") == ["secret"]
            assert headers.getlist("true-client-ip") == ["127.0.0.1"]
            renamed = {"x-amzn-remapped-www-authenticate": "Bearer", "x-front-door-status": "401"}
            await PlainTextResponse("no", 200, renamed)(scope, receive, send)

        sent = {"X-Front-Door": "guessed", "True-Client-IP": "198.51.100.1"}
        response = run(send(FrontDoor(gateway, "secret"), "GET", "/v1/me", sent))
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert "x-front-door-status" not in response.headers


class TestRequestLog:
    def test_queries_credentials_and_line_breaks_are_not_printed(self, capsys):
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("", 303, {"x-request-id": "1-2"})(scope, receive, send)

        log = RequestLog(app)
        run(send(log, "GET", "/sign-in/callback%0a?code=secret", {"Authorization": "Bearer secret"}))
        run(send(log, "GET", "/v1/regions", {"User-Agent": READINESS_PROBE}))
        assert re.fullmatch(r"\d\d:\d\d:\d\d GET /sign-in/callback%0a 303 \d+ ms 1-2\n", capsys.readouterr().out)
