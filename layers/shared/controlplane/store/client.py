"""botocore's DynamoDB client with its slowest part cut out.

botocore signs, retries and finds credentials. Its response parser takes most of the time of a Query, though, and
DynamoDB's answers are JSON already: a 200 is decoded directly, everything else goes to botocore's own parser.
"""

import json
from typing import Any

from botocore.config import Config
from botocore.session import Session

_CONFIG = Config(
    parameter_validation=False,
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
)


class _DirectParser:
    """Stands where botocore puts a response parser; `parse` has its contract (response dict and shape to dict)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def parse(self, response: dict[str, Any], shape: Any) -> Any:
        if response["status_code"] != 200:
            return self._inner.parse(response, shape)
        parsed = json.loads(response["body"])
        parsed["ResponseMetadata"] = {"HTTPStatusCode": 200, "HTTPHeaders": response["headers"]}
        return parsed


def _decode_directly(client: Any) -> None:
    factory = client._endpoint._response_parser_factory
    create_parser = factory.create_parser
    factory.create_parser = lambda protocol: _DirectParser(create_parser(protocol))


def create_client(endpoint_url: str | None = None) -> Any:
    """A DynamoDB client whose answers are plain dicts of DynamoDB JSON."""
    client = Session().create_client("dynamodb", endpoint_url=endpoint_url, config=_CONFIG)
    try:
        _decode_directly(client)
    except AttributeError:  # botocore moved its internals: slower, and right
        return Session().create_client("dynamodb", endpoint_url=endpoint_url, config=_CONFIG)
    return client
