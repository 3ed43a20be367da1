"""A service for tests of clients: it checks requests against docs/openapi.json, and answers with its examples."""

import json
from functools import cache
from typing import Any
from urllib.parse import unquote

import httpx

from tests.support.documented import documented_operations, find_operation, problems, resolve, samples

# The response to a request in the older shape, which clients don't send.
_OLDER = {"createProject": {"ListedProject"}}


@cache
def operations() -> dict[str, dict[str, Any]]:
    """Returns the operations that aren't deprecated, by their ids, with `method` and `path`."""
    return {
        it.content["operationId"]: {**it.content, "method": it.method.upper(), "path": it.path}
        for it in documented_operations()
        if not it.content.get("deprecated")
    }


def examples(operation: dict[str, Any]) -> list[tuple[int, Any]]:
    """Returns the status and the body of each example of a success."""
    return [
        (int(status), example)
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for name, example in samples().examples(response["content"]["application/json"]).items()
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
    found = find_operation(request.method, path)
    assert found, f"{request.method} {path} isn't an operation"
    return operations()[found.content["operationId"]]


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
    assert problems(schema, value) == []


def _without_boolean(schema: dict[str, Any]) -> dict[str, Any]:
    return {"enum": ["true", "false"]} if schema.get("type") == "boolean" else schema
