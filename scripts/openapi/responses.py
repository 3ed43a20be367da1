"""The responses of an operation: successes, and errors in the envelope or in OAuth's format."""

import typing
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel

from controlplane.http.access import Requires
from controlplane.http.envelope import Answer, Page
from controlplane.http.reader import DRY_RUN
from controlplane.http.route import ControlRoute
from scripts.openapi import deprecations, errors, examples, texts
from scripts.openapi.components import Components, Object, headers
from scripts.openapi.errors import ErrorResponse
from scripts.openapi.schemas import OAUTH_ERROR, REFERENCE, Schema, Schemas, reference, serialized, tidy

_JSON = "application/json"
_FASTAPI_DESCRIPTION = "Successful Response"
_DEFAULT_DESCRIPTIONS = {"DELETE": "Deleted.", "PATCH": "The updated resource.", "PUT": "Saved."}
_CALLER_HEADERS = (
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Key-Expires-At",
    "X-Key-Replaced-By",
)
# Errors of a request whose credential isn't known yet.
_UNCOUNTED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
_WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def successes(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the default success and those that the route declares, by status."""
    default = route.status_code or HTTPStatus.OK
    statuses = {default, *(int(status) for status in route.responses)}
    found = {}
    for status in sorted(statuses):
        declared = route.responses.get(status, {})
        response: Object = {
            "description": declared.get("description") or _description(route, status),
            "headers": headers(
                *_headers(route, operation), *declared.get("headers", {}), *deprecations.headers(route, status)
            ),
        }
        if status not in _WITHOUT_BODY:
            schema, shown = _body(route, operation["operationId"], status, components)
            response["content"] = {_JSON: {"schema": schema, "examples": shown}}
        found[str(int(status))] = response
    return found


def _description(route: ControlRoute, status: int) -> str:
    if route.response_description != _FASTAPI_DESCRIPTION:
        return route.response_description
    if status == HTTPStatus.CREATED:
        return "Created."
    if typing.get_origin(route.return_type) is Page:
        return "One page of the list."
    return _DEFAULT_DESCRIPTIONS.get(next(iter(route.methods or {""})), "The result.")


def _headers(route: ControlRoute, operation: Object) -> list[str]:
    names = [*_CALLER_HEADERS] if route.requirements_as(Requires) is not None else []
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        names.append("Idempotency-Replayed")
    if any(parameter["name"] == DRY_RUN for parameter in operation.get("parameters", ())):
        names.append("Dry-Run")
    return names


def _body(route: ControlRoute, operation_id: str, status: int, components: Components) -> tuple[Schema, Object]:
    """Returns the schema of a response's body, and its examples by name."""
    if route.return_type is Response:
        name, schema, document = components.documents[operation_id]
        components.schemas.add({name: schema})
        return reference(name), {"document": {"summary": schema["description"], "value": document}}
    return _enveloped(route, operation_id, status, components)


def _enveloped(route: ControlRoute, operation_id: str, status: int, components: Components) -> tuple[Schema, Object]:
    contents_type = route.return_type
    if typing.get_origin(contents_type) is Answer:
        (contents_type,) = typing.get_args(contents_type)
    origin = typing.get_origin(contents_type)
    if origin in (Page, list):
        contents_type = typing.get_args(contents_type)[0]
    contents = components.schemas.of(contents_type)
    name = contents["$ref"].removeprefix(REFERENCE)
    if origin in (Page, list):
        contents = {"type": "array", "description": "The items.", "items": contents}
        name = name.removeprefix("Listed").removesuffix("ListItem")
    success = {"type": "boolean", "description": "Always true.", "examples": [True]}
    properties: Object = {"success": success, "data": contents}
    rest = {}
    if origin is Page:
        properties["pagination"] = reference("Pagination")
        rest = {"pagination": {"nextCursor": None, "hasMore": False}}
    shown = examples.of_response(operation_id, status, contents, components.schemas)
    for example in shown.values():
        example["value"] = {"success": True, "data": example["value"], **rest}
    name += "Page" if origin is Page else "List" if origin is list else "Envelope"
    about = "The body of a successful response."
    envelope = {"type": "object", "description": about, "required": [*properties], "properties": properties}
    components.schemas.add({name: envelope}, sent=True)
    return reference(name), shown


def failures(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the error responses of the operation, by status."""
    found = {}
    for status, here in _by_status(errors.enveloped(route, operation)).items():
        counted = _CALLER_HEADERS if route.requirements_as(Requires) is not None and status not in _UNCOUNTED else ()
        deprecated = deprecations.headers(route, status)
        sent = [name for error in here for name in error.headers]
        shown = {error.key: components.example(error) for error in here}
        response: Object = {
            "description": _codes(here),
            "headers": headers(*counted, *sent, *deprecated),
            "content": {_JSON: {"schema": reference("ErrorEnvelope"), "examples": shown}},
        }
        if not deprecated and not any("." in error.name for error in here):
            # Requests without a known credential have no rate limit headers.
            anonymous = route.requirements_as(Requires) is None and status not in _UNCOUNTED
            response = components.response("Anonymous" * anonymous + "Or".join(error.name for error in here), response)
        found[str(status)] = response
    return found


def bare(route: ControlRoute) -> Object:
    """Returns the responses to form-encoded requests, by status, without references to components of their own.

    They have no envelope, and OAuth's field names.
    """
    model: type[BaseModel] = route.return_type  # type: ignore[assignment]
    schema = tidy(serialized(model, by_alias=False), sent=True)
    schema["description"] = "The response to a form-encoded request: without the envelope, with OAuth's field names."
    value = examples.compose(schema, Schemas(), route.operation_id or "")
    shown = {"form": {"summary": "For form-encoded requests", "value": value}}
    no_cache = {**headers(), "Pragma": texts.PRAGMA}
    content = {_JSON: {"schema": schema, "examples": shown}}
    found: Object = {str(int(HTTPStatus.OK)): {"description": "Done.", "headers": no_cache, "content": content}}
    for status, here in _by_status(errors.in_oauth(route)).items():
        shown = {error.key: {"summary": error.summary, "value": error.body} for error in here}
        found[str(status)] = {
            "description": _codes(here),
            "headers": {**no_cache, **headers(*(name for error in here for name in error.headers))},
            "content": {_JSON: {"schema": OAUTH_ERROR, "examples": shown}},
        }
    return found


def _by_status(described: list[ErrorResponse]) -> dict[int, list[ErrorResponse]]:
    found: dict[int, list[ErrorResponse]] = {}
    for error in described:
        found.setdefault(error.status, []).append(error)
    return found


def _codes(here: list[ErrorResponse]) -> str:
    return "\n\n".join(dict.fromkeys(f"`{error.code}`: {error.message}" for error in here))
