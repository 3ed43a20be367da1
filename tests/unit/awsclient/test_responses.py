"""Responses and refusals are read as botocore reads them, and boto3 as the client does the same as our own."""

import io
import json
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from awsclient.boto3_client import Boto3Client
from awsclient.client import OwnClient, read_response
from awsclient.connection import NO_LIMIT, Response, TimeLimit
from awsclient.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError
from controlplane.platform.core import aws_clients
from controlplane.platform.core.settings import load, settings
from tests.support.each import each
from tests.support.scripted_server import answer, hang_up, scripted_server

KEY = {"pk": {"S": "ORG#1"}, "sk": {"S": "PROJECT#é"}}
PREFIXES = ("", "com.amazonaws.dynamodb.v20120810#", "com.amazon.coral.service#", "com.amazonaws.sqs#")
# As DynamoDB and SQS sent them.
RECORDED: list[tuple[str, str, int, dict[str, Any], dict[str, str]]] = [
    ("dynamodb", "PutItem", 400, {"__type": f"{PREFIXES[1]}ConditionalCheckFailedException",
     "message": "The conditional request failed", "Item": KEY}, {}),
    ("dynamodb", "TransactWriteItems", 400, {"__type": f"{PREFIXES[1]}TransactionCanceledException",
     "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
     "CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": KEY, "Message": "no"},
                             {"Code": "TransactionConflict", "Message": "ongoing"}]}, {}),
    ("dynamodb", "Query", 400, {"__type": f"{PREFIXES[2]}ValidationException", "message": "Invalid"}, {}),
    ("dynamodb", "Query", 400, {"__type": f"{PREFIXES[1]}ThrottlingException", "message": "Rate",
     "throttlingReasons": [{"reason": "TableReadProvisionedThroughputExceeded", "resource": "arn:aws:dynamodb"}]}, {}),
    ("dynamodb", "GetItem", 400, {"__type": f"{PREFIXES[2]}UnrecognizedClientException", "message": "The token"}, {}),
    ("dynamodb", "GetItem", 500, {"__type": f"{PREFIXES[1]}InternalServerError", "message": "Internal"}, {}),
    ("dynamodb", "GetItem", 503, {}, {}),
    ("dynamodb", "PutItem", 400, {"__type": "ValidationException:http://x/", "Message": "Invalid"}, {}),
    ("dynamodb", "PutItem", 413, {"message": "Large"}, {}),
    ("sqs", "SendMessage", 400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "No such queue"},
     {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}),
    ("sqs", "SendMessage", 403, {"__type": "com.amazonaws.sqs#KmsDisabled", "message": "KMS"},
     {"x-amzn-query-error": "KMS.DisabledException;Sender"}),
    ("sqs", "ChangeMessageVisibility", 400, {"__type": "com.amazonaws.sqs#ReceiptHandleIsInvalid", "message": ""},
     {"x-amzn-query-error": "malformed"}),
]  # fmt: skip
PARAMETERS: dict[str, dict[str, Any]] = {
    "GetItem": {"TableName": "t", "Key": KEY},
    "PutItem": {"TableName": "t", "Item": KEY},
    "Query": {"TableName": "t"},
    "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": "t", "Item": KEY}}]},
    "SendMessage": {"QueueUrl": "https://queues.assent.test/1/q", "MessageBody": "m"},
    "ChangeMessageVisibility": {"QueueUrl": "https://queues.assent.test/1/q", "ReceiptHandle": "r",
                                "VisibilityTimeout": 0},
}  # fmt: skip


class Oracle:
    """Reads responses with botocore, and reports refusals as the error of both clients."""

    def __init__(self, service: str) -> None:
        self.client = Boto3Client(service)
        self.client._client.meta.events.register("before-send", lambda request, **_: self.response)

    def read(self, operation: str, status: int, body: bytes, headers: dict[str, str]) -> Any:
        stream: Any = io.BytesIO(body)
        stream.stream = lambda **_: iter([stream.read()])
        self.response = AWSResponse("https://aws.example", status, headers, stream)
        return self.client.call(operation, PARAMETERS[operation])


@pytest.fixture(scope="module")
def oracles() -> dict[str, Oracle]:
    return {service: Oracle(service) for service in ("dynamodb", "sqs")}


def compare(oracle: Oracle, operation: str, status: int, body: bytes, headers: dict[str, str]) -> ServiceError:
    with pytest.raises(ServiceError) as theirs:
        oracle.read(operation, status, body, headers)
    with pytest.raises(ServiceError) as ours:
        read_response(operation, Response(status, headers, body))
    assert (ours.value.code, ours.value.status) == (theirs.value.code, theirs.value.status)
    for name in ("Item", "CancellationReasons", "ThrottlingReasons", "throttlingReasons"):
        assert ours.value.fields.get(name) == theirs.value.fields.get(name)
    if ours.value.code != str(status):
        assert str(ours.value) == str(theirs.value)
    return ours.value


