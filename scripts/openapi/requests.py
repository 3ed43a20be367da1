"""The parameters and bodies of an operation, in JSON or as OAuth's forms."""

from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controlplane.http.anonymous import Anonymous
from controlplane.http.route import ControlRoute
from scripts.openapi import examples, texts
from scripts.openapi.components import Components, Object
from scripts.openapi.schemas import Schema, reference, tidy, without_null

_JSON = "application/json"


def parameter(described: Object) -> Object:
    """Returns the parameter with a description and an example. Raises SystemExit if it lacks one."""
    schema = without_null(tidy(described["schema"]))
    about, example = texts.PARAMETERS.get(described["name"], (None, None))
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
        "required": described.get("required", False),
        "description": description,
        "schema": schema,
        "example": example,
    }


def body(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the request body in each media type that the operation accepts."""
    operation_id, schemas = operation["operationId"], components.schemas
    described = operation["requestBody"]
    schema = without_null(tidy(described["content"][_JSON]["schema"]))
    content = {_JSON: {"schema": schema, "examples": examples.of_request(operation_id, schema, schemas)}}
    anonymous = route.requirements_as(Anonymous)
    for media_type, dialect in (anonymous.dialects if anonymous else {}).items():
        model: type[BaseModel] = route.body_field.field_info.annotation  # type: ignore[union-attr, assignment]
        form = _form(model, media_type, getattr(dialect, "required", ()))
        schemas.add({f"{model.__name__}Form": form})
        named = reference(f"{model.__name__}Form")
        shown = examples.of_request(operation_id, named, schemas, oauth=True)
        content[media_type] = {"schema": named, "examples": shown}
    return {"required": described.get("required", False), "content": content}


def _form(model: type[BaseModel], media_type: str, required: tuple[str, ...]) -> Schema:
    form: Schema = _in_snake_case(tidy(model.model_json_schema(by_alias=False)))
    form["description"] = f"The same with OAuth's field names, for `{media_type}`."
    form["required"] = [*dict.fromkeys([*required, *form.get("required", ())])]
    form["properties"] = {
        name: _field(part, required=name in form["required"]) for name, part in form["properties"].items()
    }
    return form


def _field(schema: Schema, *, required: bool) -> Schema:
    """Returns a field's schema in a form: never null, and empty if it is omitted (RFC 6749 section 3.2)."""
    schema = {key: value for key, value in without_null(schema).items() if key != "default"}
    if not required:
        schema.pop("minLength", None)
        if "pattern" in schema:
            schema["pattern"] = f"^$|{schema['pattern']}"
    return schema


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
