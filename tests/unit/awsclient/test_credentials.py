"""Credentials come from the environment or from the address it names, and are renewed before they end."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from awsclient import credentials
from awsclient.connection import TimeLimit
from awsclient.credentials import Credentials, CredentialSource
from awsclient.errors import CredentialsUnavailable, Misconfigured
from tests.support.scripted_server import Conversation, Step, answer, hang_up, raw, scripted_server

START = 1_772_600_767.0
URL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"


@pytest.fixture(autouse=True)
def now(monkeypatch, paused) -> SimpleNamespace:
    """Returns a clock that tests set. The environment has no credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    clock = SimpleNamespace(seconds=START)
    monkeypatch.setattr(time, "time", lambda: clock.seconds)
    return clock


def grant(name: str, seconds: float = 3600) -> Step:
    ends = datetime.fromtimestamp(START + seconds, UTC).isoformat().replace("+00:00", "Z")
    return answer({"AccessKeyId": name, "SecretAccessKey": f"secret {name}", "Token": "t", "Expiration": ends})


def test_variables_come_first_and_are_read_for_each_request(monkeypatch):
    source = CredentialSource()
    for name in ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "alone")
            with pytest.raises(CredentialsUnavailable):
                source.current()
    monkeypatch.setenv(URL, "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name, token in (("one", None), ("two", "session")):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
        if token:
            monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        assert source.current() == Credentials(name, "secret", token)


class TestContainer:
    def test_the_address_gets_the_token_and_is_asked_once(self, monkeypatch, tmp_path):
        with scripted_server(grant("one")) as server:
            monkeypatch.setenv(URL, f"{server.url}/2021-04-23/credentials?a=b")
            monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a token")
            source = CredentialSource()
            assert [source.current() for _ in range(3)] == [Credentials("one", "secret one", "t")] * 3
            (tmp_path / "token").write_text("another")
            monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
            CredentialSource().current()
            assert [request.headers["authorization"] for request in server.requests] == ["a token", "another"]
            assert server.requests[0].head.startswith(b"GET /2021-04-23/credentials?a=b HTTP/1.1\r\n")

    def test_a_relative_address_leads_to_the_containers_own_host(self, monkeypatch):
        asked: list[str] = []

        def send(endpoint, request, _):
            asked.append(f"{endpoint.host} {request.decode().splitlines()[0]}")
            raise OSError

        monkeypatch.setattr(credentials, "_send", send)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials?a=b")
        with pytest.raises(CredentialsUnavailable):
            CredentialSource().current()
        assert asked == ["169.254.170.2 GET /v2/credentials?a=b HTTP/1.1"] * 3

    def test_credentials_are_renewed_before_they_end(self, monkeypatch, now):
        with scripted_server(grant("one"), grant("two", 7200)) as server:
            monkeypatch.setenv(URL, server.url)
            source = CredentialSource()
            for seconds, name in ((0, "one"), (2999, "one"), (3000, "two"), (6000, "two")):
                now.seconds = START + seconds
                assert source.current().access_key == name
            assert len(server.requests) == 2

    def test_old_credentials_are_used_until_they_end_if_new_ones_are_unavailable(self, monkeypatch, now):
        with scripted_server(grant("one"), answer({}, 500)) as server:
            monkeypatch.setenv(URL, server.url)
            source = CredentialSource()
            # Tried once, with two repetitions, and again after half a minute.
            for seconds, requests in ((0, 1), (3100, 4), (3100, 4), (3160, 7)):
                now.seconds = START + seconds
                assert source.current().access_key == "one"
                assert len(server.requests) == requests
            now.seconds = START + 3600
            with pytest.raises(CredentialsUnavailable):
                source.current()
            server.steps[:] = [grant("two", 7200)]
            assert source.current().access_key == "two"

    def test_one_thread_renews_while_others_use_the_old_ones(self, monkeypatch, now):
        asked, released = threading.Event(), threading.Event()

        def slowly(conversation: Conversation) -> bool:
            asked.set()
            assert released.wait(10)
            return grant("two", 7200)(conversation)

        with scripted_server(grant("one"), slowly) as server, ThreadPoolExecutor(2) as threads:
            monkeypatch.setenv(URL, server.url)
            source = CredentialSource()
            source.current()
            now.seconds += 3100
            renewing = threads.submit(source.current)
            assert asked.wait(10)
            assert source.current().access_key == "one"
            now.seconds = START + 3600  # the old ones have ended
            waiting = threads.submit(source.current)
            released.set()
            assert {renewing.result().access_key, waiting.result().access_key} == {"two"}
            assert len(server.requests) == 2

    def test_credentials_that_end_soon_are_not_requested_for_every_call(self, monkeypatch):
        with scripted_server(grant("one", 120)) as server:
            monkeypatch.setenv(URL, server.url)
            source = CredentialSource()
            for _ in range(5):
                source.current()
            assert len(server.requests) == 1

    def test_a_failed_attempt_is_repeated_twice_within_the_time_limit(self, monkeypatch, paused):
        for fault in (hang_up, answer({}, 500), raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
                      answer(b"[]"), answer(b"no JSON"), grant("expired", 0)):  # fmt: skip
            with scripted_server(fault, fault, grant("one")) as server:
                monkeypatch.setenv(URL, server.url)
                assert CredentialSource().current().access_key == "one"
                server.steps[:] = [fault]
                for limit in (None, TimeLimit(lambda: 0.0)):
                    with pytest.raises(CredentialsUnavailable):
                        (CredentialSource(limit) if limit else CredentialSource()).current()
            assert paused == [0.1, 0.2] * 2
            paused.clear()

    def test_only_trusted_hosts_are_asked(self, monkeypatch):
        def fails(url: str, error: type[Exception]) -> None:
            monkeypatch.setenv(URL, url)
            with pytest.raises(error):
                CredentialSource().current()

        for url in ("http://example.com/", "http://10.0.0.1/", "ftp://127.0.0.1/"):
            fails(url, Misconfigured)
        with scripted_server(grant("one")) as server:
            monkeypatch.setenv(URL, f"http://localhost:{server.port}")
            assert CredentialSource().current().access_key == "one"
        for token in ("a\rb: c", "a\nb: c"):
            monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)
            fails("http://127.0.0.1:1", Misconfigured)
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere/token")
        fails("http://127.0.0.1:1", CredentialsUnavailable)
        monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        monkeypatch.setattr(credentials, "_is_trusted", lambda host: False)
        fails("https://127.0.0.1:1", CredentialsUnavailable)  # any host that proves its name
