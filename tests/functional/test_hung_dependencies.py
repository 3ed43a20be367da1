"""Hung dependencies: every request ends in time with an error envelope, and no write happens twice.

The time is that of the hung server's clock. The bounds are the guaranteed ones. Most tests shorten the request's
budget, and one uses the defaults.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import system.app
from controlplane.access import web_session
from controlplane.platform.core import deadline, tokens
from controlplane.platform.core.aws_clients import create_client
from controlplane.platform.core.settings import load, settings
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Check, TableUnavailable, table
from tests.functional.device_auth.devices import code_body
from tests.functional.hung_server import FailureMode, HungServer, hung_server
from tests.functional.test_every_route import ANONYMOUS, PAGES, PROTECTED, address
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.calls import Call, Proceed, intercepted, refused
from tests.support.events import rest_event
from tests.support.operations import operations
from tests.support.table import PREPARED
from tests.support.valid_requests import valid_body
from tests.support.world import table_dump

HEALTH_SECONDS, REQUEST_SECONDS = 2, 6
ORGANIZATION = "org_3f8k2m9q7r1s5t6v"
# These don't read the table before they have a well-formed credential or form.
WITHOUT_TABLE = {
    "POST /v1/github/leaked-keys",
    "POST /v1/github/webhooks",
    "GET /v1/regions",
    "GET /openapi.json",
    "GET /.well-known/oauth-authorization-server",
    "GET /.well-known/agent-feedback.json",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/security.txt",
    "GET /assets/{fileName}",
    "GET /badges/{badge}",
    "GET /favicon.ico",
    "GET /robots.txt",
    "GET /docs",
    "GET /docs/{fileName}",
    "GET /docs/rules/{ruleId}",
    "GET /llms.txt",
}


@pytest.fixture
def hurried(monkeypatch):
    """Gives requests a tenth of their time."""
    monkeypatch.setitem(settings.__dict__, "dependency_seconds", 0.45)


@contextmanager
def broken_table(
    monkeypatch: pytest.MonkeyPatch, failure_mode: FailureMode = FailureMode.SILENT
) -> Iterator[HungServer]:
    """Points the table's client to a server that doesn't respond, while open."""
    with hung_server(failure_mode) as server, monkeypatch.context() as patch:
        patch.setitem(vars(table), "client", create_client("dynamodb", server.url))
        yield server


def timed[T](server: HungServer, act: Callable[[], T]) -> tuple[T, float]:
    started = server.time()
    result = act()
    return result, server.time() - started


def check_unavailable(reply: Reply) -> None:
    assert reply.status == 503, reply.text
    assert reply.headers["retry-after"] == "1"
    if reply.body is not None:
        assert reply.code == "SERVICE_UNAVAILABLE"


class TestShippedDefaults:
    def test_health_a_request_and_a_page_end_in_time_with_the_shipped_defaults(self, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "dependency_seconds", load({"TABLE_NAME": "assent"}).dependency_seconds)
        api = DirectApi()
        session = f"{web_session.cookie_name('session')}={tokens.mint('assent_st')}"
        acts: list[Callable[[], Reply]] = [
            lambda: api.get("/health"),
            lambda: api.get("/v1/projects", tokens.mint("assent")),
            lambda: api.get("/v1/me", tokens.mint("assent_at")),
            lambda: api.get("/organizations", headers={"cookie": session}),
        ]
        for failure_mode in (FailureMode.SILENT, FailureMode.TRICKLING):
            with broken_table(monkeypatch, failure_mode) as server:
                (health, health_seconds), *others = [timed(server, act) for act in acts]
            assert (health.status, health.code) == (503, "SERVICE_UNAVAILABLE")
            assert health_seconds < HEALTH_SECONDS
            for reply, seconds in others:
                check_unavailable(reply)
                assert seconds < REQUEST_SECONDS


class AlmostOver:
    """The context of an invocation that Lambda ends in a second."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 1_000


def test_the_calls_of_a_request_end_before_lambda_ends_the_invocation(world):
    left: list[float | None] = []

    def around(call: Call, proceed: Proceed) -> Any:
        left.append(deadline.remaining())
        return proceed()

    event = rest_event("GET", "/v1/me", token=world.person().token)
    with intercepted(table.client, around):
        assert system.app.handler(event, AlmostOver())["statusCode"] == 200
    assert left
    assert all(seconds is not None and seconds < 1 for seconds in left)


