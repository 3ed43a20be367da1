"""REST API events (proxy format 1.0) as API Gateway sends them."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from typing import Any

HOST = "abcdefghij.execute-api.eu-central-1.amazonaws.com"


def rest_event(
    method: str,
    resource: str,
    *,
    path: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    body: Any = None,
    form: dict[str, str] | None = None,
    token: str | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The event of one request; `resource` is the route as the template writes it, `path` fills its parameters."""
    path = path or {}
    address = re.sub(r"{(\w+)}", lambda match: urllib.parse.quote(path[match[1]]), resource)
    text = json.dumps(body) if body is not None else urllib.parse.urlencode(form) if form is not None else None
    sent = {
        "Accept": "application/json",
        "Host": HOST,
        "User-Agent": "benchmark/1.0",
        "X-Amzn-Trace-Id": "Root=1-01234567-0123456789abcdef01234567",
        "X-Forwarded-For": "192.0.2.7, 198.51.100.9",
        "X-Forwarded-Port": "443",
        "X-Forwarded-Proto": "https",
        **({"Authorization": f"Bearer {token}"} if token else {}),
        **({"Content-Type": "application/json"} if body is not None else {}),
        **({"Content-Type": "application/x-www-form-urlencoded"} if form is not None else {}),
        **(headers or {}),
    }
    return {
        "resource": resource,
        "path": address,
        "httpMethod": method,
        "headers": sent,
        "multiValueHeaders": {name: [value] for name, value in sent.items()},
        "queryStringParameters": query,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} if query else None,
        "pathParameters": path or None,
        "stageVariables": None,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "abcdefghij",
            "domainName": HOST,
            "domainPrefix": "abcdefghij",
            "extendedRequestId": "AbCdEfGhIjKlMnO=",
            "httpMethod": method,
            "identity": {"sourceIp": "192.0.2.7", "userAgent": "benchmark/1.0"},
            "path": f"/v1{address}",
            "protocol": "HTTP/1.1",
            "requestId": "11111111-2222-4333-8444-555555555555",
            "requestTimeEpoch": int(time.time() * 1000),
            "resourceId": "abc123",
            "resourcePath": resource,
            "stage": "v1",
        },
        "body": text,
        "isBase64Encoded": False,
    }
