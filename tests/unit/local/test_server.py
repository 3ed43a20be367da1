"""The local server routes a request to the same app as API Gateway would."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from local.server import Gateway, load_apps
from tests.support.template import gateway_responses


def make_app(name: str, *routes: tuple[str, str]) -> Starlette:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(name)

    return Starlette(routes=[Route(path, answer, methods=[method]) for method, path in routes])


@pytest.fixture
def ask():
    gateway = Gateway(
        {
            "projects": make_app("projects", ("GET", "/v1/projects/{projectId}"), ("GET", "/v1/projects")),
            "keys": make_app("keys", ("POST", "/v1/keys"), ("GET", "/v1/projects/special")),
        }
    )

    async def send(method: str, path: str) -> httpx.Response:
        transport = httpx.ASGITransport(gateway)
        async with httpx.AsyncClient(transport=transport, base_url="http://local.test") as client:
            return await client.request(method, path)

    def run(method: str, path: str) -> tuple[int, str]:
        # Not asyncio.run: it leaves the thread without an event loop, which the functions' handlers need.
        loop = asyncio.new_event_loop()
        try:
            response = loop.run_until_complete(send(method, path))
        finally:
            loop.close()
        return response.status_code, response.text

    return run


class TestGateway:
    def test_the_gateway_finds_the_app_with_the_route(self, ask):
        assert ask("GET", "/v1/projects/prj_1") == (200, "projects")
        assert ask("POST", "/v1/keys") == (200, "keys")

    def test_the_gateway_prefers_the_path_with_fewer_parameters(self, ask):
        assert ask("GET", "/v1/projects/special") == (200, "keys")

    def test_the_gateway_responds_to_unknown_paths_and_methods_as_the_template_says(self, ask):
        declared = gateway_responses()["MISSING_AUTHENTICATION_TOKEN"]
        text = declared["ResponseTemplates"]["application/json"]
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