class TestRefusals:
    def test_recorded_refusals_are_read_as_by_botocore(self, oracles):
        for service, operation, status, content, headers in RECORDED:
            compare(oracles[service], operation, status, json.dumps(content).encode(), headers)

    def test_what_isnt_json_is_a_refusal_with_its_status(self, oracles):
        for status, body in ((503, b"<html>busy</html>"), (502, b""), (400, b""), (400, b"plain text"), (413, b"<a/>")):
            failure = compare(oracles["dynamodb"], "GetItem", status, body, {})
            assert failure.code == str(status)


class TestAnswers:
    def test_answers_equal_botocores(self, oracles):
        for content in ({}, {"Item": KEY}, {"Item": {"n": {"L": [{"M": {"x": {"NULL": True}}}]}}}):
            body = json.dumps(content).encode()
            theirs = oracles["dynamodb"].read("GetItem", 200, body, {})
            del theirs["ResponseMetadata"]
            assert read_response("GetItem", Response(200, {}, body)) == theirs == content
        assert read_response("DeleteMessage", Response(200, {}, b"")) == {}

    def test_content_that_is_no_object_and_a_malformed_checksum_are_no_answer(self):
        for response in (Response(200, {}, b"[]"), Response(200, {"x-amz-crc32": "none"}, b"{}")):
            with pytest.raises(NoAnswer):
                read_response("GetItem", response)


GET = {"TableName": "t", "Key": KEY, "ConsistentRead": True}
PUT = {"TableName": "t", "Item": {**KEY, "n": {"N": "1"}, "l": {"L": [{"BOOL": True}, {"NULL": True}]}}}
SENT = {"QueueUrl": "https://queues.assent.test/1/q", "MessageBody": "é"}
CONFLICT = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "no", "Item": KEY}


@each(
    "call",
    [
        ("dynamodb", "get_item", GET, {"Item": KEY}),
        ("dynamodb", "put_item", PUT, {}),
        ("dynamodb", "transact_write_items", {"TransactItems": [{"Put": PUT}], "ClientRequestToken": "0" * 32}, {}),
        ("sqs", "send_message", SENT, {"MessageId": "1"}),
    ],
    ids=lambda call: call[1],
)
def test_both_clients_send_and_return_the_same(call):
    service, operation, parameters, content = call
    with scripted_server(answer(content)) as server:
        answers = [getattr(kind(service, server.url), operation)(**parameters) for kind in (Boto3Client, OwnClient)]
    answers[0].pop("ResponseMetadata")
    assert answers == [content, content]
    theirs, ours = server.requests
    assert json.loads(theirs.body) == json.loads(ours.body) == parameters
    for name in ("x-amz-target", "content-type"):
        assert theirs.headers[name] == ours.headers[name]


class TestErrors:
    def test_a_refusal_has_the_code_the_fields_and_the_number_of_retries(self):
        with scripted_server(answer({}, 500), hang_up, answer(CONFLICT, 400)) as server:
            client = Boto3Client("dynamodb", server.url)
            with pytest.raises(ServiceError, match="PutItem: ConditionalCheckFailedException: no") as raised:
                client.put_item(**PUT)
        error = raised.value
        assert (error.code, error.status, error.retries) == ("ConditionalCheckFailedException", 400, 2)
        assert error.fields["Item"] == KEY

    def test_a_lost_response_is_no_answer(self):
        with scripted_server(hang_up) as server, pytest.raises(NoAnswer, match="ConnectionClosedError"):
            Boto3Client("dynamodb", server.url).get_item(**GET)

    def test_without_credentials_nothing_is_sent(self, monkeypatch):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        with scripted_server(answer({})) as server, pytest.raises(CredentialsUnavailable):
            Boto3Client("dynamodb", server.url).get_item(**GET)
        assert server.requests == []

    def test_parameters_that_boto3_rejects_are_an_error_of_the_client(self):
        with pytest.raises(AwsError, match="Missing required parameter"):
            Boto3Client("dynamodb", "http://127.0.0.1:1").get_item(TableName="t")


class TestTimeLimit:
    @each("left, requests", [(60.0, 3), (0.0, 0)])
    def test_no_attempt_begins_after_the_time_limit(self, left, requests):
        with scripted_server(answer({}, 500)) as server:
            client = Boto3Client("dynamodb", server.url, TimeLimit(lambda: left))
            with pytest.raises(AwsError):
                client.get_item(**GET)
        assert len(server.requests) == requests


def test_the_setting_selects_the_client(monkeypatch):
    for library, kind in (("own", OwnClient), ("boto3", Boto3Client)):
        monkeypatch.setitem(settings.__dict__, "aws_client", library)
        client: Any = aws_clients.create_client("sqs")
        assert type(client) is kind
        assert client._limit is not NO_LIMIT
    assert load({"TABLE_NAME": "assent"}).aws_client == "own"
    with pytest.raises(ValueError, match="aws_client"):
        load({"TABLE_NAME": "assent", "AWS_CLIENT": "boto2"})
