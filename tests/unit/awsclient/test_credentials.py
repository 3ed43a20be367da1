"""Credentials come from the environment or from the address it names, and are renewed before they end."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from awsclient import credentials
from awsclient.connection import Response
from awsclient.credentials import CredentialSource
from awsclient.endpoints import Endpoint
from awsclient.errors import CredentialsUnavailable, Misconfigured
from awsclient.signing import Credentials
from awsclient.time_limit import TimeLimit
from controlplane.core import deadline
from tests.support.scripted_server import Conversation, Step, answer, hang_up, raw, scripted_server

START = 1_772_600_767.0
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
             "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
             "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")  # fmt: skip


class Clock:
    def __init__(self) -> None:
        self.seconds = START

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(autouse=True)
def now(monkeypatch) -> Clock:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def paused(monkeypatch) -> list[float]:
    """Returns the pauses that were requested. None is made."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


@pytest.fixture
def use(monkeypatch) -> Callable[..., None]:
    def use(url: str, **variables: str) -> None:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return use


def grant(name: str, seconds: float = 3600, since: float = START) -> Step:
    ends = datetime.fromtimestamp(since + seconds, UTC).isoformat().replace("+00:00", "Z")
    return answer({"AccessKeyId": name, "SecretAccessKey": f"secret {name}", "Token": "t", "Expiration": ends})


class TestEnvironment:
    def test_variables_come_first_and_are_read_for_each_request(self, use, monkeypatch):
        source = CredentialSource()
        for name in ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            with monkeypatch.context() as patch:
                patch.setenv(name, "alone")
                with pytest.raises(CredentialsUnavailable):
                    source.current()
        with scripted_server(grant("unused")) as server:
            use(server.url, AWS_ACCESS_KEY_ID="one", AWS_SECRET_ACCESS_KEY="secret")
            assert source.current() == Credentials("one", "secret", None)
            use(server.url, AWS_ACCESS_KEY_ID="two", AWS_SESSION_TOKEN="session")
            assert source.current() == Credentials("two", "secret", "session")
            assert server.connections == 0


class TestContainer:
    def test_the_address_gets_the_token_and_is_asked_once(self, use, tmp_path):
        with scripted_server(grant("one")) as server:
            use(f"{server.url}/2021-04-23/credentials?a=b", AWS_CONTAINER_AUTHORIZATION_TOKEN="a token")
            source = CredentialSource()
            assert [source.current() for _ in range(3)] == [Credentials("one", "secret one", "t")] * 3
            (request,) = server.requests
            assert request.head.startswith(b"GET /2021-04-23/credentials?a=b HTTP/1.1\r\n")
            assert request.headers["authorization"] == "a token"
            (tmp_path / "token").write_text("another")
            use(server.url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(tmp_path / "token"))
            CredentialSource().current()
            assert server.requests[1].headers["authorization"] == "another"

    def test_a_relative_address_leads_to_the_containers_own_host(self, use, monkeypatch):
        asked: list[str] = []

        def send(endpoint: Endpoint, request: bytes, limit: TimeLimit) -> Response:
            asked.append(f"{endpoint.host} {request.decode().splitlines()[0]}")
            raise OSError

        monkeypatch.setattr(credentials, "_send", send)
        use("http://127.0.0.1:1", AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="/v2/credentials?a=b")
        with pytest.raises(CredentialsUnavailable):
            CredentialSource().current()
        assert asked == ["169.254.170.2 GET /v2/credentials?a=b HTTP/1.1"] * 3

    def test_credentials_are_renewed_before_they_end(self, use, now):
        with scripted_server(grant("one"), grant("two", 7200)) as server:
            use(server.url)
            source = CredentialSource()
            for seconds, name in ((0, "one"), (2999, "one"), (3001, "two"), (6000, "two")):
                now.seconds = START + seconds
                assert source.current().access_key == name
            assert len(server.requests) == 2

    def test_old_credentials_are_used_until_they_end_if_new_ones_cant_be_had(self, use, now):
        with scripted_server(grant("one"), answer({}, 500)) as server:
            use(server.url)
            source = CredentialSource()
            source.current()
            now.seconds += 3100
            assert [source.current().access_key for _ in range(3)] == ["one"] * 3
            assert len(server.requests) == 1 + 3  # tried once, with two repetitions
            now.seconds += 60
            assert source.current().access_key == "one"
            assert len(server.requests) == 1 + 6
            now.seconds = START + 3600
            with pytest.raises(CredentialsUnavailable):
                source.current()
            server.steps[:] = [grant("two", 7200)]
            assert source.current().access_key == "two"

    def test_one_thread_renews_while_others_use_the_old_ones(self, use, now):
        asked, released = threading.Event(), threading.Event()

        def slowly(conversation: Conversation) -> bool:
            asked.set()
            assert released.wait(10)
            return grant("two", 7200)(conversation)

        with scripted_server(grant("one"), slowly) as server:
            use(server.url)
            source = CredentialSource()
            source.current()
            now.seconds += 3100
            renewing = threading.Thread(target=source.current)
            renewing.start()
            assert asked.wait(10)
            assert source.current().access_key == "one"
            now.seconds = START + 3600
            with ThreadPoolExecutor(1) as others:  # the old ones have ended
                waiting = others.submit(source.current)
                released.set()
                assert waiting.result().access_key == "two"
            renewing.join()
            assert source.current().access_key == "two"
            assert len(server.requests) == 2

    def test_credentials_that_end_soon_are_not_requested_for_every_call(self, use):
        with scripted_server(grant("one", 120)) as server:
            use(server.url)
            source = CredentialSource()
            for _ in range(5):
                source.current()
            assert len(server.requests) == 1

    def test_a_failed_attempt_is_repeated(self, use, paused):
        for fault in (hang_up, answer({}, 500), raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
                      answer(b"[]"), answer(b"no JSON"), grant("expired", -1)):  # fmt: skip
            with scripted_server(fault, fault, grant("one")) as server:
                use(server.url)
                assert CredentialSource().current().access_key == "one"
            assert paused == [0.1, 0.2]
            with scripted_server(fault) as server:
                use(server.url)
                with pytest.raises(CredentialsUnavailable):
                    CredentialSource().current()
                assert len(server.requests) == 3
            paused.clear()

    def test_no_attempt_is_repeated_after_the_deadline(self, use, paused):
        use("http://127.0.0.1:1")
        with deadline.budget(0), pytest.raises(CredentialsUnavailable):
            CredentialSource(TimeLimit(deadline.remaining)).current()
        assert paused == []

    def test_only_trusted_hosts_are_asked(self, use, monkeypatch):
        for url in ("http://example.com/", "http://10.0.0.1/", "ftp://127.0.0.1/"):
            use(url)
            with pytest.raises(Misconfigured):
                CredentialSource().current()
        with scripted_server(grant("one")) as server:
            use(f"http://localhost:{server.port}")
            assert CredentialSource().current().access_key == "one"
        for token in ("a\rb: c", "a\nb: c"):
            use("http://127.0.0.1:1", AWS_CONTAINER_AUTHORIZATION_TOKEN=token)
            with pytest.raises(Misconfigured):
                CredentialSource().current()
        use("http://127.0.0.1:1", AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="/nowhere/token")
        with pytest.raises(CredentialsUnavailable):
            CredentialSource().current()
        monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        monkeypatch.setattr(credentials, "_is_trusted", lambda host: False)
        use("https://127.0.0.1:1")  # any host that proves its name
        with pytest.raises(CredentialsUnavailable):
            CredentialSource().current()
