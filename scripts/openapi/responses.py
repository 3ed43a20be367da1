"""The responses of an operation: successes, and errors in the envelope or in OAuth's format."""

import typing
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel

from controlplane.platform.http import deprecations
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.reader import DRY_RUN
from controlplane.platform.http.route import ControlRoute
from scripts.openapi import examples
from scripts.openapi.components import Components, Object, headers
from scripts.openapi.schemas import REFERENCE, reference, serialized, tidy

_JSON = "application/json"
_FASTAPI_DESCRIPTION = "Successful Response"
_DEFAULT_DESCRIPTIONS = {"DELETE": "Deleted.", "PATCH": "The updated resource.", "PUT": "Saved."}
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
            **headers(*_headers(operation), *declared.get("headers", {}), *_deprecation_headers(route)),
        }
        if status not in _WITHOUT_BODY:
            response["content"] = {_JSON: _body(route, operation["operationId"], components)}
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


def _headers(operation: Object) -> list[str]:
    parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
    return ["Idempotency-Replayed"] * ("Idempotency-Key" in parameters) + ["Dry-Run"] * (DRY_RUN in parameters)


def _deprecation_headers(route: ControlRoute) -> tuple[str, ...]:
    """Returns the headers of the operation's responses, if requests can use something deprecated."""
    model = route.body_field.field_info.annotation if route.body_field is not None else None
    declared = isinstance(model, type) and issubclass(model, BaseModel) and any(deprecations.declared_in(model))
    return ("Deprecation", "Sunset", "Link") if route.deprecation is not None or declared else ()


def _body(route: ControlRoute, operation_id: str, components: Components) -> Object:
    """Returns the schema of a response's body, with examples if it has several forms."""
    if route.return_type is Response:
        name, schema = components.documents[operation_id]
        components.schemas.add({name: schema})
        return {"schema": reference(name)}
    return _enveloped(route, operation_id, components)


def _enveloped(route: ControlRoute, operation_id: str, components: Components) -> Object:
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
    properties: Object = {"success": reference("Success"), "data": contents}
    rest = {}
    if origin is Page:
        properties["pagination"] = reference("Pagination")
        rest = {"pagination": {"nextCursor": None, "hasMore": False}}
    shown = examples.of_response(operation_id, contents, components.schemas)
    for example in shown.get("examples", {}).values():
        example["value"] = {"success": True, "data": example["value"], **rest}
    name += "Page" if origin is Page else "List" if origin is list else "Envelope"
    about, required = "A success.", [*properties]
    if route.body_model is not None and route.body_model.model_config.get("extra") != "forbid":
        name = f"{name}WithWarnings"
        properties["warnings"] = reference("Warnings")
    envelope = {"type": "object", "description": about, "required": required, "properties": properties}
    components.schemas.add({name: envelope}, sent=True)
    return {"schema": reference(name), **shown}


def bare(route: ControlRoute) -> Object:
    """Returns the success of form-encoded requests, by status: without the envelope, with OAuth's field names."""
    model: type[BaseModel] = route.return_type  # type: ignore[assignment]
    schema = tidy(serialized(model, by_alias=False), sent=True)
    schema["description"] = "The response to a form-encoded request: without the envelope, with OAuth's field names."
    return {str(int(HTTPStatus.OK)): {"description": "Done.", "content": {_JSON: {"schema": schema}}}}
