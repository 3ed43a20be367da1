"""REST API proxy events (payload format 1.0), as API Gateway sends them to a function.

`python -m local.events GET '/v1/projects?limit=10' --token "$TOKEN"` prints one for `sam local invoke`. `events/` has
one for each function; this builds the rest.
"""

import argparse
import base64
import json
import re
import time
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, quote

_API = "abcdefghij"
_HOST = f"{_API}.execute-api.eu-central-1.amazonaws.com"
_STAGE = "live"
_NUMBERS = count(1)


def rest_event(
    method: str,
    target: str,
    *,
    resource: str | None = None,
    token: str | None = None,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    source_ip: str = "198.51.100.7",
) -> dict[str, Any]:
    """Returns the event of one request.

    target: path and query. resource: the route in the template; by default, the path itself. The body is
    sent as JSON unless `headers` names another content type.
    """
    path, _, query_string = target.partition("?")
    sent = {
        "Accept": "application/json",
        "Host": _HOST,
        "User-Agent": "assent-event/1.0",
        "X-Amzn-Trace-Id": "Root=1-01234567-0123456789abcdef01234567",
        "X-Forwarded-For": source_ip,
        "X-Forwarded-Port": "443",
        "X-Forwarded-Proto": "https",
    }
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    sent |= headers or {}
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(query_string, keep_blank_values=True):
        query.setdefault(name, []).append(value)
    text, is_binary = _encoded(body)
    return {
        "resource": resource or path,
        "path": path,
        "httpMethod": method,
        "headers": sent,
        "multiValueHeaders": {name: [value] for name, value in sent.items()},
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": _parameters(resource, path),
        "stageVariables": None,
        "requestContext": {
            "apiId": _API,
            "domainName": _HOST,
            "httpMethod": method,
            "identity": {"sourceIp": source_ip, "userAgent": sent["User-Agent"]},
            "path": f"/{_STAGE}{path}",
            "protocol": "HTTP/1.1",
            "requestId": f"request-{next(_NUMBERS)}",
            "requestTimeEpoch": int(time.time() * 1000),
            "resourcePath": resource or path,
            "stage": _STAGE,
        },
        "body": text,
        "isBase64Encoded": is_binary,
    }


def _encoded(body: bytes | None) -> tuple[str | None, bool]:
    """Returns the body as text and whether that is Base64, which the gateway uses for anything but UTF-8."""
    if body is None:
        return None, False
    try:
        return body.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def route(resource: str, parameters: dict[str, str]) -> str:
    """Returns the path of a route with its parameters filled in."""
    return re.sub(r"{(\w+)}", lambda match: quote(parameters[match[1]]), resource)


def _parameters(resource: str | None, path: str) -> dict[str, str] | None:
    parts = zip((resource or "").split("/"), path.split("/"), strict=False)
    return {name[1:-1]: value for name, value in parts if name.startswith("{")} or None


def main() -> None:
    """Prints the event that the arguments describe."""
    parser = argparse.ArgumentParser(prog="python -m local.events", description=__doc__)
    parser.add_argument("method")
    parser.add_argument("target", help="path and query")
    parser.add_argument("--token", help="an API key or a user token")
    parser.add_argument("--body", help="sent as JSON")
    options = parser.parse_args()
    body = None if options.body is None else options.body.encode()
    print(json.dumps(rest_event(options.method, options.target, token=options.token, body=body), indent=2))


if __name__ == "__main__":
    main()
