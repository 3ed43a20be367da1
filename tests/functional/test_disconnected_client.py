"""A client that disconnects before it gets a response doesn't cause a service error."""

import asyncio
import importlib
import json
import time
from typing import Any

import pytest
from starlette.types import Message

from controlplane.platform.table.table import table
from tests.support.logs import captured_logs

PART_OF_A_BODY: Message = {"type": "http.request", "body": b'{"name":', "more_body": True}
WHOLE_BODY: Message = {"type": "http.request", "body": b'{"name":"Acme"}', "more_body": False}
GONE: Message = {"type": "http.disconnect"}


def serve(
    token: str, received: list[Message], *, fails_to_send: bool = False
) -> tuple[list[Message], list[dict[str, Any]]]:
    """Creates an organization through the function's app. Returns the messages it sent and its log lines."""
    app = importlib.import_module("organizations.app").app
    messages, sent = iter(received), []
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    async def receive() -> Message:
        return next(messages, GONE)

    async def send(message: Message) -> None:
        if fails_to_send:
            raise BrokenPipeError
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/v1/organizations",
        "raw_path": b"/v1/organizations",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("198.51.100.7", 443),
        "server": ("api.assent.test", 443),
    }
    loop = asyncio.new_event_loop()
    try:
        with captured_logs() as log:
            loop.run_until_complete(app(scope, receive, send))
    finally:
        loop.close()
    return sent, [json.loads(line) for line in log.getvalue().splitlines()]


@pytest.fixture
def token(world):
    return world.person().token


def test_a_client_that_leaves_while_sending_is_logged_as_a_closed_request(token, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 5.0)
    before = table.client.scan(TableName=table.name)["Count"]
    sent, (line,) = serve(token, [PART_OF_A_BODY, GONE])
    assert sent == []
    logged = line["level"], line["message"], line["status"], line["durationMs"]
    assert logged == ("INFO", "request", 499, 0.0)
    assert table.client.scan(TableName=table.name)["Count"] == before


@pytest.mark.parametrize(("fails_to_send", "status"), [(True, 499), (False, 201)])
def test_a_client_that_leaves_before_the_response_is_logged_and_the_write_remains(token, fails_to_send, status):
    before = table.client.scan(TableName=table.name)["Count"]
    sent, lines = serve(token, [WHOLE_BODY], fails_to_send=fails_to_send)
    assert [it["status"] for it in sent[:1]] == ([] if fails_to_send else [201])
    assert ({line["level"] for line in lines}, lines[-1]["status"]) == ({"INFO"}, status)
    assert table.client.scan(TableName=table.name)["Count"] > before
