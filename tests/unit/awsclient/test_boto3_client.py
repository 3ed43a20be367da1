"""boto3 as the client: the same operations, answers, and errors as our own."""

import json
from typing import Any

import pytest

from awsclient.boto3_client import Boto3Client
from awsclient.client import OwnClient
from awsclient.connection import NO_LIMIT, TimeLimit
from awsclient.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError
from controlplane.platform.core import aws_clients
from controlplane.platform.core.settings import load, settings
from tests.support.each import each
from tests.support.scripted_server import answer, hang_up, scripted_server

KEY = {"pk": {"S": "ORG#1"}, "sk": {"S": "PROJECT#é"}}
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
