"""Examples of whole bodies, composed from those of the fields in the models.

If a body has several forms, the tables below define how each differs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic.alias_generators import to_snake

from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from scripts.openapi.schemas import Schema, Schemas


class _Absent:
    """Marks a field to remove from an example."""


ABSENT = _Absent()


class Form(NamedTuple):
    """One form of a body: its summary, and how it differs from the examples of its fields."""

    summary: str
    changes: Mapping[str, Any] = MappingProxyType({})


_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_ORGANIZATION = "org_3f8k2m9q7r1s5t6v"

# By operation. Other bodies have no examples of their own: readers compose them from the schemas' examples.
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
    "createDeviceToken": {
        "deviceCode": Form("Redeem a device code", {"refreshToken": ABSENT, "scope": ABSENT}),
        "refreshToken": Form(
            "Renew the tokens",
            {"grantType": "refresh_token", "deviceCode": ABSENT, "codeVerifier": ABSENT, "scope": ABSENT},
        ),
    },
}

RESPONSES: dict[str, dict[str, Form]] = {
    "getMe": {
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


def of_request(operation_id: str, schema: Schema, schemas: Schemas, *, oauth: bool = False) -> dict[str, Any]:
    """Returns the `examples` of a request that has several forms, with OAuth's field names or as JSON."""
    examples = {}
    for name, form in REQUESTS.get(operation_id, {}).items():
        whole = compose(schema, schemas, operation_id, request=True)
        changes = {to_snake(field) if oauth else field: change for field, change in form.changes.items()}
        examples[name] = {"summary": form.summary, "value": merge(whole, changes)}
    return {"examples": examples} if examples else {}


def of_response(operation_id: str, schema: Schema, schemas: Schemas) -> dict[str, Any]:
    """Returns the `examples` of an operation's contents (`data`), if they have several forms."""
    examples = {
        name: {"summary": form.summary, "value": merge(compose(schema, schemas, operation_id), form.changes)}
        for name, form in RESPONSES.get(operation_id, {}).items()
    }
    return {"examples": examples} if examples else {}


def scopes_in_words() -> str:
    return "\n".join(f"- `{name}`: {about}" for name, about in SCOPES.items())