@pytest.mark.usefixtures("hurried")
class TestTable:
    @pytest.mark.parametrize("failure_mode", list(FailureMode))
    def test_health_reports_any_failure_of_the_table(self, api, monkeypatch, failure_mode):
        with broken_table(monkeypatch, failure_mode) as server:
            reply, seconds = timed(server, lambda: api.get("/health"))
        assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE")
        assert seconds < HEALTH_SECONDS

    def test_health_reports_that_the_table_is_gone_or_throttled(self, api, monkeypatch):
        with refused(table.client, lambda _: True, "ThrottlingException"):
            replies = [api.get("/health")]
        monkeypatch.setattr(table, "name", "deleted")
        replies.append(api.get("/health"))
        assert [(reply.status, reply.code) for reply in replies] == [(503, "SERVICE_UNAVAILABLE")] * 2

    @pytest.mark.parametrize("failure_mode", list(FailureMode))
    def test_every_route_responds_in_time_whatever_fails_in_the_table(self, monkeypatch, failure_mode):
        api = DirectApi()
        cookie = f"{web_session.cookie_name('session')}={tokens.mint('assent_st')}"

        def send(server: HungServer, operation: Any) -> tuple[str, Reply, float]:
            token = headers = body = None
            path = address(operation, ORGANIZATION)
            if operation in PROTECTED:
                token = tokens.mint("assent_at")
                body = valid_body(operation)
            elif operation in PAGES:
                headers = {"cookie": cookie}
            elif operation in ANONYMOUS:
                body = code_body()
            reply, seconds = timed(
                server, lambda: api.call(operation.method, path, token, json_body=body, headers=headers)
            )
            return operation.name, reply, seconds

        with broken_table(monkeypatch, failure_mode) as server:
            answered = [send(server, operation) for operation in operations()]
        for name, reply, seconds in answered:
            assert seconds < REQUEST_SECONDS, name
            if name in WITHOUT_TABLE:
                assert reply.status < 500, name
            elif name == "GET /health":
                assert reply.status == 503
            else:
                check_unavailable(reply)

    def test_the_table_is_not_called_after_the_deadline(self, monkeypatch):
        with hung_server() as server, monkeypatch.context() as patch, deadline.budget(0.2):
            patch.setitem(vars(table), "client", create_client("dynamodb", server.url))
            for _ in range(3):
                with pytest.raises(TableUnavailable):
                    table.ping()
                with pytest.raises(TableUnavailable):
                    table.transact({"one": Check(keys.organization(ORGANIZATION), "attribute_exists(pk)")}, PREPARED)
            assert server.connections == 1


class TestQueue:
    @pytest.mark.parametrize("failure_mode", list(FailureMode))
    def test_a_scan_is_accepted_and_its_message_waits_in_the_outbox(self, api, world, monkeypatch, failure_mode):
        company = world.company()
        repository = world.connected_repository(company)
        with hung_server(failure_mode) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", server.url)
            monkeypatch.delitem(vars(messages.sender), "client", raising=False)
            monkeypatch.setitem(settings.__dict__, "scan_preparation_queue_url", f"{server.url}/1/scan-preparation")
            assert Queue.SCAN_PREPARATION.url.startswith(server.url)
            reply, seconds = timed(
                server,
                lambda: api.post(
                    "/v1/code-audit/scans",
                    company.owner.token,
                    json_body={"repositoryId": repository.repository_id},
                ),
            )
            assert server.connections > 0 or failure_mode is FailureMode.REFUSING
        assert reply.status == 202
        assert seconds < REQUEST_SECONDS
        assert len([item for item in table_dump() if item["pk"]["S"].startswith("OUTBOX#")]) == 1


@pytest.mark.usefixtures("hurried")
class TestIssuer:
    @pytest.mark.parametrize("failure_mode", list(FailureMode))
    def test_a_sign_in_ends_with_an_error_page(self, api, monkeypatch, failure_mode):
        with hung_server(failure_mode) as server:
            monkeypatch.setattr("dashboard.access.sign_in._providers", {})
            monkeypatch.setitem(settings.__dict__, "sign_in_issuer", server.url)
            monkeypatch.setitem(settings.__dict__, "sign_in_client_id", "pages")
            reply, seconds = timed(server, lambda: api.get("/sign-in"))
        assert reply.status == 503
        assert "sign-in service" in reply.text
        assert seconds < REQUEST_SECONDS
