"""Our client on the wire: its requests, and what it does when servers, connections, clocks, and checksums fail."""

import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from awsclient import connection, retries
from awsclient.client import OwnClient
from awsclient.connection import Connection
from awsclient.errors import CredentialsUnavailable, NoAnswer, ServiceError
from awsclient.time_limit import TimeLimit
from controlplane.core import deadline
from tests.support.each import each
from tests.support.scripted_server import (
    Conversation,
    ScriptedServer,
    Step,
    answer,
    hang_up,
    raw,
    reset,
    scripted_server,
    silence,
)

ITEM = {"Item": {"pk": {"S": "ORG#1"}, "sk": {"S": "PROJECT#é"}}}
DAY = timedelta(days=1)
KEY = {"TableName": "t", "Key": ITEM["Item"]}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"
CONFLICT = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", **ITEM}


@pytest.fixture(autouse=True)
def paused(monkeypatch) -> list[float]:
    """Returns the pauses that were requested. None is made."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "a session",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    # One pause in a thousand would be 0, which isn't requested.
    monkeypatch.setattr(retries, "_jitter", lambda: 0.5)
    return seconds


def refusal(code: str, status: int = 400, **headers: str) -> Step:
    return answer({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}, status, **headers)


def client_of(url: str, service: str = "dynamodb") -> OwnClient:
    return OwnClient(service, url, TimeLimit(deadline.remaining))


class TestRequests:
    def test_a_request_is_signed_as_by_botocore_and_names_its_operation(self, monkeypatch):
        monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-a")
        with scripted_server(answer(ITEM)) as server:
            assert client_of(server.url + "/recording").get_item(**KEY) == ITEM
            client_of(server.url, "sqs").send_message(QueueUrl="q", MessageBody="é")
        first, second = server.requests
        assert first.head.startswith(b"POST /recording HTTP/1.1\r\n")
        assert json.loads(first.body) == KEY
        assert first.headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
        assert first.headers["x-amzn-trace-id"] == "Root=1-a"
        assert second.headers["x-amz-target"] == "AmazonSQS.SendMessage"
        assert second.headers["x-amzn-query-mode"] == "true"
        for request, service, path in ((first, "dynamodb", "/recording"), (second, "sqs", "/")):
            sent = request.headers
            signed = {name: sent[name] for name in sent["authorization"].split("Headers=")[1].split(",")[0].split(";")}
            assert {"host", "x-amz-date", "x-amz-target", "x-amz-security-token"} <= signed.keys()
            theirs = AWSRequest("POST", f"{server.url}{path}", signed, request.body)
            moment = datetime.strptime(sent["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            with monkeypatch.context() as patch:
                patch.setattr(botocore.auth, "get_current_datetime", lambda moment=moment: moment)
                SigV4Auth(Credentials("AKIDEXAMPLE", "secret", "a session"), service, "eu-central-1").add_auth(theirs)
            assert theirs.headers["Authorization"] == sent["authorization"]

    def test_calls_share_a_connection_and_threads_have_one_each(self):
        together = threading.Barrier(3)

        def meet(conversation: Conversation) -> bool:
            together.wait(10)
            return answer(ITEM)(conversation)

        with scripted_server(*[answer(ITEM)] * 5, meet) as server:
            client = client_of(server.url)
            for _ in range(5):
                client.get_item(**KEY)
            assert server.connections == 1
            threads = [threading.Thread(target=client.get_item, kwargs=KEY) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert server.connections == 3
            assert len(client._connections._idle) == 3

    def test_a_transactions_attempts_have_one_token(self):
        with scripted_server(hang_up, answer({})) as server:
            client_of(server.url).transact_write_items(TransactItems=[])
        first, second = (json.loads(request.body)["ClientRequestToken"] for request in server.requests)
        assert first == second
        assert len(first) == 32


class TestResponses:
    def test_every_form_of_a_response_is_read(self):
        body = json.dumps(ITEM).encode()
        chunks = (
            b"5;x=y\r\n" + body[:5] + b"\r\n" + f"{len(body) - 5:X}\r\n".encode() + body[5:] + b"\r\n0\r\nt: 1\r\n\r\n"
        )
        with scripted_server(
            raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
            raw(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body),
            raw(b"HTTP/1.1 200 OK\r\n\r\n" + body, stays_open=False),
            raw(f"HTTP/1.0 200 OK\r\ncontent-length:{len(body)}\r\n\r\n".encode() + body),
            raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
        ) as server:
            client = client_of(server.url)
            assert [client.get_item(**KEY) for _ in range(4)] == [ITEM] * 4
            assert client.get_item(**KEY) == {}
            assert server.connections == 4

    def test_a_response_in_small_pieces_is_read(self):
        body = json.dumps(ITEM).encode()

        def piecemeal(conversation: Conversation) -> bool:
            for byte in f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body:
                conversation.connection.sendall(bytes([byte]))
            return True

        with scripted_server(piecemeal) as server:
            assert client_of(server.url).get_item(**KEY) == ITEM

    def test_what_follows_a_response_is_not_the_next_one(self):
        with scripted_server(raw(HEAD + b'{"Item": {}}' + HEAD + b'{"Item": {}}'), answer(ITEM)) as server:
            client = client_of(server.url)
            assert [client.get_item(**KEY), client.get_item(**KEY)] == [{"Item": {}}, ITEM]
            assert server.connections == 2


class TestFaults:
    @each(
        "fault",
        [
            pytest.param(reset, id="reset"),
            pytest.param(hang_up, id="closed without a response"),
            pytest.param(raw(HEAD, stays_open=False), id="closed after the head"),
            pytest.param(raw(HEAD[:20], stays_open=False), id="closed within the head"),
            pytest.param(raw(HEAD + b'{"Item', stays_open=False), id="closed within the body"),
            pytest.param(raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), id="malformed chunk"),
            pytest.param(raw(b"ICY 200 OK\r\ncontent-length: 2\r\n\r\n{}"), id="not HTTP"),
            pytest.param(raw(b"HTTP/1.1 abc\r\n\r\n"), id="no status"),
            pytest.param(raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000), id="endless head"),
            pytest.param(raw(HEAD + b'{"Item": {},'), id="malformed JSON"),
            pytest.param(answer(ITEM, x_amz_crc32="1"), id="wrong checksum"),
            pytest.param(answer(CONFLICT, 400, x_amz_crc32="1"), id="wrong checksum of a refusal"),
            pytest.param(refusal("InternalServerError", 500), id="500"),
            pytest.param(answer({}, 502), id="502"),
            pytest.param(answer(b"<html>busy</html>", 503), id="503"),
            pytest.param(refusal("ProvisionedThroughputExceededException"), id="throttled"),
            pytest.param(refusal("TransactionInProgressException"), id="in progress"),
            pytest.param(answer({}, 429), id="429"),
            pytest.param(answer({}, 504), id="504"),
            pytest.param(refusal("RequestTimeoutException"), id="timed out"),
        ],
    )
    def test_an_attempt_that_fails_for_now_is_repeated_twice(self, fault, paused):
        paused.clear()
        with scripted_server(fault, fault, answer(ITEM)) as server:
            client = client_of(server.url)
            assert client.get_item(**KEY) == ITEM
            assert (len(server.requests), len(paused)) == (3, 2)
            server.steps[:] = [fault]
            with pytest.raises((NoAnswer, ServiceError)) as raised:
                client.get_item(**KEY)
            assert len(server.requests) == 6
            if isinstance(raised.value, ServiceError):
                assert raised.value.retries == 2

    def test_an_attempt_whose_response_doesnt_come_in_time_is_repeated(self, monkeypatch, paused):
        monkeypatch.setattr(connection, "_READ_SECONDS", 0.5)
        for fault in (silence, raw(HEAD + b'{"Item')):
            with scripted_server(answer(ITEM), fault, answer(ITEM)) as server:
                client = client_of(server.url)
                assert [client.get_item(**KEY), client.get_item(**KEY)] == [ITEM, ITEM]
                assert server.connections >= 2
        assert len(paused) >= 2

    def test_a_refusal_is_not_repeated(self, paused):
        for code in ("ConditionalCheckFailedException", "ValidationException", "AccessDeniedException"):
            with scripted_server(refusal(code)) as server:
                with pytest.raises(ServiceError) as raised:
                    client_of(server.url).put_item(TableName="t", Item=ITEM["Item"])
                assert (raised.value.code, raised.value.retries, len(server.requests)) == (code, 0, 1)
        assert paused == []

    def test_a_refusal_tells_that_an_earlier_attempt_may_have_been_applied(self):
        with scripted_server(hang_up, answer(CONFLICT, 400)) as server:
            with pytest.raises(ServiceError) as raised:
                client_of(server.url).put_item(TableName="t", Item=ITEM["Item"])
            assert (raised.value.retries, raised.value.fields["Item"]) == (1, ITEM["Item"])

    def test_nothing_listens(self, paused):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with pytest.raises(NoAnswer, match="ConnectionRefusedError"):
            client_of(f"http://127.0.0.1:{port}").get_item(**KEY)
        assert len(paused) == 2

    def test_sockets_are_closed_after_faults(self, monkeypatch):
        closed: list[Connection] = []

        class Watched(Connection):
            def close(self) -> None:
                closed.append(self)
                super().close()

        monkeypatch.setattr(connection, "Connection", Watched)
        with scripted_server(reset, raw(HEAD, stays_open=False), answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            assert len(closed) == 2


class TestStaleConnections:
    def test_a_connection_that_was_closed_meanwhile_costs_one_reconnect(self, paused):
        with scripted_server(answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            server.close_connections()
            assert client.get_item(**KEY) == ITEM
            assert (server.connections, len(server.requests), paused) == (2, 2, [])

    def test_a_connection_that_was_closed_meanwhile_is_not_used(self):
        with scripted_server(answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            (idle,) = client._connections._idle
            server.close_connections()
            assert select.select([idle._socket], [], [], 10)[0]
            assert client.get_item(**KEY) == ITEM

    def test_a_connection_that_dies_when_it_is_used_costs_one_reconnect(self, monkeypatch, paused):
        """After a freeze, the end of the connection may arrive only once the request has been sent."""
        monkeypatch.setattr(Connection, "is_dead", lambda self: False)
        for fault in (reset, hang_up):
            with scripted_server(answer(ITEM), fault, answer(ITEM)) as server:
                client = client_of(server.url)
                client.get_item(**KEY)
                client._connections._idle.insert(0, Connection(client._endpoint))
                assert client.get_item(**KEY) == ITEM
                assert (server.connections, len(server.requests), paused) == (3, 3, [])
                assert len(client._connections._idle) == 1

    def test_a_response_that_breaks_off_on_an_open_connection_is_not_taken_for_a_stale_one(self, paused):
        with scripted_server(answer(ITEM), raw(HEAD, stays_open=False), answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            assert client.get_item(**KEY) == ITEM
            assert len(paused) == 1


class TestPauses:
    def test_pauses_have_full_jitter_and_double(self, paused, monkeypatch):
        monkeypatch.setattr(retries, "_jitter", lambda: 1.0)
        for fault, service, expected in (
            (hang_up, "dynamodb", [0.025, 0.05]),
            (hang_up, "sqs", [0.05, 0.1]),
            (refusal("ThrottlingException"), "dynamodb", [1.0, 2.0]),
            (refusal("ThrottlingException", x_amz_retry_after="3000"), "dynamodb", [3.0, 3.0]),
            (refusal("ThrottlingException", x_amz_retry_after="60000"), "dynamodb", [6.0, 7.0]),
            (refusal("ThrottlingException", x_amz_retry_after="soon"), "dynamodb", [1.0, 2.0]),
        ):
            paused.clear()
            with scripted_server(fault) as server, pytest.raises((NoAnswer, ServiceError)):
                client_of(server.url, service).call("Any", {})
            assert paused == expected
        monkeypatch.undo()
        assert len({retries._jitter() for _ in range(50)}) > 10
        assert all(0 <= retries._jitter() < 1 for _ in range(50))

    def test_the_quota_ends_retries_and_recovers_with_successes(self):
        with scripted_server(hang_up) as server:
            client = client_of(server.url)
            for _ in range(20):
                with pytest.raises(NoAnswer):
                    client.get_item(**KEY)
            # 500 pays for 35 retries of 14.
            assert len(server.requests) == 20 + 35
            # 10 are left, and each success gives back 1.
            busy = answer({}, 503)
            server.steps[:] = [*[answer(ITEM)] * 3, busy, answer(ITEM), busy, answer(ITEM)]
            for _ in range(3):
                client.get_item(**KEY)
            with pytest.raises(ServiceError):
                client.get_item(**KEY)
            client.get_item(**KEY)
            assert client.get_item(**KEY) == ITEM

    def test_retries_that_succeed_dont_use_up_the_quota(self):
        with scripted_server(*[answer({}, 503), answer(ITEM)] * 50) as server:
            client = client_of(server.url)
            assert [client.get_item(**KEY) for _ in range(50)] == [ITEM] * 50

    def test_a_throttled_retry_costs_less(self):
        with scripted_server(refusal("ThrottlingException")) as server:
            client = client_of(server.url)
            for _ in range(60):
                with pytest.raises(ServiceError):
                    client.get_item(**KEY)
            assert len(server.requests) == 60 + 100


class TestDeadline:
    def test_no_pause_outlasts_the_deadline(self, monkeypatch, paused):
        monkeypatch.setattr(retries, "_jitter", lambda: 1.0)
        throttled = refusal("ThrottlingException", x_amz_retry_after="20000")
        with scripted_server(throttled) as server, deadline.budget(5), deadline.spending():
            with pytest.raises(ServiceError):
                client_of(server.url).get_item(**KEY)
            assert (len(server.requests), paused) == (1, [])
        with scripted_server(hang_up, answer(ITEM)) as server, deadline.budget(60), deadline.spending():
            assert client_of(server.url).get_item(**KEY) == ITEM

    def test_a_response_that_never_comes_ends_at_the_deadline(self, paused):
        with scripted_server(silence) as server, deadline.budget(0.3), deadline.spending():
            with pytest.raises(NoAnswer, match="TimeoutError"):
                client_of(server.url).get_item(**KEY)
            assert deadline.is_over()
            with pytest.raises(NoAnswer):
                client_of(server.url).get_item(**KEY)
            assert len(server.requests) <= 1

    def test_every_wait_of_a_kept_connection_has_its_own_limit(self):
        with scripted_server(answer(ITEM)) as server:
            client = client_of(server.url)
            client.get_item(**KEY)
            (kept,) = client._connections._idle
            assert kept._socket.gettimeout() == connection._READ_SECONDS
            with deadline.budget(2), deadline.spending():
                client.get_item(**KEY)
            assert kept._socket.gettimeout() <= 2
            client.get_item(**KEY)
            assert (kept._socket.gettimeout(), server.connections) == (connection._READ_SECONDS, 1)

    def test_no_connection_is_awaited_longer_than_the_deadline(self, monkeypatch):
        seconds: list[float] = []

        def connect(_: object, timeout: float) -> None:
            seconds.append(timeout)
            raise TimeoutError

        monkeypatch.setattr(socket, "create_connection", connect)
        with deadline.budget(0.5), deadline.spending(), pytest.raises(NoAnswer):
            client_of("http://127.0.0.1:1").get_item(**KEY)
        assert all(it <= 0.5 for it in seconds)

    def test_a_handshake_that_never_ends_does_so_at_the_deadline(self):
        with scripted_server(silence) as server, deadline.budget(0.3), deadline.spending():
            with pytest.raises(NoAnswer, match="TimeoutError"):
                client_of(f"https://localhost:{server.port}").get_item(**KEY)
            assert deadline.is_over()


class TestClock:
    def test_a_wrong_clock_is_corrected_from_the_responses_date(self, paused):
        ahead = format_datetime(datetime.fromtimestamp(time.time() + 3600, UTC), usegmt=True)
        for code in ("RequestTimeTooSkewed", "InvalidSignatureException"):
            with scripted_server(refusal(code, date=ahead), answer(ITEM)) as server:
                client = client_of(server.url)
                assert client.get_item(**KEY) == ITEM
                client.get_item(**KEY)
                dates = [request.headers["x-amz-date"] for request in server.requests]
                moments = [datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for date in dates]
                assert [round((moment - moments[0]).total_seconds() / 3600, 1) for moment in moments] == [0, 1, 1]
                # The corrected clock isn't the cause.
                server.steps[:] = [refusal(code, date=ahead)]
                with pytest.raises(ServiceError):
                    client.get_item(**KEY)
                assert len(server.requests) == 4
        assert paused == []

    def test_a_clock_that_never_fits_ends_after_three_attempts(self):
        dates = [format_datetime(datetime.now(UTC) + number * DAY, usegmt=True) for number in range(1, 5)]
        with scripted_server(*(refusal("RequestExpired", date=date) for date in dates)) as server:
            with pytest.raises(ServiceError):
                client_of(server.url).get_item(**KEY)
            assert len(server.requests) == 3

    def test_a_wrong_signature_with_a_right_clock_is_not_repeated(self):
        now = format_datetime(datetime.now(UTC), usegmt=True)
        for headers in ({"date": now}, {}, {"date": "yesterday"}):
            with scripted_server(refusal("InvalidSignatureException", **headers)) as server:
                with pytest.raises(ServiceError):
                    client_of(server.url).get_item(**KEY)
                assert len(server.requests) == 1


class TestTunnel:
    def test_the_connection_to_a_server_with_tls_leads_through_the_proxy(self, monkeypatch):
        with scripted_server(raw(b"HTTP/1.1 200 Established\r\n\r\n", stays_open=False)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ada:secret@"))
            with pytest.raises(NoAnswer):
                client_of("https://dynamodb.example.com").get_item(**KEY)
            head = proxy.requests[0].head
        assert head.startswith(b"CONNECT dynamodb.example.com:443 HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic YWRhOnNlY3JldA==" in head

    def test_a_proxy_that_refuses_is_no_answer(self, monkeypatch):
        with scripted_server(raw(b"HTTP/1.1 407 Authenticate\r\n\r\n")) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            with pytest.raises(NoAnswer, match="ConnectionRefusedError"):
                client_of("https://dynamodb.example.com").get_item(**KEY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """Returns a file with a certificate of localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - DAY, now + DAY)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


