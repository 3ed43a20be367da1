"""botocore's DynamoDB client with its slowest parts cut out.

botocore signs, retries and finds credentials. What surrounds that costs more than it: its response parser takes most of
the time of a Query, though DynamoDB's answers are JSON already; a request is rebuilt and its endpoint resolved by rules
at every call, though nothing but the parameters differ. What is the same each time is done once here, and JSON is read
and written directly. Where botocore has moved what this replaces, it does the work itself: slower, and right.
"""

import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.session import Session
from pydantic_core import from_json

from controlplane import connections

_ATTEMPTS = 3
# Of each attempt. Within a request, its deadline bounds all of them together: see controlplane.deadline.
_CONFIG = Config(
    parameter_validation=False,
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
    max_pool_connections=32,
)
# The certificate roots that AWS's endpoints chain to, where the build has put them: loading all of the world's takes
# 15 ms of the first call.
ROOTS = Path(__file__).parents[1] / "amazon-roots.pem"


class _DirectParser:
    """Stands where botocore puts a response parser; `parse` has its contract (response dict and shape to dict)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def parse(self, response: dict[str, Any], shape: Any) -> Any:
        if response["status_code"] != 200:
            return self._inner.parse(response, shape)
        parsed: dict[str, Any] = from_json(response["body"])
        parsed["ResponseMetadata"] = {"HTTPStatusCode": 200, "HTTPHeaders": response["headers"]}
        return parsed


class _DirectSerializer:
    """Stands where botocore puts its serializer. Parameters are DynamoDB's JSON already; botocore frames them once."""

    def __init__(self, frame: Callable[..., dict[str, Any]]) -> None:
        self._frame = frame
        self._frames: dict[str, dict[str, Any]] = {}

    def serialize_to_request(self, parameters: dict[str, Any], operation_model: Any) -> dict[str, Any]:
        try:
            body = json.dumps(parameters).encode()
        except TypeError:  # bytes or a date, which botocore knows how to write
            return self._frame(parameters, operation_model)
        frame = self._frames.get(operation_model.name)
        if frame is None:
            frame = self._frames[operation_model.name] = self._frame({}, operation_model)
        return {**frame, "headers": {**frame["headers"]}, "body": body}


class _EndpointOnce:
    """Stands where botocore resolves the endpoint of each call by rules.

    They depend on the region, the configuration and the credentials' account, which are the process's own.
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
    """Raises AttributeError before it has changed anything where botocore is not as this knows it."""
    factory, serializer = client._endpoint._response_parser_factory, client._serializer
    create_parser, frame = factory.create_parser, serializer.serialize_to_request
    direct, once = _DirectSerializer(frame), _EndpointOnce(client._ruleset_resolver)
    if client.meta.service_model.resolved_protocol != "json":
        raise AttributeError("the protocol is not JSON")
    factory.create_parser = lambda protocol: _DirectParser(create_parser(protocol))
    client._serializer, client._ruleset_resolver = direct, once


# Sessions that have read the description of DynamoDB. The next client takes one.
_prepared: list[Session] = []


def prepare() -> None:
    """Does what takes most of a client's making, ahead of the first one, and keeps no credential and no connection."""
    session = Session()
    # Without credentials of its own the client would ask for the function's.
    nobody = "none"
    session.create_client("dynamodb", config=_CONFIG, aws_access_key_id=nobody, aws_secret_access_key=nobody)
    gc.collect()  # the client and its like refer to each other
    _prepared.append(session)


def create_client(endpoint_url: str | None = None) -> Any:
    """A DynamoDB client whose answers are plain dicts of DynamoDB JSON."""
    session = _prepared.pop() if _prepared else Session()
    # botocore would put the header together anew for each call.
    config = _CONFIG.merge(Config(user_agent=session.user_agent()))
    named = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    verify = str(ROOTS) if not named and ROOTS.is_file() else None
    client = session.create_client("dynamodb", endpoint_url=endpoint_url, config=config, verify=verify)
    try:
        _cut_short(client)
    except AttributeError:
        client = session.create_client("dynamodb", endpoint_url=endpoint_url, config=config, verify=verify)
    connections.bound(client, _ATTEMPTS)
    return client
