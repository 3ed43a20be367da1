"""Requests from an Application Load Balancer, which can take the gateway's place, and its limits for responses.

A request becomes the gateway's event of the same request, so that everything else knows only that one. The client's
address and the request's id come from what the balancer itself adds to headers, never from what the client sent there.
docs/decisions/0100-a-balancer-can-take-the-gateways-place.md has the reasons.

Imported with the first such request, because most deployments have no load balancer.
"""

import base64
import json
import re
import uuid
import zlib
from typing import Any
from urllib.parse import unquote_plus

from controlplane.core.errors import InvalidPayload
from controlplane.core.observability import logger

type Event = dict[str, Any]

# Of a response as JSON. AWS says 1 MB.
RESPONSE_LIMIT_BYTES = 1_000_000
# The gateway compresses responses from this size: MinimumCompressionSize in template.yaml, which has the reason.
COMPRESSED_FROM_BYTES = 8192
# A body of fewer characters is below the limit: each takes at most six bytes in JSON.
_SMALL_LENGTH = RESPONSE_LIMIT_BYTES // 10  # mutant: it only decides whether the size is computed

# What a response that is too large says of the request and its credential.
_KEPT_HEADERS = ("x-request-id", "x-ratelimit-", "x-key-", "strict-transport-security")

_TRACE_ID = re.compile(r"1-[0-9a-f]{8}-[0-9a-f]{1,24}")
_GZIP = re.compile(r"(?:^|,)\s*gzip\s*(?:$|,|;(?!\s*q=0(?:\.0*)?\s*(?:$|,)))", re.IGNORECASE)


class _ResponseTooLarge(InvalidPayload):
    message = "The response would be larger than 1 MB. Accept gzip, or request fewer items at a time."
    problem = "response_too_large"


def gateway_event(event: Event) -> Event:
    """Returns the gateway's event of the same request. The balancer decodes neither the path nor the query."""
    headers = {name.lower(): values for name, values in event["multiValueHeaders"].items()}
    query: dict[str, list[str]] = {}
    for name, values in (event.get("multiValueQueryStringParameters") or {}).items():
        query.setdefault(unquote_plus(name), []).extend(map(unquote_plus, values))
    return {
        **event,
        # The path has as many segments as its route.
        "resource": event["path"],
        "multiValueHeaders": headers,
        "multiValueQueryStringParameters": query,
        "requestContext": {"requestId": _request_id(headers), "identity": {"sourceIp": _source_address(headers)}},
    }


def _request_id(headers: dict[str, list[str]]) -> str:
    """Returns the id in the balancer's own log. If the client sends one as Root, the balancer adds its own as Self."""
    trace = headers.get("x-amzn-trace-id", ())
    if len(trace) == 1:
        parts = [part.strip().partition("=") for part in trace[0].split(";")]
        for field in ("Self", "Root"):
            found = [value for name, _, value in parts if name == field]
            if found:
                return found[0] if len(found) == 1 and _TRACE_ID.fullmatch(found[0]) else str(uuid.uuid4())
    return str(uuid.uuid4())


def _source_address(headers: dict[str, list[str]]) -> str:
    """Returns the address that the balancer appended to the header, which the client may have sent as well.

    Empty if there are several such headers: AWS doesn't say to which of them the balancer appends.
    """
    forwarded = headers.get("x-forwarded-for", ())
    # Some proxies of AWS put an IPv6 address in brackets.
    return forwarded[0].rpartition(",")[2].strip(" []") if len(forwarded) == 1 else ""


def response_of(answer: dict[str, Any], event: Event) -> dict[str, Any]:
    """Returns the answer to the gateway as the balancer takes it. event: the one of `gateway_event`."""
    headers = {name: [value] for name, value in answer["headers"].items()} | answer["multiValueHeaders"]
    response = {
        "statusCode": answer["statusCode"],
        "multiValueHeaders": headers,
        "body": answer["body"],
        "isBase64Encoded": answer["isBase64Encoded"],
    }
    if len(answer["body"]) >= COMPRESSED_FROM_BYTES:
        accepted = ",".join(event["multiValueHeaders"].get("accept-encoding", ()))
        if _GZIP.search(accepted) and not answer["isBase64Encoded"] and "content-encoding" not in headers:
            _compress(response)
        if _is_too_large(response):
            return _refusal(headers)
    return response


def _compress(response: dict[str, Any]) -> None:
    packed = zlib.compress(response["body"].encode(), wbits=31)
    response["body"], response["isBase64Encoded"] = base64.b64encode(packed).decode(), True
    headers = response["multiValueHeaders"]
    headers["content-encoding"] = ["gzip"]
    if "Accept-Encoding" not in ",".join(headers.get("vary", ())):
        headers["vary"] = [*headers.get("vary", ()), "Accept-Encoding"]


def _is_too_large(response: dict[str, Any]) -> bool:
    if len(response["body"]) < _SMALL_LENGTH:
        return False
    return len(json.dumps(response, ensure_ascii=False).encode()) > RESPONSE_LIMIT_BYTES


def _refusal(headers: dict[str, list[str]]) -> dict[str, Any]:
    """Returns the response in place of one that the balancer would turn into a 502."""
    from controlplane.http import envelope, fixes  # noqa: PLC0415 (imported with the first error)

    error = _ResponseTooLarge()
    kept = {name: values for name, values in headers.items() if name.startswith(_KEPT_HEADERS)}
    logger.info("refused", extra={"requestId": headers["x-request-id"][0], "code": error.code})
    return {
        "statusCode": error.status,
        "multiValueHeaders": {
            "content-type": ["application/json"],
            "cache-control": ["no-store"],
            **kept,
        },
        "body": envelope.failure(error, fixes.public_details(error, None)).decode(),
        "isBase64Encoded": False,
    }