class TestTls:
    @pytest.fixture
    def server(self, certificate, monkeypatch) -> Iterator[ScriptedServer]:
        for variable in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(variable, raising=False)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        with scripted_server(answer(ITEM), tls=context) as running:
            yield running

    def test_a_server_is_trusted_if_the_roots_sign_for_its_name(self, server, certificate, monkeypatch):
        for trusted in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
            with monkeypatch.context() as patch:
                patch.setenv(trusted, str(certificate))
                client = client_of(f"https://localhost:{server.port}")
                assert [client.get_item(**KEY), client.get_item(**KEY)] == [ITEM, ITEM]
        monkeypatch.setattr(connection, "ROOTS", certificate)
        assert client_of(f"https://localhost:{server.port}").get_item(**KEY) == ITEM
        assert server.connections == 3
        # The certificate isn't for this name.
        with pytest.raises(NoAnswer, match="SSLCertVerificationError"):
            client_of(f"https://127.0.0.1:{server.port}").get_item(**KEY)
        assert len(server.requests) == 5

    def test_a_tunnel_carries_only_what_the_server_sends(self, certificate, monkeypatch):
        """A proxy could add a response of its own before the server's connection begins."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

        def tunnel(conversation: Conversation) -> bool:
            conversation.connection.sendall(b"HTTP/1.1 200 Established\r\n\r\n" + HEAD + b'{"Item": {}}')
            with context.wrap_socket(conversation.connection, server_side=True) as server:
                server.recv(65_536)
                return answer(ITEM)(Conversation(server, b"", b""))

        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        with scripted_server(tunnel) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            assert client_of("https://localhost:1").get_item(**KEY) == ITEM
            assert "proxy-authorization" not in proxy.requests[0].headers

    def test_a_server_whose_root_is_unknown_gets_no_request(self, server):
        with pytest.raises(NoAnswer, match="SSLCertVerificationError"):
            client_of(f"https://localhost:{server.port}").get_item(**KEY)
        assert server.requests == []

    def test_credentials_come_only_from_a_server_that_proves_its_name(self, server, monkeypatch):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"https://localhost:{server.port}/")
        with pytest.raises(CredentialsUnavailable, match="SSLCertVerificationError"):
            client_of(server.url).get_item(**KEY)
        assert server.requests == []

    def test_tls_is_1_2_or_later(self):
        context = connection.tls_context(None)
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)

    def test_a_closed_connection_with_tls_costs_one_reconnect(self, server, certificate, monkeypatch):
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        client = client_of(f"https://localhost:{server.port}")
        client.get_item(**KEY)
        server.close_connections()
        assert client.get_item(**KEY) == ITEM
        assert (server.connections, len(server.requests)) == (2, 2)


def test_without_credentials_nothing_is_sent(monkeypatch, paused):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with scripted_server(answer(ITEM)) as server:
        with pytest.raises(CredentialsUnavailable):
            client_of(server.url).get_item(**KEY)
        assert (server.connections, paused) == (0, [])


def test_only_operations_are_methods():
    client: Any = client_of("http://127.0.0.1:1")
    with pytest.raises(AttributeError):
        client._get_item()
