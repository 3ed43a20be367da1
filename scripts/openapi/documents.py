"""Describes the well-known documents. Their formats are external standards: no envelope, and no models."""

from typing import Any

from scripts.openapi.schemas import Schema
from system import service

_LINES: Schema = {"type": "array", "items": {"type": "string"}}


def _strings(about: dict[str, str]) -> dict[str, Schema]:
    return {name: {"type": "string", "description": text} for name, text in about.items()}


def _lists(about: dict[str, str]) -> dict[str, Schema]:
    return {name: {**_LINES, "description": text} for name, text in about.items()}


def _addresses(about: dict[str, str]) -> dict[str, Schema]:
    return {name: {"type": "string", "format": "uri", "description": text} for name, text in about.items()}


def _object(description: str, properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "description": description, "required": [*properties], "properties": properties}


_SERVER = _object(
    "The authorization server metadata of RFC 8414, with the device grant of RFC 8628.",
    {
        **_addresses(
            {
                "issuer": "The address of the authorization server.",
                "device_authorization_endpoint": "Where a device requests a code.",
                "token_endpoint": "Where a device redeems the code and refreshes its tokens.",
                "revocation_endpoint": "Where a device revokes its tokens.",
            }
        ),
        **_lists(
            {
                "grant_types_supported": "The grants that the token endpoint supports.",
                "response_types_supported": "`none`: there is no authorization endpoint.",
                "scopes_supported": "The scopes that a device can request.",
                "code_challenge_methods_supported": "The methods of hashing the code verifier.",
                "token_endpoint_auth_methods_supported": "`none`: clients are public.",
                "revocation_endpoint_auth_methods_supported": "`none`: clients are public.",
            }
        ),
        **_addresses({"service_documentation": "The documentation for people."}),
    },
)

_FEEDBACK = _object(
    "The discovery document of the feedback.now protocol.",
    {
        **_strings(
            {
                "schema_version": "The version of the protocol.",
                "name": "The name of the service.",
                "description": "What to report on.",
            }
        ),
        "endpoints": _object("The endpoints.", _addresses({"feedback": "Accepts reports."})),
        **_lists({"categories": "The values of `category`.", "surfaces": "The values of `surface`."}),
        "rate_limits": _object(
            "How many new reports are accepted.",
            {
                "submissions_per_hour": {"type": "integer", "minimum": 1, "description": "New reports in the window."},
                **_strings(
                    {
                        "window": "The period in which reports are counted.",
                        "counted_by": "Whose reports count together.",
                        "exceeded": "The response to a report above the limit.",
                    }
                ),
            },
        ),
        "auth": _object(
            "What a report must be authenticated with.",
            {
                "required": {"type": "boolean", "description": "Whether a report needs a credential."},
                **_lists({"schemes": "The authentication schemes.", "scopes": "The scopes it must have."}),
                **_addresses({"authorization_server": "The metadata of the authorization server."}),
            },
        ),
        "field_limits": {
            "type": "object",
            "description": "The limits of each text field of a report, by its name.",
            "additionalProperties": _object(
                "The limits of one field.",
                {
                    "required": {"type": "boolean", "description": "Whether the field is required."},
                    "min_length": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Minimum length, after trimming.",
                    },
                    "max_length": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Maximum length, after trimming.",
                    },
                },
            ),
        },
        "deduplication": _object(
            "When two reports count as duplicates.",
            _strings(
                {
                    "window": "The period in which duplicates are recognized.",
                    "scope": "What two duplicates have in common.",
                    "repeated": "The response to a duplicate.",
                }
            ),
        ),
        "guidance": _object(
            "How to write a report.",
            {
                **_lists(
                    {
                        "report": "What to report.",
                        "rules": "What makes a report useful.",
                        "never_include": "What a report must not contain.",
                    }
                ),
                **_addresses({"documentation": "Describes the API."}),
            },
        ),
    },
)

_DESCRIPTION = {
    "type": "object",
    "description": "An OpenAPI document.",
    "required": ["openapi", "info", "paths"],
    "properties": {
        "openapi": {"type": "string", "description": "The version of OpenAPI."},
        "info": {"type": "object", "description": "The title and description of the API."},
        "paths": {"type": "object", "description": "Its operations, by path and method."},
    },
}


_SARIF = _object(
    "A log in SARIF 2.1.0.",
    {
        **_addresses({"$schema": "The schema of the format."}),
        **_strings({"version": "The version of the format."}),
        "runs": {
            "type": "array",
            "items": {"type": "object"},
            "description": "One run: the tool, its rules, and results.",
        },
    },
)
_SARIF_LOG = {
    "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
    "version": "2.1.0",
    "runs": [{"tool": {"driver": {"name": "Assent", "rules": []}}, "results": []}],
}


def _described(info: dict[str, Any]) -> dict[str, Any]:
    summary = {name: info[name] for name in ("title", "version", "summary")}
    return {"openapi": "3.1.0", "info": summary, "paths": {}}


def _with_examples(schema: Schema, value: Any) -> Schema:
    """Returns the schema with the document's own values as the examples of its fields."""
    if "additionalProperties" in schema:
        each = _with_examples(schema["additionalProperties"], next(iter(value.values())))
        return {**schema, "additionalProperties": each, "examples": [value]}
    if "properties" not in schema:
        return {**schema, "examples": [value]}
    properties = {name: _with_examples(field, value[name]) for name, field in schema["properties"].items()}
    return {**schema, "properties": properties}


def documents(info: dict[str, Any]) -> dict[str, tuple[str, Schema]]:
    """Returns, by operation: the component's name, and its schema."""
    found = {
        "getOpenapi": ("OpenApiDocument", _DESCRIPTION, _described(info)),
        "getAuthorizationServer": ("AuthorizationServerMetadata", _SERVER, service.describe_authorization_server()),
        "getScanSarif": ("SarifLog", _SARIF, _SARIF_LOG),
        "getAgentFeedback": ("FeedbackDiscovery", _FEEDBACK, service.describe_feedback()),
    }
    return {
        operation: (name, _with_examples(schema, document)) for operation, (name, schema, document) in found.items()
    }
