"""The component schemas: collected from the models, and simplified."""

from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from controlplane.core.errors import CATALOG
from controlplane.store.feedback import Category, Surface
from controlplane.store.inbox_items import Priority, Source, Status
from controlplane.store.organizations import Role
from controlplane.store.vendors import ReviewState, VendorState

type Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"

# Enumerations that several models share, described once.
_ENUMERATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Role": (
        "A member's role. Owners can do everything; admins can do everything that doesn't concern owners.",
        get_args(Role),
    ),
    "InboxStatus": ("The status of a finding.", get_args(Status)),
    "InboxSource": ("The source of a finding.", get_args(Source)),
    "Priority": ("P0 is the most urgent.", get_args(Priority)),
    "FeedbackCategory": ("The category of a report.", get_args(Category)),
    "FeedbackSurface": ("The part of the product that a report is about.", get_args(Surface)),
    "VendorState": ("The decision about a vendor.", get_args(VendorState)),
    "VendorReviewState": ("The state of the vendor's review.", get_args(ReviewState)),
    "ErrorCode": ("The error code, for programs.", tuple(CATALOG)),
}


def reference(name: str) -> Schema:
    return {"$ref": REFERENCE + name}


def tidy(schema: Any) -> Any:
    """The same schema without pydantic's titles, with short nullable types and references to shared enumerations."""
    if isinstance(schema, list):
        return [tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {}
    for key, value in schema.items():
        if key == "title":
            continue
        if key in {"properties", "$defs"}:
            plain[key] = {name: tidy(part) for name, part in value.items()}
        elif key in {"examples", "example", "default", "const", "enum", "required"}:
            plain[key] = value
        else:
            plain[key] = tidy(value)
    return _shared(_nullable(_defined(plain)))


def _defined(schema: Schema) -> Schema:
    """Adds required names to the properties, also in conditions that repeat them."""
    required = schema.get("required")
    if not isinstance(required, list):
        return schema
    named = schema.get("properties", {})
    return {**schema, "properties": {**named, **{name: {} for name in required if name not in named}}}


def _nullable(schema: Schema) -> Schema:
    """Turns `anyOf` a plain type and null into a list of two types."""
    choices = schema.get("anyOf", [])
    if len(choices) != 2 or choices[1] != {"type": "null"}:
        return schema
    choice = choices[0]
    if not isinstance(choice.get("type"), str) or "enum" in choice or "const" in choice:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**choice, "type": [choice["type"], "null"], **rest}


def _shared(schema: Schema) -> Schema:
    for name, (_, values) in _ENUMERATIONS.items():
        if schema.get("enum") == list(values):
            rest = {key: value for key, value in schema.items() if key not in {"enum", "type"}}
            return {**reference(name), **rest}
    return schema


def without_null(schema: Schema) -> Schema:
    """Returns the schema without null: an omitted parameter is absent, never null."""
    if isinstance(schema.get("type"), list):
        schema = {**schema, "type": schema["type"][0]}
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**choices[0], **rest}
    return schema


