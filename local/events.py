"""REST API proxy events (payload format 1.0), as API Gateway sends them to a function.

`python -m local.events GET '/v1/projects?limit=10' --token "$TOKEN"` prints one for `sam local invoke`. `events/` has
one for each function; this builds the rest.
"""

import argparse
import json
import re
from itertools import count
from typing import Any
from urllib.parse import quote

from local.gateway import HOST, Request, proxy_event

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
    sent = {"Accept": "application/json", "Host": HOST, "User-Agent": "assent-event/1.0"}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    sent |= headers or {}
    request = Request(method, target, [*sent.items()], body or b"", source_ip)
    return proxy_event(request, resource or target.partition("?")[0], f"request-{next(_NUMBERS)}")


def route(resource: str, parameters: dict[str, str]) -> str:
    """Returns the path of a route with its parameters filled in."""
    return re.sub(r"{(\w+)}", lambda match: quote(parameters[match[1]]), resource)


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
