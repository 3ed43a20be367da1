"""Our client's connections: replaced when they are stale, limited in time, behind a proxy, and with TLS."""

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from awsclient import connection
from awsclient.connection import Connection, TimeLimit
from awsclient.errors import CredentialsUnavailable, NoAnswer, ServiceError
from benchmarks.machine import certificate as make_certificate
from tests.support.scripted_server import (
    Conversation,
    ScriptedServer,
    answer,
    hang_up,
    raw,
    reset,
    scripted_server,
    silence,
)
from tests.unit.awsclient.conftest import HEAD, ITEM, KEY, client_of, refusal


class TestStaleConnections:
    def test_a_connection_that_the_server_has_closed_is_replaced(self, paused):
        with scripted_server(answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            (idle,) = client._connections._idle
            server.close_connections()
            assert select.select([idle._socket], [], [], 10)[0]
            assert client.get_item(**KEY) == ITEM
            assert (server.connections, len(server.requests), paused) == (2, 2, [])

    def test_a_connection_that_dies_when_it_is_used_costs_one_reconnect(self, monkeypatch, paused):
        """After a freeze, the end of the connection may arrive only once the request has been sent."""
        monkeypatch.setattr(Connection, "is_dead", lambda self: False)
        for fault in (reset, hang_up):
            with scripted_server(answer(ITEM), fault, answer(ITEM)) as server:
                client = client_of(server.url)
                client.get_item(**KEY)
                client._connections._idle.insert(0, Connection(client._connections._endpoint))
                assert client.get_item(**KEY) == ITEM
                assert (server.connections, len(server.requests), paused) == (3, 3, [])
                assert len(client._connections._idle) == 1

    def test_a_response_that_breaks_off_on_an_open_connection_is_not_taken_for_a_stale_one(self, paused):
        with scripted_server(answer(ITEM), raw(HEAD, stays_open=False), answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            assert client.get_item(**KEY) == ITEM
            assert len(paused) == 1


class TestTimeLimit:
    def test_no_pause_exceeds_the_time_limit(self, monkeypatch, paused):
        monkeypatch.setattr("awsclient.client._jitter", lambda: 1.0)
        throttled = refusal("ThrottlingException", x_amz_retry_after="20000")
        for left, requests in ((6.0, 1), (60.0, 2), (0.0, 0)):
            with scripted_server(throttled, answer(ITEM)) as server:
                client = client_of(server.url, limit=TimeLimit(lambda left=left: left))
                with contextlib.suppress(NoAnswer, ServiceError):
                    assert client.get_item(**KEY) == ITEM
                assert len(server.requests) == requests
        assert paused == [6.0]

    def test_every_wait_is_capped_at_the_time_left(self, monkeypatch):
        left: list[float | None] = [None]
        with scripted_server(answer(ITEM)) as server:
            client = client_of(server.url, limit=TimeLimit(lambda: left[0]))
            client.get_item(**KEY)
            (kept,) = client._connections._idle
            for left[0], seconds in ((None, 3.0), (2.0, 2.0), (None, 3.0), (60.0, 3.0)):
                client.get_item(**KEY)
                assert kept._socket.gettimeout() == seconds
            assert server.connections == 1
        connects: list[float] = []

        def connect(_: object, timeout: float) -> None:
            connects.append(timeout)
            raise TimeoutError

        monkeypatch.setattr(socket, "create_connection", connect)
        for left[0] in (0.5, 5.0):
            with pytest.raises(NoAnswer):
                client_of("http://127.0.0.1:1", limit=TimeLimit(lambda: left[0])).get_item(**KEY)
        assert connects == [0.5] * 3 + [1.0] * 3

    def test_a_handshake_that_never_ends_does_so_at_the_time_limit(self):
        end = time.monotonic() + 0.3
        limit = TimeLimit(lambda: end - time.monotonic())
        with scripted_server(silence) as server:
            with pytest.raises(NoAnswer, match="TimeoutError"):
                client_of(f"https://localhost:{server.port}", limit=limit).get_item(**KEY)
            assert limit.is_over()


def test_the_connection_to_a_server_with_tls_leads_through_the_proxy_unless_it_refuses(monkeypatch):
    with scripted_server(raw(b"HTTP/1.1 200 Established\r\n\r\n", stays_open=False)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ada:secret@"))
        with pytest.raises(NoAnswer):
            client_of("https://dynamodb.example.com").get_item(**KEY)
        head = proxy.requests[0].head
    assert head.startswith(b"CONNECT dynamodb.example.com:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic YWRhOnNlY3JldA==" in head
    with scripted_server(raw(b"HTTP/1.1 407 Authenticate\r\n\r\n")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(NoAnswer, match="ConnectionRefusedError"):
            client_of("https://dynamodb.example.com").get_item(**KEY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """Returns the files of a certificate of localhost that signs itself, and of its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


class TestTls:
    @pytest.fixture
    def server(self, certificate) -> Iterator[ScriptedServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        with scripted_server(answer(ITEM), tls=context) as running:
            yield running

    def test_a_server_is_trusted_if_the_roots_sign_for_its_name(self, server, certificate, monkeypatch):
        for trusted in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
            with monkeypatch.context() as patch:
                patch.setenv(trusted, str(certificate[0]))
                client = client_of(f"https://localhost:{server.port}")
                assert [client.get_item(**KEY), client.get_item(**KEY)] == [ITEM, ITEM]
        monkeypatch.setattr(connection, "ROOTS", certificate[0])
        assert client_of(f"https://localhost:{server.port}").get_item(**KEY) == ITEM
        assert server.connections == 3
        # The certificate isn't for this name.
        with pytest.raises(NoAnswer, match="SSLCertVerificationError"):
            client_of(f"https://127.0.0.1:{server.port}").get_item(**KEY)
        assert len(server.requests) == 5

    def test_a_tunnel_carries_only_what_the_server_sends(self, certificate, monkeypatch):
        """A proxy could add a response of its own before the server's connection begins."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)

        def tunnel(conversation: Conversation) -> bool:
            conversation.connection.sendall(b"HTTP/1.1 200 Established\r\n\r\n" + HEAD + b'{"Item": {}}')
            with context.wrap_socket(conversation.connection, server_side=True) as server:
                server.recv(65_536)
                return answer(ITEM)(Conversation(server, b"", b""))

        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
        with scripted_server(tunnel) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            assert client_of("https://localhost:1").get_item(**KEY) == ITEM
            assert "proxy-authorization" not in proxy.requests[0].headers

    def test_a_server_whose_root_is_unknown_gets_no_request(self, server, monkeypatch):
        with pytest.raises(NoAnswer, match="SSLCertVerificationError"):
            client_of(f"https://localhost:{server.port}").get_item(**KEY)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"https://localhost:{server.port}/")
        with pytest.raises(CredentialsUnavailable, match="SSLCertVerificationError"):
            client_of(server.url).get_item(**KEY)
        assert server.requests == []

    def test_tls_is_1_2_or_later(self):
        assert connection.tls_context(connection.ca_file()).minimum_version == ssl.TLSVersion.TLSv1_2
