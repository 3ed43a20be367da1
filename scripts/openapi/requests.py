"""The parameters and bodies of an operation, in JSON or as OAuth's forms."""

from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controlplane.access.anonymous import Anonymous
from controlplane.platform.http.route import ControlRoute
from scripts.openapi import examples
from scripts.openapi.components import Components, Object
from scripts.openapi.schemas import Schema, fields_of, tidy, without_null
from scripts.openapi.texts import FIXED

_JSON = "application/json"


def parameter(described: Object) -> Object:
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


def body(operation: Object, components: Components) -> Object:
    """Returns the request body in JSON."""
    described = operation["requestBody"]
    schema = without_null(tidy(described["content"][_JSON]["schema"]))
    shown = examples.of_request(operation["operationId"], schema, components.schemas)
    return {"required": described.get("required", False), "content": {_JSON: {"schema": schema, **shown}}}


def form(route: ControlRoute, components: Components) -> Object:
    """Returns the request body as OAuth's form, whose fields refer to those of the body in JSON."""
    ((media_type, dialect),) = route.requirements_as(Anonymous).dialects.items()  # type: ignore[union-attr]
    model: type[BaseModel] = route.body_field.field_info.annotation  # type: ignore[union-attr, assignment]
    schema = _form(model, media_type, getattr(dialect, "required", ()))
    shown = examples.of_request(route.operation_id or "", schema, components.schemas, oauth=True)
    return {"required": True, "content": {media_type: {"schema": schema, **shown}}}


def _form(model: type[BaseModel], media_type: str, required: tuple[str, ...]) -> Schema:
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
