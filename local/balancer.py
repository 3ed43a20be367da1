"""A double of an Application Load Balancer with functions as its targets: it behaves as AWS documents.

It takes rules and its own 404 from template.yaml, or from what was deployed. The sources are pages of its user guide
(Lambda functions as targets, listener rules, HTTP headers, request tracing, troubleshooting). It has neither TLS nor an
access log.
"""

import base64
import json
import re
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from controlplane.core.settings import settings
from local.gateway import Event, FunctionFailed, Headers, InvocationRejected, Invoke, Request, Response
from local.template import load_template

# Of a body, and of a function's answer as JSON.
LIMIT_BYTES = 1_000_000
# Bodies of other types are Base64, and so are compressed ones.
_TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/xml")
# With `drop_invalid_header_fields`, others don't reach functions.
_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+")
_NUMBERS = count(1)


class Rule(NamedTuple):
    """A rule. function: the name of its code folder, or None for the response to unknown paths."""

    patterns: tuple[str, ...]
    function: str | None

    def matches(self, path: str) -> bool:
        """Returns whether one of the patterns matches the path as it was sent."""
        return any(_expression(pattern).fullmatch(path) for pattern in self.patterns)


class Balancer:
    """Routes requests to functions, whose answers become responses. trace_id: the one of the last request."""

    def __init__(self, invoke: Invoke, rules: tuple[Rule, ...] | None = None) -> None:
        self._invoke = invoke
        self._rules = template_rules() if rules is None else rules
        self.trace_id = ""

    def respond(self, request: Request) -> Response:
        """Returns the response to a request."""
        function = self.find(request.target.partition("?")[0])
        if function is None:
            return Response(404, [("content-type", "application/json")], unknown_path_body().encode(), is_own=True)
        if len(request.body) > LIMIT_BYTES:
            return _own(413)
        self.trace_id = f"1-01234567-{next(_NUMBERS):024x}"
        try:
            return _read(self._invoke(function, balancer_event(request, self.trace_id)))
        except (FunctionFailed, InvocationRejected, TimeoutError):
            return _own(502)

    def find(self, path: str) -> str | None:
        """Returns the function that gets requests with the path, or None for the balancer's own 404."""
        return next((rule.function for rule in self._rules if rule.matches(path)), None)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@cache
def template_rules() -> tuple[Rule, ...]:
    """Returns the rules of template.yaml in the order of their priority."""
    resources = load_template()["Resources"]
    declared = [
        it["Properties"] for it in resources.values() if it["Type"] == "AWS::ElasticLoadBalancingV2::ListenerRule"
    ]
    found = []
    for rule in sorted(declared, key=lambda it: int(it["Priority"])):
        (condition,), (action,) = rule["Conditions"], rule["Actions"]
        function = None
        if action["Type"] == "forward":
            (target,) = resources[action["TargetGroupArn"]["Ref"]]["Properties"]["Targets"]
            name = target["Id"]["Ref"].removesuffix(".Alias")
            function = resources[name]["Properties"]["CodeUri"].rpartition("/")[2]
        found.append(Rule(tuple(condition["PathPatternConfig"]["Values"]), function))
    return tuple(found)


def unknown_path_body() -> str:
    """Returns the body of the template's response to unknown paths, with the address of this process."""
    (action,) = load_template()["Resources"]["BalancerListener"]["Properties"]["DefaultActions"]
    text, _ = action["FixedResponseConfig"]["MessageBody"]["Fn::Sub"]
    return str(text.replace("${Address}", settings.public_base_url or ""))


def balancer_event(request: Request, trace_id: str) -> Event:
    """Returns the event of a request, with values of headers and of the query in lists."""
    path, _, query_string = request.target.partition("?")
    headers: dict[str, list[str]] = {}
    for name, value in request.headers:
        if _HEADER_NAME.fullmatch(name):
            headers.setdefault(name.lower(), []).append(value)
    headers.setdefault("host", ["api.assent.test"])
    *before, last = headers.get("x-forwarded-for", [""])
    headers["x-forwarded-for"] = [*before, f"{last}, {request.source_ip}".removeprefix(", ")]
    headers["x-forwarded-port"], headers["x-forwarded-proto"] = ["443"], ["https"]
    headers["x-amzn-trace-id"] = [_trace(headers.get("x-amzn-trace-id", [""])[0], trace_id)]
    query: dict[str, list[str]] = {}
    for pair in query_string.split("&"):
        name, _, value = pair.partition("=")
        if pair:
            query.setdefault(name, []).append(value)
    body, is_base64 = _encoded(request)
    return {
        "requestContext": {"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/x/y"}},
        "httpMethod": request.method,
        "path": path,
        "multiValueQueryStringParameters": query,
        "multiValueHeaders": headers,
        "body": body,
        "isBase64Encoded": is_base64,
    }


def _trace(sent: str, trace_id: str) -> str:
    """Returns the header that the balancer passes on: an id that the client sent stays, and gets another one."""
    if "Root=" not in sent:
        return f"Root={trace_id}"
    return ";".join([f"Self={trace_id}", *(part for part in sent.split(";") if not part.startswith("Self="))])


def _encoded(request: Request) -> tuple[str, bool]:
    """Returns the body, and whether it is Base64. Text that isn't UTF-8 is, so that tests reach the functions."""
    sent = {name.lower(): value for name, value in request.headers}
    if sent.get("content-type", "").startswith(_TEXT_TYPES) and "content-encoding" not in sent:
        try:
            return request.body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(request.body).decode(), bool(request.body)


def _read(answer: Any) -> Response:
    """Returns the response that the client gets for a function's answer. Raises FunctionFailed."""
    try:
        size = len(json.dumps(answer, ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        raise FunctionFailed("the answer isn't JSON") from error
    match answer:
        case {"statusCode": int() as status, "multiValueHeaders": dict() as several} if size <= LIMIT_BYTES:
            headers: Headers = [(name.lower(), value) for name, values in several.items() for value in values]
            body = answer.get("body") or ""
            return Response(status, headers, base64.b64decode(body) if answer["isBase64Encoded"] else body.encode())
    raise FunctionFailed("the answer isn't a response")


def _own(status: int) -> Response:
    """Returns one of the balancer's own errors, which can't be declared."""
    return Response(status, [("server", "awselb/2.0"), ("content-type", "text/html")], b"<html></html>", is_own=True)
