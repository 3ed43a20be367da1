"""Our client on the wire: its requests, and what it does when servers, connections, clocks, and checksums fail."""

import contextlib
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from awsclient import connection
from awsclient.client import OwnClient, _jitter
from awsclient.connection import NO_LIMIT, Connection, TimeLimit
from awsclient.errors import CredentialsUnavailable, NoAnswer, ServiceError
from benchmarks.machine import certificate as make_certificate
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
KEY = {"TableName": "t", "Key": ITEM["Item"]}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"
CONFLICT = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", **ITEM}


def refusal(code: str, status: int = 400, **headers: str) -> Step:
    return answer({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}, status, **headers)


def client_of(url: str, service: str = "dynamodb", limit: TimeLimit = NO_LIMIT) -> OwnClient:
    return OwnClient(service, url, limit)


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
        def piecemeal(conversation: Conversation) -> bool:
            for byte in HEAD + b'{"Item": {}}':
                conversation.connection.sendall(bytes([byte]))
            return True

        with scripted_server(piecemeal) as server:
            assert client_of(server.url).get_item(**KEY) == {"Item": {}}

    def test_what_follows_a_response_is_not_the_next_one(self):
        with scripted_server(raw(HEAD + b'{"Item": {}}' + HEAD + b'{"Item": {}}'), answer(ITEM)) as server:
            client = client_of(server.url)
            assert [client.get_item(**KEY), client.get_item(**KEY)] == [{"Item": {}}, ITEM]
            assert server.connections == 2


FAULTS = {
    "reset": reset,
    "closed without a response": hang_up,
    "closed after the head": raw(HEAD, stays_open=False),
    "closed within the head": raw(HEAD[:20], stays_open=False),
    "closed within the body": raw(HEAD + b'{"Item', stays_open=False),
    "malformed chunk": raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "endless head": raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000),
    "malformed JSON": raw(HEAD + b'{"Item": {},'),
    "wrong checksum": answer(ITEM, x_amz_crc32="1"),
    "wrong checksum of a refusal": answer(CONFLICT, 400, x_amz_crc32="1"),
    "500": refusal("InternalServerError", 500),
    "502": answer({}, 502),
    "503": answer(b"<html>busy</html>", 503),
    "504": answer({}, 504),
    "429": answer({}, 429),
    "throttled": refusal("ProvisionedThroughputExceededException"),
    "in progress": refusal("TransactionInProgressException"),
    "timed out": refusal("RequestTimeoutException"),
}


class TestFaults:
    @each("fault", FAULTS.values(), ids=FAULTS)
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

    def test_a_refusal_is_not_repeated_and_counts_the_attempts_before(self):
        for code in ("ConditionalCheckFailedException", "ValidationException", "AccessDeniedException"):
            for earlier in ([], [hang_up]):
                with scripted_server(*earlier, refusal(code)) as server, pytest.raises(ServiceError) as raised:
                    client_of(server.url).get_item(**KEY)
                assert (raised.value.code, raised.value.retries) == (code, len(earlier))
                assert len(server.requests) == len(earlier) + 1

    def test_nothing_listens(self, paused):
        with pytest.raises(NoAnswer, match="ConnectionRefusedError"):
            client_of("http://127.0.0.1:1").get_item(**KEY)
        assert len(paused) == 2


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


class TestPauses:
    def test_pauses_have_full_jitter_and_double(self, paused, monkeypatch):
        monkeypatch.setattr("awsclient.client._jitter", lambda: 1.0)
        # On a busy machine, the server may take longer than a client waits, which is another fault.
        for limit in ("_CONNECT_SECONDS", "_READ_SECONDS"):
            monkeypatch.setattr(f"awsclient.connection.{limit}", 60.0)
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
        assert len({_jitter() for _ in range(50)}) > 10
        assert all(0 <= _jitter() < 1 for _ in range(50))

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

    def test_retries_that_succeed_dont_use_up_the_quota_and_throttled_ones_cost_less(self):
        with scripted_server(*[answer({}, 503), answer(ITEM)] * 50) as server:
            client = client_of(server.url)
            assert [client.get_item(**KEY) for _ in range(50)] == [ITEM] * 50
        with scripted_server(refusal("ThrottlingException")) as server:
            client = client_of(server.url)
            for _ in range(60):
                with pytest.raises(ServiceError):
                    client.get_item(**KEY)
            assert len(server.requests) == 60 + 100


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

    def test_a_wrong_signature_with_a_right_clock_is_not_repeated(self):
        now = format_datetime(datetime.now(UTC), usegmt=True)
        for headers in ({"date": now}, {}, {"date": "yesterday"}):
            with scripted_server(refusal("InvalidSignatureException", **headers)) as server:
                with pytest.raises(ServiceError):
                    client_of(server.url).get_item(**KEY)
                assert len(server.requests) == 1


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
