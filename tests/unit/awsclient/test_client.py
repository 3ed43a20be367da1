"""Our client on the wire: its requests, and what it does when servers, clocks, and checksums fail."""

import json
import threading
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from awsclient import connection
from awsclient.client import _jitter
from awsclient.errors import CredentialsUnavailable, NoAnswer, ServiceError
from tests.support.each import each
from tests.support.scripted_server import Conversation, answer, hang_up, raw, reset, scripted_server, silence
from tests.unit.awsclient.conftest import HEAD, ITEM, KEY, client_of, refusal

CONFLICT = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", **ITEM}


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
