"""The component schemas: collected from the models, and simplified."""

import json
from collections import Counter
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from controlplane.audits.items import Outcome, ProofMethod, RunStatus, Trigger
from controlplane.feedback.store import Category, Surface
from controlplane.findings.items import Source, Status
from controlplane.findings.lists import Sort
from controlplane.findings.vendors import ReviewState, VendorState
from controlplane.platform.core.acting import ActorKind
from controlplane.platform.core.acting import Source as ActionSource
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import CATALOG
from controlplane.platform.core.naming import Name
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.roles import Role
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.projects.items import AddressKind
from controlplane.projects.rules import BRANDINGS
from controlplane.scans.items import Access, Stage
from controlplane.scans.items import Status as ScanStatus
from openassent_analysis.findings import CATEGORIES, SEVERITIES
from organizations.request_schemas import Decision
from scripts.openapi.texts import FIXED

type Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"

# Enumerations that several models share, described once.
_ENUMERATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Action": ("An action of the audit log.", (*Action,)),
    "Role": (
        "A member's role. Owners can do everything; admins can do everything that doesn't concern owners.",
        get_args(Role),
    ),
    "InboxStatus": ("The status of a finding.", get_args(Status)),
    "InboxSource": ("The source of a finding.", get_args(Source)),
    "InboxSort": ("The order of findings.", get_args(Sort)),
    "Priority": (
        "P0 is the most urgent. In code, it is the severity (critical is P0), one step lower with low confidence.",
        get_args(Priority),
    ),
    "FeedbackCategory": ("The category of a report.", get_args(Category)),
    "FeedbackSurface": ("The part of the product that a report is about.", get_args(Surface)),
    "VendorState": ("The decision about a vendor.", get_args(VendorState)),
    "VendorReviewState": ("The state of the vendor's review.", get_args(ReviewState)),
    "KeyScope": ("A scope that an API key can have.", API_KEY_SCOPES),
    "ErrorCode": ("The error code, for programs.", (*CATALOG,)),
    "ScanStatus": ("The status of a scan.", get_args(ScanStatus)),
    "PlanId": ("A plan.", (*PLANS,)),
    "CredentialType": ("The kind of credential.", ("session", "api_key", "oauth")),
    "Branding": ("The branding of the banner.", BRANDINGS),
    "IssueState": ("The state of a GitHub issue.", ("open", "closed")),
    "Confidence": ("How sure the analysis is.", ("high", "medium", "low")),
    "FindingCategory": ("The category of a finding.", (*CATEGORIES,)),
    "Severity": ("The severity of a finding.", (*SEVERITIES,)),
    "Schedule": ("How often a scan or an audit starts by itself.", get_args(Schedule)),
    "OverLimitName": ("A limit of the plan that the organization exceeds.", ("apiKeys", "projects")),
    "Stage": ("A stage of a scan.", get_args(Stage)),
    "StageStatus": ("The status of a scan's stage.", ("pending", "running", "completed", "failed", "canceled")),
    "ScanAccess": ("How much of a scan's findings is shown.", get_args(Access)),
    "SessionKind": ("The kind of session.", ("session", "device", "token")),
    "UnlockStatus": ("Whether the unlock was new.", ("unlocked", "already-unlocked")),
    "Decision": ("A decision about a vendor.", ("approve", "ignore")),
    "DeliveryStatus": ("The status of a delivery.", ("pending", "succeeded", "failed")),
    "DisabledReason": ("Why an endpoint is disabled.", ("person", "failing")),
    "EventName": ("An event of an organization.", WEBHOOK_EVENTS),
    "RequestDecision": ("What was decided about a request.", get_args(Decision)),
    "WebhookFormat": ("What is sent to an endpoint.", ("standard", "slack")),
    "WebhookStatus": ("Whether events are sent to an endpoint.", ("enabled", "disabled")),
    "ActorKind": ("Who acts.", get_args(ActorKind)),
    "ActionSource": ("How an action was started.", get_args(ActionSource)),
    "AddressKind": ("The kind of address.", get_args(AddressKind)),
    "AuditOutcome": ("The result of a run.", get_args(Outcome)),
    "AuditRunStatus": ("The status of a run.", get_args(RunStatus)),
    "AuditTrigger": ("What started a run.", get_args(Trigger)),
    "ProofMethod": ("What proves ownership.", get_args(ProofMethod)),
}

# A name that a person chooses, whose pattern many requests share.
_NAME: Schema = {**TypeAdapter(Name).json_schema(), "description": "A display name, trimmed.", "examples": ["Shop"]}
_TAKEN = frozenset(FIXED["x-taken"])
_SHARED_BY = 3
_UNIONS = {tuple(it["variants"]): it for it in FIXED["x-unions"]}


def reference(name: str) -> Schema:
    return {"$ref": REFERENCE + name}


def fields_of(model: type[BaseModel]) -> dict[str, Schema]:
    """Returns references to the fields of the model's component, by their names in snake_case."""
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    return {name: reference(f"{model.__name__}/properties/{alias}") for name, alias in aliases.items()}


