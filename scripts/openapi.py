"""Writes docs/openapi.json: one OpenAPI 3.1 document of all functions, made from their routes.

FastAPI describes parameters and bodies; answers, refusals, headers and security are added here from what each route
declares, because at run time none of that is built. `--check` compares instead, for `make check`.

The document travels in the `system` function's package, which serves it: docs/openapi.json links there.
"""

import argparse
import importlib
import json
import os
import sys
import typing
from pathlib import Path
from typing import Any

from fastapi import Response
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from controlplane.envelope import Answer, Page

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "functions" / "system" / "openapi.json"
TITLE = "assent control plane"
ABOUT = (
    "Organizations, members and invitations, projects with their consent instance and websites, and organization "
    "API keys. Send a bearer token: an organization API key or a user token. Resource ids are opaque. Within v1 "
    "changes are additive: ignore fields you do not know."
)
_TAGS = {
    "System": "Health, regions, the calling credential and this document.",
    "Organizations": "The organizations the caller belongs to.",
    "Members": "Members of an organization, their roles, and invitations.",
    "Projects": "Projects with their consent instance, websites and vendor decisions.",
    "API keys": "Credentials that belong to an organization.",
    "Billing": "Plan, credits and limits.",
    "Inbox": "What was found, what people decided about it, and the issues they opened for it.",
    "Device authorization": "How a command line or another device gets a user token that a person approves.",
}
_REFUSALS = {
    400: "The payload or a parameter is invalid (`INVALID_PAYLOAD`, `INVALID_REGION`, `INVALID_ORIGIN`).",
    401: "Authentication is missing, invalid or expired (`UNAUTHORIZED`).",
    402: "The plan does not allow this (`PLAN_REQUIRED`, `PLAN_LIMIT_REACHED`).",
    403: "The scope or the role is missing (`INSUFFICIENT_SCOPE`, `FORBIDDEN`).",
    404: "Unknown, or outside the caller's memberships (`NOT_FOUND`).",
    409: "The request conflicts with the current state (`CONFLICT`, `KEY_LIMIT_REACHED`).",
    413: "The body is larger than 1,048,576 bytes (`PAYLOAD_TOO_LARGE`).",
    415: "The body is of another media type, or compressed (`INVALID_PAYLOAD`).",
    429: "The rate limit is exceeded (`RATE_LIMITED`); `Retry-After` says how long to wait.",
    500: "An unexpected failure (`INTERNAL_ERROR`).",
    503: "A dependency does not answer (`SERVICE_UNAVAILABLE`).",
}
_RATE_HEADERS = {
    "X-RateLimit-Limit": "Requests per minute this credential may make.",
    "X-RateLimit-Remaining": "Requests left in the current minute.",
    "X-RateLimit-Reset": "Unix time in seconds at which the minute ends.",
}
_ENVIRONMENT = {
    "TABLE_NAME": "assent",
    "SIGNING_SECRET": "not-a-secret-only-to-describe-the-api",
    "PUBLIC_BASE_URL": "https://api.example.com",
    "DASHBOARD_BASE_URL": "https://dashboard.example.com",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "POWERTOOLS_METRICS_NAMESPACE": "assent",
}


