"""botocore as the client of DynamoDB and SQS: the operators' fallback, and what the tests on moto use.

It raises the same errors as our own client and honors the request's deadline. Its slowest parts are left out for
DynamoDB: the response parser takes most of the time of a Query, although responses are already JSON, and every call
rebuilds the request and resolves the endpoint by rules, although only the parameters differ. Here, constant work is
done once, and JSON is read and written directly. If a botocore release changes the internals replaced here, its own
code is used: slower, but correct.
"""

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
from botocore.exceptions import ConnectionError as ConnectionFailed
from botocore.retries import standard
from botocore.session import Session
from pydantic_core import from_json

from controlplane.aws.client import Client
from controlplane.aws.connection import ca_file
from controlplane.aws.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError
from controlplane.core import deadline
from controlplane.core.connections import BoundedConnection

_ATTEMPTS = 3
# Services whose calls aren't repeated, because an email would be sent twice.
_ONCE = {"sesv2"}
# Timeouts are per attempt. Within a request, its deadline limits all attempts together: see controlplane.core.deadline.
_CONFIG = Config(
    parameter_validation=False,
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
    max_pool_connections=32,
)


class _DirectParser:
    """Replaces botocore's response parser. `parse` has the same contract (response dict and shape to dict)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def parse(self, response: dict[str, Any], shape: Any) -> Any:
        if response["status_code"] != 200:
            return self._inner.parse(response, shape)
        parsed: dict[str, Any] = from_json(response["body"])
        parsed["ResponseMetadata"] = {"HTTPStatusCode": 200, "HTTPHeaders": response["headers"]}
        return parsed


class _DirectSerializer:
    """Replaces botocore's serializer. Parameters are already DynamoDB JSON; botocore builds each frame once."""

    def __init__(self, frame: Callable[..., dict[str, Any]]) -> None:
        self._frame = frame
        self._frames: dict[str, dict[str, Any]] = {}

    def serialize_to_request(self, parameters: dict[str, Any], operation_model: Any) -> dict[str, Any]:
        try:
            body = json.dumps(parameters).encode()
        except TypeError:  # bytes or a date, which botocore can serialize
            return self._frame(parameters, operation_model)
        frame = self._frames.get(operation_model.name)
        if frame is None:
            frame = self._frames[operation_model.name] = self._frame({}, operation_model)
        return {**frame, "headers": {**frame["headers"]}, "body": body}


class _EndpointOnce:
    """Replaces botocore's rule-based endpoint resolution for each call.

    The rules depend on region, configuration, and the credentials' account, which are constant in a process.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._construct = inner.construct_endpoint
        self._known: dict[str, Any] = {}

    def construct_endpoint(self, operation_model: Any, call_args: Any, request_context: Any) -> Any:
        known = self._known.get(operation_model.name)
        if known is None:
            known = self._construct(operation_model, call_args, request_context)
            self._known[operation_model.name] = known
        return known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _cut_short(client: Any) -> None:
    """Replaces the slow parts. Raises AttributeError, before changing anything, if botocore's internals differ."""
    factory, serializer = client._endpoint._response_parser_factory, client._serializer
    create_parser, frame = factory.create_parser, serializer.serialize_to_request
    direct, once = _DirectSerializer(frame), _EndpointOnce(client._ruleset_resolver)
    if client.meta.service_model.resolved_protocol != "json":
        raise AttributeError("the protocol is not JSON")
    factory.create_parser = lambda protocol: _DirectParser(create_parser(protocol))
    client._serializer, client._ruleset_resolver = direct, once


class BotocoreClient(Client):
    """A botocore client with the errors of `controlplane.aws.errors`."""

    def __init__(self, service: str, client: Any) -> None:
        super().__init__(service)
        self._client = client

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Raises ServiceError, NoAnswer, and AwsError for anything else that botocore reports."""
        try:
            answer: dict[str, Any] = self._client._make_api_call(operation, parameters)
        except ClientError as error:
            raise _translated(operation, error) from error
        except NoCredentialsError as error:
            raise CredentialsUnavailable(str(error)) from error
        except (ConnectionFailed, HTTPClientError) as error:
            raise NoAnswer(type(error).__name__) from error
        except BotoCoreError as error:
            raise AwsError(str(error)) from error
        return answer


def _translated(operation: str, error: ClientError) -> ServiceError:
    response = dict(error.response)
    described, metadata = response.pop("Error", {}), response.pop("ResponseMetadata", {})
    return ServiceError(
        operation,
        described.get("Code", ""),
        described.get("Message", ""),
        status=metadata.get("HTTPStatusCode", 400),
        fields=response,
        headers=metadata.get("HTTPHeaders"),
        retries=metadata.get("RetryAttempts", 0),
    )


def create_client(service: str, endpoint_url: str | None = None) -> BotocoreClient:
    """Returns a client of any service."""
    session = Session()
    # botocore would rebuild the header for each call.
    attempts = 1 if service in _ONCE else _ATTEMPTS
    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = _CONFIG.merge(Config(user_agent=session.user_agent(), retries=retries))
    verify = None if session.get_config_variable("ca_bundle") else ca_file()
    client = session.create_client(service, endpoint_url=endpoint_url, config=config, verify=verify)
    if service == "dynamodb":
        try:
            _cut_short(client)
        except AttributeError:
            client = session.create_client(service, endpoint_url=endpoint_url, config=config, verify=verify)
    _bound(client, attempts)
    return BotocoreClient(service, client)


class _Connection(BoundedConnection, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _TlsConnection(BoundedConnection, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _Connection


class _TlsPool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _TlsConnection


_POOLS = {"http": _Pool, "https": _TlsPool}


def _bound(client: Any, attempts: int) -> None:
    """Makes a new botocore client honor the deadline.

    The client must use the standard retry mode; `attempts` is its configured total_max_attempts.
    """
    session = client._endpoint.http_session
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = _POOLS
    name = client.meta.service_model.service_id.hyphenize()
    event, unique_id = f"needs-retry.{name}", f"retry-config-{name}"
    client.meta.events.unregister(event, unique_id=unique_id)
    handler = standard.register_retry_handler(client, attempts)
    client.meta.events.unregister(event, unique_id=unique_id)

    def pause_before_retry(**outcome: Any) -> float | None:
        """Returns the backoff in seconds, or None to accept the outcome without a retry."""
        pause: float | None = handler.needs_retry(**outcome)
        left = deadline.remaining()
        return None if pause is None or (left is not None and pause >= left) else pause

    client.meta.events.register(event, pause_before_retry, unique_id=unique_id)
