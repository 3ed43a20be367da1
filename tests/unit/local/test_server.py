"""The local server passes HTTP requests to the double of the gateway, and sends what it responds."""

import asyncio
import re

import httpx

from local.gateway import Request, Response
from local.server import Server, load_handlers
from tests.support.template import routes_by_group

REQUEST_ID = ("x-request-id", "1-2")


def send(response: Response, method: str, url: str, **options) -> tuple[httpx.Response, Request]:
    """Returns the HTTP response, and the gateway's request."""
    sent = []

    def respond(request: Request) -> Response:
        sent.append(request)
        return response

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(Server(respond), client=("198.51.100.7", 443))
        async with httpx.AsyncClient(transport=transport, base_url="http://local.test") as client:
            return await client.request(method, url, **options)

    # Not `asyncio.run`, which would take away the loop of the functions' handlers.
    loop = asyncio.new_event_loop()
    try:
        answer = loop.run_until_complete(call())
    finally:
        loop.close()
    (request,) = sent
    return answer, request


def test_a_request_reaches_the_gateway_as_it_was_sent():
    headers = [("X-A", "1"), ("x-a", "2"), ("Authorization", "Bearer x")]
    _, request = send(Response(200, [], b""), "POST", "/v1/a%2fb?q=%20&q=2", headers=headers, content=b"\xff")
    assert (request.method, request.target, request.body) == ("POST", "/v1/a%2fb?q=%20&q=2", b"\xff")
    assert request.source_ip == "198.51.100.7"
    assert [value for name, value in request.headers if name.lower() == "x-a"] == ["1", "2"]


def test_a_response_is_sent_with_a_length_and_each_of_its_headers_except_the_one_for_https():
    cookies = [("set-cookie", "a=1"), ("set-cookie", "b=2")]
    length, secure = ("content-length", "4"), ("strict-transport-security", "max-age=31536000")
    for given in ([*cookies, REQUEST_ID, secure], [*cookies, REQUEST_ID, length, secure]):
        answer, _ = send(Response(404, given, b"text"), "GET", "/v1/me")
        assert (answer.status_code, answer.content) == (404, b"text")
        assert sorted(answer.headers.multi_items()) == sorted([*cookies, REQUEST_ID, length])


def test_queries_credentials_and_line_breaks_are_not_printed(capsys):
    url, headers = "/sign-in/callback%0a?code=secret", {"Authorization": "Bearer secret"}
    send(Response(303, [REQUEST_ID], b""), "GET", url, headers=headers)
    assert re.fullmatch(r"\d\d:\d\d:\d\d GET /sign-in/callback%0a 303 \d+ ms 1-2\n", capsys.readouterr().out)


def test_every_function_with_a_route_is_loaded():
    assert load_handlers().keys() == routes_by_group().keys()