def apps() -> dict[str, Any]:
    """The app of each function, by group."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    groups = sorted(path.parent.name for path in (ROOT / "functions").glob("*/routes.py"))
    return {group: importlib.import_module(f"{group}.app").app for group in groups}


def _component(name: str, kind: str = "schemas") -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


class _Schemas:
    """The component schemas, collected; two models of one name must have one shape."""

    def __init__(self) -> None:
        self.collected: dict[str, Any] = {}

    def add(self, schemas: dict[str, Any]) -> None:
        for name, schema in schemas.items():
            if self.collected.setdefault(name, schema) != schema:
                raise SystemExit(f"two models are called {name} and differ")

    def of(self, answer: Any) -> dict[str, Any]:
        adapter = TypeAdapter(answer)
        schema = adapter.json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        self.add(schema.pop("$defs", {}))
        if schema.get("type") == "object" and "title" in schema:
            self.add({schema["title"]: schema})
            return _component(schema["title"])
        return schema


def _success(route: Any, schemas: _Schemas) -> dict[str, Any]:
    answer = route.answers
    origin, arguments = typing.get_origin(answer), typing.get_args(answer)
    if origin is Answer:
        answer = arguments[0]
        origin, arguments = typing.get_origin(answer), typing.get_args(answer)
    properties: dict[str, Any] = {"success": {"const": True, "type": "boolean"}}
    if origin in (Page, list):
        properties["data"] = {"type": "array", "items": schemas.of(arguments[0])}
    else:
        properties["data"] = schemas.of(answer)
    if origin is Page:
        properties["pagination"] = _component("Pagination")
    return {"type": "object", "required": list(properties), "properties": properties}


def _statuses(route: Any, operation: dict[str, Any]) -> list[int]:
    """The refusals an operation can meet, from what it takes and asks for, and those that the route names."""
    statuses = {500, *(int(status) for status in route.responses if int(status) >= 400)}
    if operation.get("parameters") or "requestBody" in operation:
        statuses.add(400)
    if "requestBody" in operation:
        statuses |= {413, 415}
    if route.requires is not None:
        statuses |= {401, 402, 403, 429}
        if "{" in route.path:
            statuses.add(404)
        if route.methods & {"POST", "PATCH", "DELETE"}:
            statuses.add(409)
    if route.anonymous is not None:
        statuses |= {401, 403, 404, 409, 429}
    if route.path == "/health":
        statuses.add(503)
    return sorted(statuses)


def _finish(route: Any, operation: dict[str, Any], schemas: _Schemas) -> None:
    status = str(route.status_code or 200)
    description = operation["responses"].get(status, {}).get("description", "")
    headers = {"X-Request-Id": _component("RequestId", "headers")}
    if route.requires is not None:
        headers |= {name: _component(name.replace("-", ""), "headers") for name in _RATE_HEADERS}
    answer: dict[str, Any] = {"description": description or "Success", "headers": headers}
    if route.answers is Response:
        answer["content"] = {"application/json": {"schema": {"type": "object"}}}
    else:
        answer["content"] = {"application/json": {"schema": _success(route, schemas)}}
    named = {str(other): about for other, about in route.responses.items() if int(other) < 400}
    operation["responses"] = {other: {**answer, **about} for other, about in sorted({status: {}, **named}.items())}
    for refused in _statuses(route, operation):
        operation["responses"][str(refused)] = _component(f"Refused{refused}", "responses")
    if route.anonymous is not None:
        _add_dialects(route, operation, answer)
    operation["security"] = [] if route.requires is None else [{"bearer": []}]
    if route.requires is not None and route.requires.scope:
        operation["description"] = f"{operation.get('description', '')}\n\nScope: `{route.requires.scope}`.".strip()


def _add_dialects(route: Any, operation: dict[str, Any], answer: dict[str, Any]) -> None:
    """Describes the form-encoded request beside the JSON one, and the bare answers and refusals it gets."""
    for media_type, dialect in route.anonymous.dialects.items():
        fields = _form(route.body_field.field_info.annotation.model_json_schema(by_alias=False), dialect.required)
        operation["requestBody"]["content"][media_type] = {"schema": fields}
    bare = route.answers.model_json_schema(by_alias=False, mode="serialization")
    responses, headers = operation["responses"], answer["headers"]
    enveloped = [responses["200"]["content"]["application/json"]["schema"]] if "200" in responses else []
    for status, shapes in (("200", [*enveloped, bare]), ("400", [_component("Error"), _component("OAuthError")])):
        about = _REFUSALS.get(int(status), "Success. To a form-encoded request: the bare fields.")
        content = {"application/json": {"schema": {"anyOf": shapes}}}
        responses[status] = {"description": about, "headers": headers, "content": content}


def _form(fields: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """The fields as a form has them: text that cannot be null, and empty where it is left out (RFC 6749 3.2)."""
    fields["required"] = sorted({*fields.get("required", []), *required})
    for name, field in fields["properties"].items():
        given = [shape for shape in field.pop("anyOf", []) if shape["type"] != "null"]
        field |= {**(given[0] if given else {}), **field}
        if name not in fields["required"]:
            field.pop("default", None)
            field.pop("minLength", None)
    return fields


def _shared() -> dict[str, Any]:
    """Components that every operation leans on."""
    error = {
        "type": "object",
        "required": ["success", "error"],
        "properties": {
            "success": {"const": False, "type": "boolean"},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "examples": ["NOT_FOUND"]},
                    "message": {"type": "string", "examples": ["There is no such resource."]},
                    "details": {"description": "Structured, by code. A list for `INVALID_PAYLOAD`."},
                },
            },
        },
    }
    oauth_error = {
        "type": "object",
        "description": "A refusal of a form-encoded request (RFC 6749 section 5.2).",
        "required": ["error"],
        "properties": {
            "error": {"type": "string", "examples": ["authorization_pending"]},
            "error_description": {"type": "string"},
        },
    }
    pagination = {
        "type": "object",
        "required": ["nextCursor", "hasMore"],
        "properties": {
            "nextCursor": {"type": ["string", "null"], "description": "Null on the last page."},
            "hasMore": {"type": "boolean"},
        },
    }
    headers: dict[str, Any] = {
        "RequestId": {"description": "Quote it when reporting a problem.", "schema": {"type": "string"}},
        "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
    }
    for name, about in _RATE_HEADERS.items():
        headers[name.replace("-", "")] = {"description": about, "schema": {"type": "integer"}}
    responses = {}
    for status, about in _REFUSALS.items():
        sent = {"X-Request-Id": _component("RequestId", "headers")}
        if status == 429:
            sent["Retry-After"] = _component("RetryAfter", "headers")
        content = {"application/json": {"schema": _component("Error")}}
        responses[f"Refused{status}"] = {"description": about, "headers": sent, "content": content}
    bearer = {"type": "http", "scheme": "bearer", "description": "An organization API key or a user token."}
    return {
        "schemas": {"Error": error, "OAuthError": oauth_error, "Pagination": pagination},
        "headers": headers,
        "responses": responses,
        "securitySchemes": {"bearer": bearer},
    }


def describe() -> str:
    """The document as text, the same for the same routes."""
    schemas = _Schemas()
    paths: dict[str, Any] = {}
    for app in apps().values():
        part = get_openapi(title=TITLE, version=app.version, openapi_version="3.1.0", routes=app.routes)
        found = part.get("components", {}).get("schemas", {})
        schemas.add({name: schema for name, schema in found.items() if "ValidationError" not in name})
        for route in app.routes:
            if not route.include_in_schema:
                continue  # a page for people
            for method in route.methods:
                operation = part["paths"][route.path][method.lower()]
                _finish(route, operation, schemas)
                paths.setdefault(route.path, {})[method.lower()] = operation
    components = _shared()
    components["schemas"] |= schemas.collected
    components["schemas"] = dict(sorted(components["schemas"].items()))
    document = {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": "1.0.0", "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": dict(sorted(paths.items())),
        "components": components,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where the file differs from what the code describes")
    options = parser.parse_args()
    text = describe()
    if not options.check:
        DOCUMENT.write_text(text)
    elif not DOCUMENT.exists() or DOCUMENT.read_text() != text:
        sys.exit("docs/openapi.json is not what the code describes: run `make openapi`")


if __name__ == "__main__":
    main()
