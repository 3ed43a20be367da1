"""A double of API Gateway's REST API: between an HTTP request and a function, it behaves as AWS documents.

The server of `make run` sends every request through it, and so do the functional tests' client and the tests of the
deployed functions. Routes and the gateway's own responses come from template.yaml, or from what was deployed. The
sources are pages of the API Gateway developer guide (important notes, quotas, gateway response types, proxy
integrations) and, for errors of functions, "Handling Lambda errors with an API Gateway API" in the Lambda developer
guide. It doesn't throttle or compress. No route uses authorizers, request validators, usage plans, or binary media
types, so it has none.
"""

import base64
import json
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from controlplane.platform.core.settings import settings
from local.template import load_template

# Headers of functions' responses. The gateway adds its own Date and Server.
_REMAPPED = {
    "authorization",
    "connection",
    "content-md5",
    "date",
    "max-forwards",
    "server",
    "user-agent",
    "www-authenticate",
}
_DROPPED = {"expect", "host", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade", "via"}
REMAPPED_PREFIX = "x-amzn-remapped-"
# Headers of requests that functions don't get as they are: those of the connection.
_NOT_FORWARDED = _DROPPED - {"host"} | {"connection", "x-forwarded-for"}

# The methods of a route with the method `ANY`.
_ANY = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}
# The payload of a request to the gateway.
REQUEST_LIMIT_BYTES = 10 * 2**20
# An event or an answer of a function, as JSON. Lambda adds 100 bytes to 6 MB.
INVOCATION_LIMIT_BYTES = 6 * 2**20 + 100
TIMEOUT_SECONDS = 29
_ANSWER_FIELDS = {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"}

_API = "abcdefghij"
HOST = f"{_API}.execute-api.eu-central-1.amazonaws.com"
_STAGE = "live"
SOURCE_IP = "198.51.100.7"

type Headers = list[tuple[str, str]]
type Event = dict[str, Any]


class Request(NamedTuple):
    """A request as the gateway gets it. target: path and query, as sent."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""
    source_ip: str = SOURCE_IP


class Response(NamedTuple):
    """A response as the client gets it. Names of headers are in lowercase. is_own: no function gave the answer."""

    status: int
    headers: Headers
    body: bytes
    is_own: bool = False

    @property
    def request_id(self) -> str:
        return dict(self.headers)["x-amzn-requestid"]


class Route(NamedTuple):
    """A route, with the method `ANY` for all. function: its code folder, or the ARN that a deployed gateway invokes."""

    method: str
    path: str
    function: str


class InvocationRejected(Exception):
    """Lambda didn't run the function, usually because no concurrency is left."""


class FunctionFailed(Exception):
    """The function ended with an error or by its timeout, or gave an answer that isn't a response."""


# Runs a function. Raises InvocationRejected, FunctionFailed, or, after TIMEOUT_SECONDS, TimeoutError.
type Invoke = Callable[[str, Event], Any]


class Gateway:
    """Routes requests to functions, whose answers become responses.

    own_responses: the gateway's own, by type, as a template declares them. By default, routes and own responses are
    template.yaml's.
    """

    def __init__(
        self,
        invoke: Invoke,
        routes: Iterable[Route] | None = None,
        *,
        own_responses: dict[str, Any] | None = None,
        stage_variables: dict[str, str] | None = None,
    ) -> None:
        self._invoke = invoke
        self._own_responses = own_responses
        self._routes = template_table() if routes is None else RouteTable(routes)
        self._stage_variables = stage_variables

    def respond(self, request: Request) -> Response:
        """Returns the response to a request. One to HEAD never has a body."""
        response = self._respond(request, str(uuid.uuid4()))
        return response._replace(body=b"") if request.method == "HEAD" else response

    def _respond(self, request: Request, request_id: str) -> Response:
        route = self._routes.find(request.method, request.target.partition("?")[0])
        if route is None:
            # With an Authorization header, the gateway looks for an AWS signature in it.
            is_signed = any(name.lower() == "authorization" for name, _ in request.headers)
            return self._own("DEFAULT_4XX" if is_signed else "MISSING_AUTHENTICATION_TOKEN", request_id)
        if len(request.body) > REQUEST_LIMIT_BYTES:
            return self._own("REQUEST_TOO_LARGE", request_id)
        event = proxy_event(request, route.path, request_id) | {"stageVariables": self._stage_variables}
        if _size_bytes(event) > INVOCATION_LIMIT_BYTES:
            return self._own("REQUEST_TOO_LARGE", request_id)
        try:
            answer = self._invoke(route.function, event)
            status, headers, body = _read(answer)
        except InvocationRejected:
            return self._own("INTEGRATION_FAILURE", request_id)
        except FunctionFailed:
            return self._own("DEFAULT_5XX", request_id)
        except TimeoutError:
            return self._own("INTEGRATION_TIMEOUT", request_id)
        return Response(status, [*rename_headers(headers), ("x-amzn-requestid", request_id)], body)

    def _own(self, kind: str, request_id: str) -> Response:
        return own_response(kind, request_id, self._own_responses)


class RouteTable:
    """Routes by path, those with the fewest parameters first, and by method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        by_path: dict[str, dict[str, Route]] = defaultdict(dict)
        for route in routes:
            by_path[route.path][route.method] = route
        ordered = sorted(by_path, key=lambda path: (path.endswith("+}"), path.count("{")))
        self._paths = [(_expression(path), by_path[path]) for path in ordered]

    def find(self, method: str, path: str) -> Route | None:
        """Returns the route of a path as it was sent: an encoded slash separates nothing."""
        given = "/".join(unquote(segment).replace("/", "%2F") for segment in path.split("/"))
        methods = next((methods for expression, methods in self._paths if expression.fullmatch(given)), {})
        return methods.get(method) or (methods.get("ANY") if method in _ANY else None)


def _expression(path: str) -> re.Pattern[str]:
    parts = re.split(r"({\w+\+?})", path)
    return re.compile(
        "".join((".+" if it[-2:] == "+}" else "[^/]+") if it[:1] == "{" else re.escape(it) for it in parts), re.DOTALL
    )


@cache
def template_table() -> RouteTable:
    """Returns template.yaml's routes."""
    return RouteTable(template_routes())


@cache
def template_routes() -> tuple[Route, ...]:
    """Returns the routes of template.yaml."""
    functions = [it["Properties"] for it in _resources("AWS::Serverless::Function")]
    return tuple(
        Route(event["Properties"]["Method"], event["Properties"]["Path"], Path(function["CodeUri"]).name)
        for function in functions
        for event in function.get("Events", {}).values()
        if event["Type"] == "Api"
    )


def proxy_event(request: Request, resource: str, request_id: str) -> Event:
    """Returns the event (payload format 1.0) of a request to the route `resource`."""
    path, _, query_string = request.target.partition("?")
    headers: dict[str, list[str]] = defaultdict(list)
    for name, value in request.headers:
        if name.lower() not in _NOT_FORWARDED:
            headers[name].append(value)
    sent = {name.lower(): value for name, value in request.headers}
    forwarded = [value for name, value in request.headers if name.lower() == "x-forwarded-for"]
    headers["X-Forwarded-For"] = [", ".join([*forwarded, request.source_ip])]
    headers["X-Forwarded-Port"], headers["X-Forwarded-Proto"] = ["443"], ["https"]
    if "host" not in sent:
        headers["Host"] = [HOST]
    if "x-amzn-trace-id" not in sent:
        headers["X-Amzn-Trace-Id"] = ["Root=1-01234567-0123456789abcdef01234567"]
    query: dict[str, list[str]] = defaultdict(list)
    for name, value in parse_qsl(query_string, keep_blank_values=True):
        query[name].append(value)
    body, is_base64 = _encoded(request.body)
    return {
        "resource": resource,
        "path": path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": dict(headers),
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": dict(query) or None,
        "pathParameters": _path_parameters(resource, path),
        "stageVariables": None,
        "requestContext": {
            "apiId": _API,
            "domainName": HOST,
            "httpMethod": request.method,
            "identity": {"sourceIp": request.source_ip, "userAgent": sent.get("user-agent")},
            "path": f"/{_STAGE}{path}",
            "protocol": "HTTP/1.1",
            "requestId": request_id,
            "requestTimeEpoch": int(time.time() * 1000),
            "resourcePath": resource,
            "stage": _STAGE,
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }


def _path_parameters(resource: str, path: str) -> dict[str, str] | None:
    prefix = resource.removesuffix("{path+}")
    if prefix != resource:
        return {"path": unquote(path.removeprefix(prefix))}
    parts = zip(resource.split("/"), path.split("/"), strict=False)
    return {name[1:-1]: unquote(value) for name, value in parts if name[:1] == "{"} or None


def _encoded(body: bytes) -> tuple[str | None, bool]:
    """Returns the body, and whether it is Base64.

    The API has no binary media types, so AWS converts bytes that aren't UTF-8 to text. Here, such bodies are Base64,
    so that tests reach the functions' own checks of them.
    """
    try:
        return body.decode() or None, False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def _read(answer: Any) -> tuple[int, Headers, bytes]:
    """Returns status, headers, and body of a function's answer. Raises FunctionFailed if it isn't a response.

    Without binary media types, a body that is Base64 stays so.
    """
    try:
        size = _size_bytes(answer)
    except (TypeError, ValueError) as error:
        raise FunctionFailed("the answer isn't JSON") from error
    match answer:
        case {"statusCode": int() as status} if answer.keys() <= _ANSWER_FIELDS and size <= INVOCATION_LIMIT_BYTES:
            given = {name: value for name, value in answer.items() if value is not None}
            body = given.get("body", "")
            single, several = given.get("headers", {}), given.get("multiValueHeaders", {})
            if isinstance(body, str) and isinstance(single, dict) and isinstance(several, dict):
                headers = [(name, str(value)) for name, values in several.items() for value in values]
                headers += [(name, str(value)) for name, value in single.items() if name not in several]
                return status, headers, body.encode()
    raise FunctionFailed("the answer isn't a response")


def _size_bytes(payload: Any) -> int:
    text = json.dumps(payload, ensure_ascii=False)
    return len(text) if text.isascii() else len(text.encode())


def rename_headers[Value](headers: Iterable[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Returns the headers, with lowercase names, that a client gets for the headers of a function's response."""
    lowered = [(name.lower(), value) for name, value in headers]
    return [
        (REMAPPED_PREFIX + name if name in _REMAPPED else name, value)
        for name, value in lowered
        if name not in _DROPPED
    ]


def body_of(response: dict[str, Any]) -> tuple[str, str]:
    """Returns the media type and the body of one of the template's responses, with the address of this process."""
    ((media_type, declared),) = response["ResponseTemplates"].items()
    text, values = declared["Fn::Sub"]
    for name, value in {**values, "Docs": f"{settings.public_base_url or ''}/docs/errors"}.items():
        text = text.replace(f"${{{name}}}", value)
    return media_type, text


def own_response(kind: str, request_id: str, responses: dict[str, Any] | None = None) -> Response:
    """Returns the gateway's own response of that type, without a function's answer: by default the template's."""
    if responses is None:
        (api,) = _resources("AWS::Serverless::Api")
        responses = api["Properties"]["GatewayResponses"]
    declared = responses[kind]
    media_type, body = body_of(declared)
    values = {"context.requestId": request_id}
    headers = [
        (name.lower(), values[value] if value in values else re.sub("^'|'$", "", value))
        for name, value in declared["ResponseParameters"]["Headers"].items()
    ]
    sent = [("content-type", media_type), *headers, ("x-amzn-requestid", request_id)]
    return Response(declared["StatusCode"], sent, body.encode(), is_own=True)


def _resources(kind: str) -> list[dict[str, Any]]:
    return [it for it in load_template()["Resources"].values() if it["Type"] == kind]
