"""Examples of whole bodies, composed from those of the fields in the models.

If a body has several forms, the tables below define how each differs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic.alias_generators import to_snake

from controlplane.core.scopes import API_KEY_SCOPES, SCOPES
from scripts.openapi.schemas import REFERENCE, Schema, Schemas

type Examples = dict[str, dict[str, Any]]


class _Absent:
    """Marks a field to remove from an example."""


ABSENT = _Absent()


class Form(NamedTuple):
    """One form of a body: its summary, and how it differs from the examples of its fields."""

    summary: str
    changes: Mapping[str, Any] = MappingProxyType({})


_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_ORGANIZATION = "org_3f8k2m9q7r1s5t6v"
_QUEUED = {
    "status": "queued",
    "findingCount": None,
    "issueCount": None,
    "progress": {"stage": "fetch", "stageStatus": "pending", "completedStages": 0},
    "startedAt": None,
    "completedAt": None,
    "coverage": None,
}

REQUESTS: dict[str, dict[str, Form]] = {
    "createProject": {
        "current": Form("The current shape"),
        "older": Form(
            "The older shape",
            {"organizationId": _ORGANIZATION, "trustedOrigins": ["example.com"], "websites": ABSENT},
        ),
    },
    "updateProject": {
        "rename": Form("Another name and description", {"websites": ABSENT, "consent": ABSENT}),
        "websites": Form(
            "Another list of websites, and another banner branding", {"projectName": ABSENT, "description": ABSENT}
        ),
    },
    "rollApiKey": {"request": Form("A grace period of a day")},
    "createDeviceToken": {
        "deviceCode": Form("Redeem a device code", {"refreshToken": ABSENT, "scope": ABSENT}),
        "refreshToken": Form(
            "Renew the tokens",
            {"grantType": "refresh_token", "deviceCode": ABSENT, "codeVerifier": ABSENT, "scope": ABSENT},
        ),
    },
}

# By operation and status.
RESPONSES: dict[tuple[str, int], dict[str, Form]] = {
    ("getMe", 200): {
        "userToken": Form(
            "A person's token",
            {"principal": {"keyId": ABSENT, "organizationId": ABSENT, "createdBy": ABSENT}},
        ),
        "apiKey": Form(
            "An organization API key",
            {
                "principal": {"type": "api_key", "userId": ABSENT},
                "scopes": sorted(API_KEY_SCOPES),
                "organizations": [{"role": "admin"}],
            },
        ),
    },
    ("startScan", 202): {
        "scanStarted": Form("The scan exists", {"scan": _QUEUED}),
        "scanStarting": Form("The scan doesn't exist yet"),
        "scanNotStarted": Form("The scan won't be created"),
    },
    ("getScanRequest", 200): {
        "scanStarted": Form("The scan exists", {"scan": _QUEUED}),
        "scanStarting": Form("The scan doesn't exist yet"),
        "scanNotStarted": Form("The scan won't be created"),
    },
    ("createProject", 201): {
        "createdProject": Form("For a request in the current shape"),
        "listedProject": Form("For a request in the older shape"),
    },
    ("createFeedback", 200): {"feedbackReceipt": Form("The same report again", {"alreadySubmitted": True})},
    ("createFeedback", 201): {"feedbackReceipt": Form("A new report")},
}


def compose(schema: Schema, schemas: Schemas, at: str, *, request: bool = False) -> Any:
    """Composes a valid value from the examples of the schema's parts. Raises SystemExit if a part has none."""
    schema = schemas.resolve(schema)
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema:
        return schema["const"]
    if "properties" in schema:
        return {
            name: compose(part, schemas, f"{at}.{name}", request=request)
            for name, part in schema["properties"].items()
            # Examples of requests omit deprecated fields.
            if not (request and schemas.resolve(part).get("deprecated"))
        }
    alternatives: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or []
    choices = [choice for choice in alternatives if choice != {"type": "null"}]
    if choices:
        return compose(choices[0], schemas, at, request=request)
    if schema.get("type") == "array":
        return [compose(schema["items"], schemas, f"{at}[]", request=request)]
    raise SystemExit(f"{at} has no example: add one to the field in the model")


def merge(value: Any, changes: Any) -> Any:
    """Applies the changes: to objects field by field, to lists entry by entry, to anything else as a whole."""
    if isinstance(changes, Mapping) and not changes:
        return value
    if isinstance(value, dict) and isinstance(changes, Mapping):
        merged = {**value, **{name: merge(value.get(name), change) for name, change in changes.items()}}
        return {name: part for name, part in merged.items() if part is not ABSENT}
    if isinstance(value, list) and isinstance(changes, list) and value and isinstance(value[0], dict):
        return [merge(value[0], change) for change in changes]
    return changes


def of_request(operation_id: str, schema: Schema, schemas: Schemas, *, oauth: bool = False) -> Examples:
    """Returns example bodies of an operation's request, with OAuth's field names or as JSON."""
    whole = compose(schema, schemas, operation_id, request=True)
    forms = REQUESTS.get(operation_id, {"request": Form("With every field")})
    examples = {}
    for name, form in forms.items():
        changes = {to_snake(field) if oauth else field: change for field, change in form.changes.items()}
        examples[name] = {"summary": form.summary, "value": merge(whole, changes)}
    return examples


def of_response(operation_id: str, status: int, schema: Schema, schemas: Schemas) -> Examples:
    """Returns example contents (`data`) of a response with several forms. The others are composed from the schema."""
    choices = schemas.resolve(schema).get("oneOf", [schema])
    by_name = {_name(choice): choice for choice in choices}
    examples = {}
    for name, form in RESPONSES.get((operation_id, status), {}).items():
        chosen = by_name.get(name, choices[0])
        whole = compose(chosen, schemas, f"{operation_id} {status}")
        examples[name] = {"summary": form.summary, "value": merge(whole, form.changes)}
    return examples


def _name(schema: Schema) -> str:
    schema = schema.get("items", schema)
    model: str = schema.get("$ref", f"{REFERENCE}answer").removeprefix(REFERENCE)
    return model[0].lower() + model[1:]


def scopes_in_words() -> str:
    return "\n".join(f"- `{name}`: {about}" for name, about in SCOPES.items())