class _SerializedSchema(GenerateJsonSchema):
    """Returns the schema of a request: fields with defaults are optional, and an omitted field is never null."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,  # noqa: ARG002 (pydantic's)
    ) -> bool:
        return field.get("serialization_exclude_if") is None

    def model_field_schema(self, schema: core_schema.ModelField) -> Schema:
        described = super().model_field_schema(schema)
        described.pop("default", None)
        return described if schema.get("serialization_exclude_if") is None else without_null(described)


def serialized(model: Any, *, by_alias: bool = True) -> Schema:
    """Returns the JSON Schema of the type as it is serialized, with its own definitions."""
    schema: Schema = TypeAdapter(model).json_schema(
        mode="serialization",
        by_alias=by_alias,
        ref_template=REFERENCE + "{model}",
        schema_generator=_SerializedSchema,
    )
    return schema


class Schemas:
    """The collected component schemas. Two models with the same name must have the same schema."""

    def __init__(self) -> None:
        self.collected: dict[str, Schema] = {}
        for name, (about, values) in _ENUMERATIONS.items():
            self.collected[name] = {
                "type": "string",
                "description": about,
                "enum": list(values),
                "examples": [values[0]],
            }

    def add(self, schemas: dict[str, Schema]) -> None:
        for name, schema in schemas.items():
            tidied = tidy(schema)
            if self.collected.setdefault(name, tidied) != tidied:
                raise SystemExit(f"two different models are both named {name}")

    def of(self, model: Any) -> Schema:
        """Adds a serialized type's schema, and returns a reference to it, or the schema if it has no name."""
        schema = serialized(model)
        self.add(schema.pop("$defs", {}))
        if schema.get("type") == "object" and "title" in schema:
            name = schema["title"]
            self.add({name: schema})
            return reference(name)
        result: Schema = tidy(schema)
        return result

    def resolve(self, schema: Schema) -> Schema:
        """Resolves a reference, with the keywords next to it applied."""
        if "$ref" not in schema:
            return schema
        keywords = {key: value for key, value in schema.items() if key != "$ref"}
        return {**self.collected[schema["$ref"].removeprefix(REFERENCE)], **keywords}


def fixed_schemas() -> dict[str, Schema]:
    """Returns the schemas that no model describes: errors, pagination, and OAuth's errors."""
    problem = {
        "type": "object",
        "description": "One problem with the request.",
        "required": ["code", "message", "path"],
        "properties": {
            "code": {"type": "string", "description": "The kind of problem.", "examples": ["missing"]},
            "message": {"type": "string", "description": "The problem in words.", "examples": ["Field required"]},
            "path": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The path to the field; empty if the problem concerns the whole request.",
                "examples": [["consent", "branding"]],
            },
            "known": {
                "type": "array",
                "items": {"type": "string"},
                "description": "For an unknown query parameter: the parameters that the operation accepts.",
                "examples": [["organizationId", "limit", "cursor"]],
            },
        },
    }
    details = {
        "description": "Details by code: a list of problems for `INVALID_PAYLOAD`, otherwise an object.",
        "anyOf": [
            {"type": "array", "items": reference("Problem")},
            {"type": "object", "additionalProperties": True},
        ],
        "examples": [{"requiredScope": "projects.read"}],
    }
    error = {
        "type": "object",
        "description": "An error.",
        "required": ["code", "message"],
        "properties": {
            "code": reference("ErrorCode"),
            "message": {
                "type": "string",
                "description": "A message for people that says what to do next. Its text can change.",
                "examples": ["There is no such resource."],
            },
            "details": details,
        },
    }
    error_body = {
        "type": "object",
        "description": "The body of an error response.",
        "required": ["success", "error"],
        "properties": {
            "success": {"type": "boolean", "const": False, "description": "Always false.", "examples": [False]},
            "error": reference("ErrorDescription"),
        },
    }
    oauth_error = {
        "type": "object",
        "description": "The body of an error response to a form-encoded request (RFC 6749 section 5.2).",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "string",
                "description": "OAuth's error code.",
                "examples": ["authorization_pending"],
            },
            "error_description": {
                "type": "string",
                "description": "A message for people.",
                "examples": ["The request hasn't been approved or denied yet. Poll again after the interval."],
            },
        },
    }
    pagination = {
        "type": "object",
        "description": "The position of this page in its list.",
        "required": ["nextCursor", "hasMore"],
        "properties": {
            "nextCursor": {
                "type": ["string", "null"],
                "description": "The `cursor` of the next page, valid only for the same filters. Null on the last page.",
                "examples": ["Yk1xZ2p0c2V3cVJ4TzF1cFBST0pFQ1QjMDFrYjJt"],
            },
            "hasMore": {"type": "boolean", "description": "Whether there is a next page.", "examples": [True]},
        },
    }
    return {
        "Error": error_body,
        "ErrorDescription": error,
        "OAuthError": oauth_error,
        "Pagination": pagination,
        "Problem": problem,
    }
