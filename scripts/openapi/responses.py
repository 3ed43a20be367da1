"""The responses of an operation: successes, and errors in the envelope or in OAuth's format."""

import typing
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel

from controlplane.http.access import Requires
from controlplane.http.anonymous import Anonymous
from controlplane.http.envelope import Answer, Page
from controlplane.http.route import ControlRoute
from scripts.openapi import deprecations, errors, examples
from scripts.openapi.components import Components, Object, headers
from scripts.openapi.errors import ErrorResponse
from scripts.openapi.schemas import Schema, reference, serialized, tidy

_JSON = "application/json"
_FASTAPI_DESCRIPTION = "Successful Response"
_DEFAULT_DESCRIPTIONS = {"DELETE": "Deleted.", "PATCH": "The updated resource.", "PUT": "Saved."}
_RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
# Errors of a request whose credential isn't known yet.
_UNCOUNTED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
_WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def successes(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the default success and those that the route declares, by status."""
    default = route.status_code or HTTPStatus.OK
    statuses = {default, *(int(status) for status in route.responses)}
    if route.requirements_as(Anonymous) is not None:
        statuses.add(HTTPStatus.OK)
    found = {}
    for status in sorted(statuses):
        declared = route.responses.get(status, {})
        response: Object = {
            "description": declared.get("description") or _description(route, status),
            "headers": headers(
                *_headers(route, operation, status), *declared.get("headers", {}), *deprecations.headers(route, status)
            ),
        }
        if status not in _WITHOUT_BODY:
            schema, shown = _body(route, operation["operationId"], status, components)
            response["content"] = {_JSON: {"schema": schema, "examples": shown}}
        found[str(int(status))] = response
    return found


def _description(route: ControlRoute, status: int) -> str:
    if route.requirements_as(Anonymous) is not None and status != (route.status_code or HTTPStatus.OK):
        return "For form-encoded requests: the same content without the envelope, with OAuth's field names."
    if route.response_description != _FASTAPI_DESCRIPTION:
        return route.response_description
    if status == HTTPStatus.CREATED:
        return "Created."
    if typing.get_origin(route.return_type) is Page:
        return "One page of the list."
    return _DEFAULT_DESCRIPTIONS.get(next(iter(route.methods or {""})), "The result.")


def _headers(route: ControlRoute, operation: Object, status: int) -> list[str]:
    names = [*_RATE_HEADERS] if route.requirements_as(Requires) is not None else []
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        names.append("Idempotency-Replayed")
    if route.requirements_as(Anonymous) is not None and status == HTTPStatus.OK:
        names.append("Pragma")
    return names


def _body(route: ControlRoute, operation_id: str, status: int, components: Components) -> tuple[Schema, Object]:
    """Returns the schema of a response's body, and its examples by name."""
    if route.return_type is Response:
        name, schema, document = components.documents[operation_id]
        components.schemas.add({name: schema})
        return reference(name), {"document": {"summary": schema["description"], "value": document}}
    if route.requirements_as(Anonymous) is None or status != HTTPStatus.OK:
        return _enveloped(route, operation_id, status, components)
    bare, shown = _bare(route, operation_id, components)
    if (route.status_code or HTTPStatus.OK) != HTTPStatus.OK:
        return bare, shown
    schema, enveloped = _enveloped(route, operation_id, status, components)
    return {"oneOf": [schema, bare]}, {**enveloped, **shown}


def _enveloped(route: ControlRoute, operation_id: str, status: int, components: Components) -> tuple[Schema, Object]:
    contents_type = route.return_type
    if typing.get_origin(contents_type) is Answer:
        (contents_type,) = typing.get_args(contents_type)
    origin = typing.get_origin(contents_type)
    if origin in (Page, list):
        contents = {"type": "array", "items": components.schemas.of(typing.get_args(contents_type)[0])}
    else:
        contents = components.schemas.of(contents_type)
    success = {"type": "boolean", "const": True, "description": "Always true.", "examples": [True]}
    properties: Object = {"success": success, "data": contents}
    rest = {}
    if origin is Page:
        properties["pagination"] = reference("Pagination")
        rest = {"pagination": {"nextCursor": None, "hasMore": False}}
    shown = examples.of_response(operation_id, status, contents, components.schemas)
    for example in shown.values():
        example["value"] = {"success": True, "data": example["value"], **rest}
    return {"type": "object", "required": [*properties], "properties": properties}, shown


def _bare(route: ControlRoute, operation_id: str, components: Components) -> tuple[Schema, Object]:
    """Returns the same for a form-encoded request: without the envelope, in snake_case."""
    model: type[BaseModel] = route.return_type  # type: ignore[assignment]
    schema = tidy(serialized(model, by_alias=False))
    schema["description"] = "The response to a form-encoded request: without the envelope, with OAuth's field names."
    name = f"{model.__name__}Bare"
    components.schemas.add({name: schema})
    value = examples.compose(reference(name), components.schemas, operation_id)
    return reference(name), {"form": {"summary": "For form-encoded requests", "value": value}}


def failures(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the error responses of the operation, by status."""
    enveloped, in_oauth = errors.enveloped(route, operation), errors.in_oauth(route)
    found = {}
    for status in sorted({error.status for error in (*enveloped, *in_oauth)}):
        here = [error for error in enveloped if error.status == status]
        bare = [error for error in in_oauth if error.status == status]
        found[str(status)] = _failure(route, status, here, bare, components)
    return found


def _failure(
    route: ControlRoute, status: int, here: list[ErrorResponse], bare: list[ErrorResponse], components: Components
) -> Object:
    schemas = [reference("Error")] * bool(here) + [reference("OAuthError")] * bool(bare)
    lines = [f"`{error.code}`: {error.message}" for error in here]
    if bare:
        lines.append("For form-encoded requests: " + ", ".join(dict.fromkeys(f"`{one.code}`" for one in bare)) + ".")
    counted = _RATE_HEADERS if route.requirements_as(Requires) is not None and status not in _UNCOUNTED else ()
    sent = [name for error in (*here, *bare) for name in error.headers] + ["Pragma"] * bool(bare)
    deprecated = deprecations.headers(route, status)
    content = {
        "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
        "examples": {error.key: components.example(error) for error in (*here, *bare)},
    }
    response = {
        "description": "\n\n".join(dict.fromkeys(lines)),
        "headers": headers(*counted, *sent, *deprecated),
        "content": {_JSON: content},
    }
    if bare or deprecated or any("." in error.name for error in here):
        return response
    # Requests without a known credential have no rate limit headers.
    anonymous = route.requirements_as(Requires) is None and status not in _UNCOUNTED
    return components.response("Anonymous" * anonymous + "Or".join(error.name for error in here), response)
