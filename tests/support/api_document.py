"""A service for tests of clients: it checks requests against docs/openapi.json, and answers with its examples.

Used by tests of the SDK also on older versions of Python, so it imports nothing of the application.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

_ADDRESS = "urn:assent:openapi"
# The response to a request in the older shape, which clients don't send.
_OLDER = {"createProject": {"listedProject"}}
DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return loaded


@cache
def operations() -> dict[str, dict[str, Any]]:
    """Returns the operations that aren't deprecated, by their ids, with `method` and `path`."""
    return {
        operation["operationId"]: {**operation, "method": method.upper(), "path": path}
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if not operation.get("deprecated")
    }


def examples(operation: dict[str, Any]) -> list[tuple[int, Any]]:
    """Returns the status and the body of each example of a success."""
    return [
        (int(status), resolve(example)["value"])
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for name, example in response["content"]["application/json"]["examples"].items()
        if name not in _OLDER.get(operation["operationId"], ())
    ]


class DocumentedService:
    """Answers each request with one of the operation's examples, and records the operation.

    number: which example of a success to return.
    """

    def __init__(self, number: int = 0) -> None:
        self.called: list[str] = []
        self._number = number

    def __call__(self, request: httpx.Request) -> httpx.Response:
        operation = _find(request)
        _check(request, operation)
        self.called.append(operation["operationId"])
        status, body = examples(operation)[self._number]
        return httpx.Response(status, json=body, headers={"X-Request-Id": "req-1"})


def _find(request: httpx.Request) -> dict[str, Any]:
    path = request.url.raw_path.decode().partition("?")[0]
    matching = [
        operation
        for operation in operations().values()
        if operation["method"] == request.method and _pattern(operation["path"]).fullmatch(path)
    ]
    assert matching, f"{request.method} {path} isn't an operation"
    return min(matching, key=lambda it: it["path"].count("{"))


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


def _check(request: httpx.Request, operation: dict[str, Any]) -> None:
    """Fails for a parameter or a body that the document doesn't describe, and for a missing credential."""
    parameters = {(it["in"], it["name"]): it for it in map(resolve, operation.get("parameters", []))}
    for name, value in request.url.params.items():
        assert ("query", name) in parameters, f"{operation['operationId']} has no parameter {name}"
        schema = parameters["query", name]["schema"]
        _validate(int(value) if schema.get("type") == "integer" else value, _without_boolean(schema))
    required = {name for (place, name), it in parameters.items() if place == "query" and it.get("required")}
    assert required <= {*request.url.params}
    for name in ("Idempotency-Key", "Prefer"):
        assert name not in request.headers or ("header", name) in parameters
    assert ("Authorization" in request.headers) == ("security" in operation and operation["security"] != [])
    template = operation["path"].split("/")
    sent = request.url.raw_path.decode().partition("?")[0].split("/")
    for part, value in zip(template, sent, strict=True):
        if part.startswith("{"):
            _validate(unquote(value), parameters["path", part.strip("{}")]["schema"])
    body = operation.get("requestBody")
    if body is None:
        assert request.content == b""
    elif request.content or body["required"]:
        _validate(json.loads(request.content), body["content"]["application/json"]["schema"])


def _validate(value: Any, schema: dict[str, Any]) -> None:
    # References lead into the document, which is large: it is read once.
    absolute = {"$ref": f"{_ADDRESS}{schema['$ref']}"} if "$ref" in schema else schema
    Draft202012Validator(absolute, registry=_registry()).validate(value)


@cache
def _registry() -> Registry[Any]:
    return Registry().with_resource(_ADDRESS, DRAFT202012.create_resource(document())).crawl()


def _without_boolean(schema: dict[str, Any]) -> dict[str, Any]:
    return {"enum": ["true", "false"]} if schema.get("type") == "boolean" else schema


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """Returns a part of the document, or what it refers to."""
    if "$ref" not in part:
        return part
    found: dict[str, Any] = document()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name.replace("~1", "/")]
    return found