def tidy(schema: Any, *, sent: bool = False) -> Any:
    """Returns the schema without pydantic's titles, with short nullable types and references to enumerations.

    sent: whether it is a response's. Its enumerations may get new values, so that clients must accept any.
    """
    if isinstance(schema, list):
        return [tidy(part, sent=sent) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain: Schema = {}
    for key, value in schema.items():
        if key in {"properties", "$defs"}:
            plain[key] = {name: tidy(part, sent=sent) for name, part in value.items()}
        elif key in {"examples", "example", "default", "const", "enum", "required"}:
            plain[key] = value
        elif key != "title":
            plain[key] = tidy(value, sent=sent)
    return _enumerated(_named(_nullable(_defined(_possible(plain)))), sent=sent)


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


def _possible(schema: Schema) -> Schema:
    """Drops `const` from a boolean: generators have no type for a single boolean value."""
    return {key: value for key, value in schema.items() if key != "const" or not isinstance(value, bool)}


def _named(schema: Schema) -> Schema:
    """Returns a reference to the rule of names, which is long, instead of the rule."""
    if schema.get("pattern") != _NAME["pattern"]:
        return schema
    return {**reference("Name"), **{key: value for key, value in schema.items() if key not in {"pattern", "type"}}}


def _enumerated(schema: Schema, *, sent: bool) -> Schema:
    """Returns a reference to the enumeration, or to its open form if it is sent. Raises SystemExit without one."""
    values = [value for value in schema.get("enum", ()) if value is not None]
    if len(values) < 2:
        return schema
    name = next((name for name, (_, known) in _ENUMERATIONS.items() if [*known] == values), None)
    if name is None:
        raise SystemExit(f"the enumeration of {', '.join(values)} needs a name")
    rest = {key: value for key, value in schema.items() if key not in {"enum", "type"}}
    if rest.get("examples") == values[:1]:
        del rest["examples"]  # The enumeration has it.
    return {**reference(open_name(name) if sent else name), **rest}


def open_name(enumeration: str) -> str:
    """Returns the name of the schema of values that the API sends."""
    return f"{enumeration}Value" if enumeration in _TAKEN else enumeration


def enumerations() -> dict[str, Schema]:
    """Returns a schema with exactly the values that requests may have, and one that allows later values."""
    schemas: dict[str, Schema] = {}
    for name, (about, values) in _ENUMERATIONS.items():
        common = {"type": "string", "description": about, "examples": [values[0]]}
        if name in _TAKEN:
            schemas[name] = {**common, "enum": [*values]}
        schemas[open_name(name)] = {**common, "x-extensible-enum": [*values]}
    return schemas


def without_null(schema: Schema) -> Schema:
    """Returns the schema without null: an omitted parameter is absent, never null."""
    if isinstance(schema.get("type"), list):
        schema = {**schema, "type": schema["type"][0]}
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**choices[0], **rest}
    return schema


def _union(choices: list[Schema]) -> tuple[str, Schema]:
    """Returns the name and the schema of a union. Raises SystemExit if it has no name."""
    names = tuple(choice.get("$ref", "").removeprefix(REFERENCE) for choice in choices)
    if names not in _UNIONS:
        raise SystemExit(f"the union of {', '.join(names)} needs a name")
    union = _UNIONS[names]
    schema: Schema = {"description": union["description"], "oneOf": choices}
    if "statuses" in union:
        mapping = {status: REFERENCE + variant for status, variant in zip(union["statuses"], names, strict=True)}
        schema["discriminator"] = {"propertyName": "status", "mapping": mapping}
    return union["name"], schema


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
        self.collected = {**enumerations(), "Name": _NAME}

    def add(self, schemas: dict[str, Schema], *, sent: bool = False) -> None:
        for name, schema in schemas.items():
            if name in _ENUMERATIONS:
                continue  # FastAPI's own description of an enumeration
            tidied = tidy(schema, sent=sent)
            if self.collected.setdefault(name, tidied) != tidied:
                raise SystemExit(f"two different models are both named {name}")

    def of(self, model: Any) -> Schema:
        """Adds the schema of a response's type, and returns a reference to it."""
        schema = serialized(model)
        self.add(schema.pop("$defs", {}), sent=True)
        if "anyOf" in schema:
            name, schema = _union(schema["anyOf"])
        else:
            name = schema["title"]
        self.add({name: schema}, sent=True)
        return reference(name)

    def share(self) -> None:
        """Makes a component of each ID that at least three schemas have, under the field's name."""
        schemas = [schema.get("properties", {}) for schema in self.collected.values()]
        named = {json.dumps(it): name for fields in schemas for name, it in fields.items() if name.endswith("Id")}
        for text, times in Counter(json.dumps(it) for fields in schemas for it in fields.values()).items():
            field, name = json.loads(text), named.get(text, "")
            if times >= _SHARED_BY and name and field.get("type") == "string":
                component = name[0].upper() + name[1:]
                for fields in schemas:
                    fields |= {key: reference(component) for key, it in fields.items() if it == field}
                self.collected[component] = field

    def extend(self) -> None:
        """Removes from each extended schema the fields of its base. Raises SystemExit if one of them differs."""
        for name, other in FIXED["x-extended"].items():
            whole, base = self.collected[name], self.collected[other]
            if not base["properties"].items() <= whole["properties"].items():
                raise SystemExit(f"{name} doesn't have all fields of {other}")
            own = {key: field for key, field in whole["properties"].items() if key not in base["properties"]}
            rest = {"type": "object", "required": [it for it in whole["required"] if it in own], "properties": own}
            self.collected[name] = {"description": whole["description"], "allOf": [reference(other), rest]}
