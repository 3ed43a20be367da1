"""One operation: what FastAPI knows of it, completed and put in order."""

import typing
from http import HTTPStatus
from typing import Any

from fastapi import Response
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controlplane.access import RANK
from controlplane.app import ControlRoute
from controlplane.envelope import Answer, Page
from controlplane.scopes import API_KEY_SCOPES
from scripts.openapi import examples, refusals, words
from scripts.openapi.schemas import Schema, Schemas, reference, tidy, without_null

_FASTAPIS_WORDS = "Successful Response"
_RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
# Refusals of a request whose credential is not known yet.
_UNCOUNTED = {401, 413}
_ROLES = {"admin": "an admin or owner", "owner": "an owner"}
_JSON = "application/json"

type Object = dict[str, Any]


def component(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def header_name(name: str) -> str:
    return name.replace("-", "")


class Components:
    """What operations share, collected while they are described."""

    def __init__(self, documents: dict[str, tuple[str, Schema, Any]]) -> None:
        self.schemas = Schemas()
        self.documents = documents
        self.examples: Object = {}
        self.responses: Object = {}
        self.parameters: Object = {}

    def example(self, refusal: refusals.Refusal) -> dict[str, str]:
        shown = {"summary": refusal.summary, "value": refusal.body}
        return self._shared("examples", self.examples, refusal.name, shown)

    def response(self, name: str, response: Object) -> dict[str, str]:
        return self._shared("responses", self.responses, name, response)

    def parameter(self, parameter: Object) -> dict[str, str]:
        name = parameter["name"].replace("-", "")
        name = name[0].upper() + name[1:]
        if parameter["in"] == "path" or self.parameters.get(name, parameter) == parameter:
            name += "InPath" * (parameter["in"] == "path")
            return self._shared("parameters", self.parameters, name, parameter)
        return parameter

    @staticmethod
    def _shared(kind: str, collected: Object, name: str, value: Object) -> dict[str, str]:
        if collected.setdefault(name, value) != value:
            raise SystemExit(f"components.{kind}.{name} would be two different things")
        return component(kind, name)


def finish(route: ControlRoute, operation: Object, components: Components) -> Object:
    """The operation as the document has it."""
    (tag,) = operation["tags"]
    finished = {
        "tags": [tag],
        "summary": _summary(route, operation),
        "description": f"{operation['description']}\n\n{_needs(route)}",
        "operationId": operation["operationId"],
    }
    if operation.get("deprecated"):
        finished["deprecated"] = True
    finished["security"] = security(route)
    finished |= _asked(route)
    if "parameters" in operation:
        finished["parameters"] = [components.parameter(_parameter(p)) for p in operation["parameters"]]
    if "requestBody" in operation:
        finished["requestBody"] = _request_body(route, operation, components)
    finished["responses"] = {**_successes(route, operation, components), **_refusals(route, operation, components)}
    return finished


def _summary(route: ControlRoute, operation: Object) -> str:
    if route.summary is None:
        raise SystemExit(f"{operation['operationId']} has no summary: give its route one")
    return route.summary


def security(route: ControlRoute) -> list[dict[str, list[str]]]:
    """The kinds of credential that the operation takes; empty where it takes none."""
    requires = route.requires
    if requires is None:
        return []
    by_key = requires.scope is None or not {requires.scope, requires.or_scope}.isdisjoint(API_KEY_SCOPES)
    kinds = ["organizationApiKey"] * (by_key and not requires.user_token) + ["userToken"]
    return [{kind: []} for kind in kinds]


def _asked(route: ControlRoute) -> Object:
    """What the credential must hold, for programs: OpenAPI 3.1 has no place for the scopes of a bearer token."""
    requires, asked = route.requires, {}
    if requires is not None and requires.scope is not None:
        asked["x-required-scopes"] = [scope for scope in (requires.scope, requires.or_scope) if scope]
    if requires is not None and requires.role != "member":
        asked["x-required-roles"] = [role for role in RANK if RANK[role] >= RANK[requires.role]]
    return asked


def _needs(route: ControlRoute) -> str:
    """The same for people."""
    requires = route.requires
    if requires is None:
        return "Needs no credential."
    if requires.scope is None:
        return "Needs any valid credential."
    credential = "an API key or a user token" if len(security(route)) > 1 else "a user token"
    scopes = " or ".join(f"`{scope}`" for scope in (requires.scope, requires.or_scope) if scope)
    role = f", of {_ROLES[requires.role]}" if requires.role != "member" else ""
    return f"Needs {credential} with the scope {scopes}{role}."


def _parameter(parameter: Object) -> Object:
    schema = without_null(tidy(parameter["schema"]))
    about, example = words.PARAMETERS.get(parameter["name"], (None, None))
    own = schema.pop("examples", None)
    if own is not None:
        example = own[0]
    description = parameter.get("description") or about
    schema.pop("description", None)
    if example is None or description is None:
        raise SystemExit(f"the parameter {parameter['name']} has no example or no description")
    return {
        "name": parameter["name"],
        "in": parameter["in"],
        "required": parameter.get("required", False),
        "description": description,
        "schema": schema,
        "example": example,
    }


def _request_body(route: ControlRoute, operation: Object, components: Components) -> Object:
    operation_id, body = operation["operationId"], operation["requestBody"]
    schema = tidy(body["content"][_JSON]["schema"])
    content = {
        _JSON: {"schema": schema, "examples": examples.of_request(operation_id, schema, components.schemas)},
    }
    for media_type, dialect in (route.anonymous.dialects if route.anonymous else {}).items():
        model: type[BaseModel] = route.body_field.field_info.annotation  # type: ignore[union-attr, assignment]
        fields = _in_oauths_spelling(tidy(model.model_json_schema(by_alias=False)))
        fields["required"] = [*dict.fromkeys([*getattr(dialect, "required", ()), *fields.get("required", ())])]
        fields["description"] = f"The same in OAuth's spelling, for `{media_type}`."
        fields["properties"] = {
            name: _in_form(part, required=name in fields["required"]) for name, part in fields["properties"].items()
        }
        components.schemas.add({f"{model.__name__}Form": fields})
        form = reference(f"{model.__name__}Form")
        shown = examples.of_request(operation_id, form, components.schemas, oauth=True)
        content[media_type] = {"schema": form, "examples": shown}
    return {"required": True, "content": content}


def _in_oauths_spelling(schema: Any) -> Any:
    """The schema with the names of properties in snake_case, wherever it names them."""
    if isinstance(schema, list):
        return [_in_oauths_spelling(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    spelt = {key: _in_oauths_spelling(value) for key, value in schema.items()}
    if "properties" in schema:
        spelt["properties"] = {to_snake(name): part for name, part in spelt["properties"].items()}
    if isinstance(schema.get("required"), list):
        spelt["required"] = [to_snake(name) for name in schema["required"]]
    return spelt


def _in_form(schema: Schema, *, required: bool) -> Schema:
    """A field as a form has it: text that is never null, and empty where it is left out (RFC 6749 section 3.2)."""
    schema = {key: value for key, value in without_null(schema).items() if key != "default"}
    if not required:
        schema.pop("minLength", None)
    return schema


def _headers(*names: str) -> Object:
    return {name: component("headers", header_name(name)) for name in ("X-Request-Id", "Cache-Control", *names)}


def _contents(route: ControlRoute, operation_id: str, status: int, components: Components) -> tuple[Schema, Object]:
    """The schema of an answer's whole body, and its examples by name."""
    if route.answers is Response:
        name, schema, document = components.documents[operation_id]
        components.schemas.add({name: schema})
        return reference(name), {"document": {"summary": schema["description"], "value": document}}
    answer = route.answers
    if typing.get_origin(answer) is Answer:
        (answer,) = typing.get_args(answer)
    origin = typing.get_origin(answer)
    if origin in (Page, list):
        schema = {"type": "array", "items": components.schemas.of(typing.get_args(answer)[0])}
    else:
        schema = components.schemas.of(answer)
    properties: Object = {"success": {"type": "boolean", "const": True}, "data": schema}
    beside = {}
    if origin is Page:
        properties["pagination"] = reference("Pagination")
        beside = {"pagination": {"nextCursor": None, "hasMore": False}}
    shown = examples.of_answer(operation_id, status, schema, components.schemas)
    for example in shown.values():
        example["value"] = {"success": True, "data": example["value"], **beside}
    return {"type": "object", "required": [*properties], "properties": properties}, shown


def _successes(route: ControlRoute, operation: Object, components: Components) -> Object:
    usual = route.status_code or 200
    found = {}
    statuses = {usual, *(int(status) for status in route.responses)}
    if route.anonymous is not None:
        statuses.add(HTTPStatus.OK)
    for status in sorted(statuses):
        declared = route.responses.get(status, {})
        schema, shown = _contents(route, operation["operationId"], status, components)
        if route.anonymous is not None:
            schema, shown = _with_oauth(route, operation, status, (schema, shown), components)
        description = declared.get("description") or (status == usual and route.response_description)
        if route.anonymous is not None and status != usual:
            description = "To a form-encoded request: the same without the envelope, in OAuth's spelling."
        elif not description or description == _FASTAPIS_WORDS:
            description = _usual_words(route, status)
        names = list(_RATE_HEADERS) if route.requires is not None else []
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
            names.append("Idempotency-Replayed")
        names += declared.get("headers", {})
        names += ["Pragma"] * (route.anonymous is not None and status == HTTPStatus.OK)
        content = {_JSON: {"schema": schema, "examples": shown}}
        found[str(status)] = {"description": description, "headers": _headers(*names), "content": content}
    return found


def _usual_words(route: ControlRoute, status: int) -> str:
    if status == HTTPStatus.CREATED:
        return "It was created."
    if typing.get_origin(route.answers) is Page:
        return "One page of the list."
    return {"DELETE": "It is gone.", "PATCH": "It is as asked."}.get(_method(route), "The answer.")


def _method(route: ControlRoute) -> str:
    return next(iter(route.methods or {""}))


def _with_oauth(
    route: ControlRoute, operation: Object, status: int, enveloped: tuple[Schema, Object], components: Components
) -> tuple[Schema, Object]:
    """The answers to a form-encoded request, 200 and bare, beside those to JSON."""
    if status != HTTPStatus.OK:
        return enveloped
    model: type[BaseModel] = route.answers  # type: ignore[assignment]
    bare = tidy(model.model_json_schema(by_alias=False, mode="serialization"))
    bare["description"] = "The answer to a form-encoded request: without the envelope, in OAuth's spelling."
    components.schemas.add({f"{model.__name__}Bare": bare})
    form = reference(f"{model.__name__}Bare")
    value = examples.compose(form, components.schemas, operation["operationId"])
    shown = {"form": {"summary": "To a form-encoded request", "value": value}}
    if (route.status_code or HTTPStatus.OK) != HTTPStatus.OK:
        return form, shown
    return {"oneOf": [enveloped[0], form]}, {**enveloped[1], **shown}


def _refusals(route: ControlRoute, operation: Object, components: Components) -> Object:
    in_envelope, in_oauth = refusals.of(route, operation), refusals.in_oauth(route)
    found = {}
    for status in sorted({refusal.status for refusal in (*in_envelope, *in_oauth)}):
        here = [refusal for refusal in in_envelope if refusal.status == status]
        bare = [refusal for refusal in in_oauth if refusal.status == status]
        found[str(status)] = _refused(route, status, here, bare, components)
    return found


def _refused(
    route: ControlRoute,
    status: int,
    here: list[refusals.Refusal],
    bare: list[refusals.Refusal],
    components: Components,
) -> Object:
    schemas = [reference("Error")] * bool(here) + [reference("OAuthError")] * bool(bare)
    lines = [f"`{refusal.code}`: {refusal.message}" for refusal in here]
    if bare:
        lines.append("To a form-encoded request: " + ", ".join(dict.fromkeys(f"`{one.code}`" for one in bare)) + ".")
    sent = [name for refusal in (*here, *bare) for name in refusal.headers] + ["Pragma"] * bool(bare)
    counted = route.requires is not None and status not in _UNCOUNTED
    response = {
        "description": "\n\n".join(dict.fromkeys(lines)),
        "headers": _headers(*(_RATE_HEADERS if counted else ()), *dict.fromkeys(sent)),
        "content": {
            _JSON: {
                "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
                "examples": {refusal.key: components.example(refusal) for refusal in (*here, *bare)},
            }
        },
    }
    if len(here) == 1 and not bare and "." not in here[0].name:
        return components.response(
            here[0].name + "ToAll" * (route.requires is None and status not in _UNCOUNTED), response
        )
    return response
