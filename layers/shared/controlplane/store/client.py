"""botocore's DynamoDB client without its slowest parts.

botocore still signs, retries, and finds credentials. The rest of its work costs more than that: the response parser
takes most of the time of a Query, although DynamoDB's responses are already JSON, and every call rebuilds the request
and resolves the endpoint by rules, although only the parameters differ. Here, constant work is done once, and JSON is
read and written directly. If a botocore release changes the internals replaced here, its own code is used: slower, but
correct.
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

from controlplane.core import connections

_ATTEMPTS = 3
# Timeouts are per attempt. Within a request, its deadline limits all attempts together: see controlplane.core.deadline.
_CONFIG = Config(
    parameter_validation=False,
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
    max_pool_connections=32,
)
# The root certificates of AWS endpoints, added by the build. Loading the full CA bundle takes 15 ms of the first call.
ROOTS = Path(__file__).parents[1] / "amazon-roots.pem"


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


# Sessions that have loaded the DynamoDB service model. The next client takes one.
_prepared: list[Session] = []


def prepare() -> None:
    """Does most of the work of creating a client in advance. Keeps no credentials and no connections."""
    session = Session()
    # Without explicit credentials, the client would look up the function's.
    placeholder = "none"
    session.create_client("dynamodb", config=_CONFIG, aws_access_key_id=placeholder, aws_secret_access_key=placeholder)
    gc.collect()  # the client is part of reference cycles
    _prepared.append(session)


def create_client(endpoint_url: str | None = None) -> Any:
    """Returns a DynamoDB client whose responses are plain dicts of DynamoDB JSON."""
    session = _prepared.pop() if _prepared else Session()
    # botocore would rebuild the header for each call.
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
