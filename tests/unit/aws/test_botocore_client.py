"""The optimized client sends and parses the same requests and responses as botocore's own."""

import io
import json
from pathlib import Path

import botocore.endpoint
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.session import Session

from controlplane.aws import botocore_client as shortened
from controlplane.aws import clients, connection
from controlplane.aws.client import OwnClient
from controlplane.aws.errors import CredentialsUnavailable, NoAnswer, ServiceError
from controlplane.core import deadline
from controlplane.core.settings import load, settings
from tests.support.each import each
from tests.support.hung_server import FailureMode, hung_server

KEY = {"pk": {"S": "ORG#1"}, "sk": {"S": "PROJECT#é"}}
CALLS = {
    "get_item": {"TableName": "t", "Key": KEY, "ConsistentRead": True},
    "put_item": {"TableName": "t", "Item": {**KEY, "n": {"N": "1"}, "l": {"L": [{"BOOL": True}, {"NULL": True}]}}},
    "update_item": {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "SET #a = :a",
        "ExpressionAttributeNames": {"#a": "a"},
        "ExpressionAttributeValues": {":a": {"M": {"b": {"S": "c"}}}},
        "ReturnValues": "ALL_NEW",
    },
    "query": {"TableName": "t", "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "x"}}},
    "batch_get_item": {"RequestItems": {"t": {"Keys": [KEY]}}},
    "transact_write_items": {
        "TransactItems": [{"Put": {"TableName": "t", "Item": KEY}}],
        "ClientRequestToken": "0123456789abcdef",
    },
    "describe_limits": {},
}
# These differ from call to call.
VOLATILE = {"authorization", "x-amz-date", "amz-sdk-invocation-id"}


class Wire:
    """Replaces the network: records requests and returns prepared responses."""

    def __init__(self, client, *answers):
        self.sent = []
        self._answers = list(answers) or [(200, {})]
        inner = getattr(client, "_client", client)
        inner.meta.events.register("before-send.dynamodb", self._answer)

    def _answer(self, request, **_):
        self.sent.append(request)
        status, content = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        response = io.BytesIO(json.dumps(content).encode())
        response.stream = lambda **_: iter([response.read()])
        return AWSResponse(request.url, status, {"x-amzn-requestid": "r"}, response)

    def headers(self, position=-1):
        return {name.lower(): value for name, value in self.sent[position].headers.items()}

    def gist(self):
        """Returns the last request without the parts that differ from call to call."""
        request = self.sent[-1]
        headers = {name: value for name, value in self.headers().items() if name not in VOLATILE}
        return request.method, request.url, headers, json.loads(request.body)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "session",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_LAMBDA_FUNCTION_NAME": "f",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(botocore.endpoint.time, "sleep", lambda _: None)


def create_client():
    return shortened.create_client("dynamodb")


def ordinary_client():
    session = Session()
    agent = Config(user_agent=session.user_agent())
    return session.create_client("dynamodb", config=shortened._CONFIG.merge(agent))


class TestRequests:
    @each("operation", CALLS)
    def test_requests_equal_those_of_botocore(self, operation):
        ours, theirs = create_client(), ordinary_client()
        our_wire, their_wire = Wire(ours), Wire(theirs)
        for _ in range(2):  # botocore serializes the first, the client reuses its result for the second
            getattr(ours, operation)(**CALLS[operation])
            getattr(theirs, operation)(**CALLS[operation])
            assert our_wire.gist() == their_wire.gist()

    def test_each_request_is_signed_separately(self):
        client = create_client()
        wire = Wire(client)
        client.get_item(**CALLS["get_item"])
        client.get_item(**{**CALLS["get_item"], "ConsistentRead": False})
        first, second = (wire.headers(n)["authorization"] for n in (0, 1))
        assert b"AKIDEXAMPLE" in first
        assert first != second

    def test_requests_of_different_operations_dont_mix(self):
        client = create_client()
        wire = Wire(client)
        for operation, parameters in [*CALLS.items(), *CALLS.items()]:
            getattr(client, operation)(**parameters)
            assert wire.headers()["x-amz-target"].decode().endswith(operation.title().replace("_", ""))
            assert json.loads(wire.sent[-1].body) == parameters

    def test_requests_carry_the_trace_of_their_own_invocation(self, monkeypatch):
        client = create_client()
        wire = Wire(client)
        for trace in ("Root=1-a", "Root=1-b"):
            monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
            client.get_item(**CALLS["get_item"])
            assert wire.headers()["x-amzn-trace-id"] == trace.encode()

    def test_requests_with_binary_values_are_serialized_by_botocore(self):
        client = create_client()
        wire = Wire(client)
        client.put_item(TableName="t", Item={"pk": {"B": b"\x00\xff"}})
        assert json.loads(wire.sent[-1].body)["Item"] == {"pk": {"B": "AP8="}}

    def test_requests_name_the_software(self):
        client = create_client()
        wire = Wire(client)
        client.get_item(**CALLS["get_item"])
        assert b"Botocore/" in wire.headers()["user-agent"]


class TestResponses:
    def test_responses_are_dynamodb_json(self):
        client = create_client()
        Wire(client, (200, {"Item": KEY}))
        answer = client.get_item(**CALLS["get_item"])
        assert answer["Item"] == KEY
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200

    def test_refusals_are_the_errors_of_both_clients(self):
        client = create_client()
        kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
        Wire(client, (400, {"__type": kind, "message": "no", "Item": KEY}))
        with pytest.raises(ServiceError) as raised:
            client.put_item(**CALLS["put_item"])
        assert raised.value.code == "ConditionalCheckFailedException"
        assert raised.value.fields["Item"] == KEY
        assert (raised.value.status, raised.value.retries) == (400, 0)

    def test_a_broken_servers_responses_are_retried(self):
        client = create_client()
        wire = Wire(client, (500, {}), (200, {"Item": KEY}), (500, {}), (200, {"Item": KEY}))
        for _ in range(2):
            answer = client.get_item(**CALLS["get_item"])
            assert answer["Item"] == KEY
            assert answer["ResponseMetadata"]["RetryAttempts"] == 1
        assert len(wire.sent) == 4
        assert len({wire.headers(n)["amz-sdk-invocation-id"] for n in range(4)}) == 2

    def test_no_retry_outlasts_the_deadline(self):
        for seconds, requests in ((60, 3), (0, 1)):
            client = create_client()
            wire = Wire(client, (500, {}))
            with deadline.budget(seconds), deadline.spending(), pytest.raises(ServiceError):
                client.get_item(**CALLS["get_item"])
            assert len(wire.sent) == requests


class TestSetting:
    def test_the_setting_selects_the_client(self, monkeypatch):
        for library, kind in (("own", OwnClient), ("botocore", shortened.BotocoreClient)):
            monkeypatch.setitem(settings.__dict__, "aws_client", library)
            assert type(clients.create_client("sqs")) is kind
        assert load({"TABLE_NAME": "assent"}).aws_client == "own"
        with pytest.raises(ValueError, match="aws_client"):
            load({"TABLE_NAME": "assent", "AWS_CLIENT": "boto2"})

    def test_failures_have_the_errors_of_our_own_client(self, monkeypatch):
        client = shortened.create_client("dynamodb", "http://127.0.0.1:9")
        with pytest.raises(NoAnswer, match="EndpointConnectionError"):
            client.get_item(**CALLS["get_item"])
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(CredentialsUnavailable):
            create_client().get_item(**CALLS["get_item"])


class TestDeadline:
    def test_a_response_that_trickles_in_ends_at_the_deadline(self):
        with hung_server(FailureMode.TRICKLING) as server, deadline.budget(2), deadline.spending():
            with pytest.raises(NoAnswer):
                shortened.create_client("dynamodb", server.url).get_item(**CALLS["get_item"])
            assert server.time() < 2.1


class TestFallback:
    @pytest.mark.parametrize("moved", ["_serializer", "_ruleset_resolver", "_endpoint"])
    def test_an_incompatible_botocore_is_used_as_it_is(self, monkeypatch, moved):
        made = []
        made_by_botocore = Session.create_client

        def create_moved_client(session, *args, **options):
            client = made_by_botocore(session, *args, **options)
            made.append(client)
            if len(made) == 1:
                delattr(client, moved)
            return client

        monkeypatch.setattr(Session, "create_client", create_moved_client)
        client = create_client()
        Wire(client, (200, {"Item": KEY}))
        assert client._client is made[1]
        assert not isinstance(client._client._serializer, shortened._DirectSerializer)
        assert client.get_item(**CALLS["get_item"])["Item"] == KEY

    def test_the_installed_botocore_is_shortened(self):
        client = create_client()._client
        assert isinstance(client._serializer, shortened._DirectSerializer)
        assert isinstance(client._ruleset_resolver, shortened._EndpointOnce)
        assert isinstance(client._endpoint._response_parser_factory.create_parser("json"), shortened._DirectParser)


class TestRoots:
    @pytest.fixture
    def bundle(self, tmp_path, monkeypatch) -> Path:
        path = tmp_path / "roots.pem"
        monkeypatch.setattr(connection, "ROOTS", path)
        return path

    def verify(self):
        return create_client()._client._endpoint.http_session._verify

    def test_the_builds_root_certificates_are_used(self, bundle):
        bundle.write_text("")
        assert self.verify() == str(bundle)

    def test_botocores_root_certificates_are_used_without_a_build(self, bundle):
        assert self.verify() is True

    @pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
    def test_root_certificates_of_the_environment_come_first(self, bundle, monkeypatch, name):
        bundle.write_text("")
        monkeypatch.setenv(name, "/elsewhere.pem")
        assert self.verify() == "/elsewhere.pem"
