"""One operation of the document: FastAPI's description, completed and ordered.

A request has a body in JSON or as OAuth's form.
"""

import typing
from http import HTTPStatus
from typing import Any

from fastapi import Response
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controlplane.access.access import Requires
from controlplane.access.anonymous import Anonymous
from controlplane.platform.core.roles import RANK
from controlplane.platform.http import deprecations
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.route import ControlRoute
from scripts.openapi import errors, examples
from scripts.openapi.components import FAILURES, OAUTH, Components, Object, headers
from scripts.openapi.schemas import REFERENCE, Schema, fields_of, reference, serialized, tidy, without_null
from scripts.openapi.texts import FIXED

_JSON = "application/json"
_FASTAPI_DESCRIPTION = "Successful Response"
_DEFAULT_DESCRIPTIONS = {"DELETE": "Deleted.", "PATCH": "The updated resource.", "PUT": "Saved."}
_WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def finish(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the complete operation. Raises SystemExit if its route has no summary or docstring."""
    if route.summary is None or not operation.get("description"):
        raise SystemExit(f"{operation['operationId']} has no summary or no docstring")
    (tag,) = operation["tags"]
    finished = {
        "tags": [tag],
        "summary": route.summary,
        "description": "\n\n".join(filter(None, (operation["description"], _notice(route), _needs(route)))),
        "operationId": operation["operationId"],
    }
    if operation.get("deprecated"):
        finished["deprecated"] = True
    if (security := _security(route)) != FIXED["security"]:
        finished["security"] = security
    finished |= _requirements(route)
    if "parameters" in operation:
        described = [_parameter(parameter) for parameter in operation["parameters"]]
        finished["parameters"] = [components.parameter(parameter) for parameter in described]
    if "requestBody" in operation:
        finished["requestBody"] = _request_body(operation, components)
    failures, names = components.failures(errors.enveloped(route, operation), FAILURES, reference("ErrorEnvelope"))
    finished["responses"] = {**successes(route, operation, components), **failures}
    if names:
        finished["x-errors"] = names
    if (anonymous := route.requirements_as(Anonymous)) and anonymous.dialects:
        # Not as a second media type of the body: generated clients then lack one of the two, or don't compile.
        failures, names = components.failures(errors.in_oauth(route), OAUTH, {"$ref": "#/x-oauth/error"})
        finished["x-form-encoded"] = {
            "requestBody": _form(route, components),
            "responses": {**bare(route), **failures},
            "x-errors": names,
        }
    return finished


def _notice(route: ControlRoute) -> str:
    return route.deprecation.notice if route.deprecation else ""


def _security(route: ControlRoute) -> list[dict[str, list[str]]]:
    """Returns the kinds of credential that the operation accepts; empty if it needs none."""
    requires = route.requirements_as(Requires)
    if requires is None:
        return []
    kinds = ["organizationApiKey"] * requires.accepts_keys + ["userToken"]
    return [{kind: []} for kind in kinds]


def _requirements(route: ControlRoute) -> Object:
    """Returns the required scopes, for programs: OpenAPI 3.1 has no place for the scopes of a bearer token."""
    requires, required = route.requirements_as(Requires), {}
    if requires is not None and requires.scope is not None:
        required["x-required-scopes"] = [scope for scope in (requires.scope, requires.or_scope) if scope]
    if roles := _roles(route):
        required["x-required-roles"] = roles
    return required


def _roles(route: ControlRoute) -> list[str]:
    """Returns the roles that may call the operation, or none if every member may."""
    requires = route.requirements_as(Requires)
    if requires is None or requires.role == "member":
        return []
    return [role for role in RANK if RANK[role] >= RANK[requires.role]]


def _needs(route: ControlRoute) -> str:
    """Returns the same as a sentence."""
    requires = route.requirements_as(Requires)
    if requires is None:
        return "Needs no credential."
    if requires.scope is None:
        return "Needs any valid credential."
    token = "" if len(_security(route)) > 1 else "a user token with "
    scopes = " or ".join(f"`{scope}`" for scope in (requires.scope, requires.or_scope) if scope)
    roles = _roles(route)
    role = f", of an {' or '.join(roles)}" if roles else ""
    return f"Needs {token}the scope {scopes}{role}."


def _parameter(described: Object) -> Object:
    """Returns the parameter with a description and an example. Raises SystemExit if it lacks one."""
    schema = without_null(tidy(described["schema"]))
    known = FIXED["x-parameters"].get(described["name"], {})
    about, example = known.get("description"), known.get("example")
    own = schema.pop("examples", None)
    if own is not None:
        example = own[0]
    description = described.get("description") or about
    schema.pop("description", None)
    if example is None or description is None:
        raise SystemExit(f"the parameter {described['name']} has no example or no description")
    return {
        "name": described["name"],
        "in": described["in"],
        **({"required": True} if described.get("required") else {}),
        "description": description,
        "schema": schema,
        "example": example,
    }


def _request_body(operation: Object, components: Components) -> Object:
    """Returns the request body in JSON."""
    described = operation["requestBody"]
    schema = without_null(tidy(described["content"][_JSON]["schema"]))
    shown = examples.of_request(operation["operationId"], schema, components.schemas)
    return {"required": described.get("required", False), "content": {_JSON: {"schema": schema, **shown}}}


def _form(route: ControlRoute, components: Components) -> Object:
    """Returns the request body as OAuth's form, whose fields refer to those of the body in JSON."""
    ((media_type, dialect),) = route.requirements_as(Anonymous).dialects.items()  # type: ignore[union-attr]
    model: type[BaseModel] = route.body_field.field_info.annotation  # type: ignore[union-attr, assignment]
    schema = _form_schema(model, media_type, getattr(dialect, "required", ()))
    shown = examples.of_request(route.operation_id or "", schema, components.schemas, oauth=True)
    return {"required": True, "content": {media_type: {"schema": schema, **shown}}}


def _form_schema(model: type[BaseModel], media_type: str, required: tuple[str, ...]) -> Schema:
    form: Schema = _in_snake_case(tidy(model.model_json_schema()))
    form["description"] = f"The same with OAuth's field names, for `{media_type}`."
    form["required"] = [*dict.fromkeys([*required, *form.get("required", ())])]
    form["properties"] = {
        name: _field(field, required=name in form["required"]) for name, field in fields_of(model).items()
    }
    return form


def _field(field: Schema, *, required: bool) -> Schema:
    """Returns a field's schema in a form: never null, and empty if it is omitted (RFC 6749 section 3.2)."""
    return {"type": "string", **(field if required else {"anyOf": [field, {"maxLength": 0}]})}


def _in_snake_case(schema: Any) -> Any:
    """Returns the schema with all names of properties in snake_case."""
    if isinstance(schema, list):
        return [_in_snake_case(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: _in_snake_case(value) for key, value in schema.items()}
    if "properties" in schema:
        renamed["properties"] = {to_snake(name): part for name, part in renamed["properties"].items()}
    if isinstance(schema.get("required"), list):
        renamed["required"] = [to_snake(name) for name in schema["required"]]
    return renamed


def successes(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the default success and those that the route declares, by status."""
    default = route.status_code or HTTPStatus.OK
    statuses = {default, *(int(status) for status in route.responses)}
    found = {}
    for status in sorted(statuses):
        declared = route.responses.get(status, {})
        response: Object = {
            "description": declared.get("description") or _description(route, status),
            **headers(*declared.get("headers", {}), *_deprecation_headers(route)),
        }
        if status not in _WITHOUT_BODY:
            response["content"] = {_JSON: _response_body(route, operation["operationId"], components)}
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


def _deprecation_headers(route: ControlRoute) -> tuple[str, ...]:
    """Returns the headers of the operation's responses, if requests can use something deprecated."""
    model = route.body_field.field_info.annotation if route.body_field is not None else None
    declared = isinstance(model, type) and issubclass(model, BaseModel) and any(deprecations.declared_in(model))
    return ("Deprecation", "Sunset", "Link") if route.deprecation is not None or declared else ()


def _response_body(route: ControlRoute, operation_id: str, components: Components) -> Object:
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
    schema = {**tidy(serialized(model, by_alias=False), sent=True), "properties": fields_of(model)}
    schema["description"] = "The response to a form-encoded request: without the envelope, with OAuth's field names."
    return {str(int(HTTPStatus.OK)): {"description": "Done.", "content": {_JSON: {"schema": schema}}}}
