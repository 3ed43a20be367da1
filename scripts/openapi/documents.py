"""The documents under well-known addresses: other people's formats, so no envelope and no models of ours."""

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
                "device_authorization_endpoint": "Where a device asks for a code.",
                "token_endpoint": "Where it redeems the code, and renews its tokens.",
                "revocation_endpoint": "Where it gives them back.",
            }
        ),
        **_lists(
            {
                "grant_types_supported": "The grants that the token endpoint takes.",
                "response_types_supported": "`none`: there is no authorization endpoint.",
                "scopes_supported": "The scopes that a device may ask for.",
                "code_challenge_methods_supported": "How a proof key is hashed.",
                "token_endpoint_auth_methods_supported": "`none`: clients are public.",
                "revocation_endpoint_auth_methods_supported": "`none`: clients are public.",
            }
        ),
        **_addresses({"service_documentation": "What people read about it."}),
    },
)

_FEEDBACK = _object(
    "The discovery document of the feedback.now protocol.",
    {
        **_strings(
            {
                "schema_version": "The version of the protocol.",
                "name": "What the service is called.",
                "description": "What the reports are about.",
            }
        ),
        "endpoints": _object("Where to report.", _addresses({"feedback": "Takes the reports."})),
        **_lists({"categories": "What `category` may be.", "surfaces": "What `surface` may be."}),
        "rate_limits": _object(
            "How many new reports are taken.",
            {
                "submissions_per_hour": {"type": "integer", "minimum": 1, "description": "New reports in the window."},
                **_strings(
                    {
                        "window": "Over which time they are counted.",
                        "counted_by": "Whose reports are counted together.",
                        "exceeded": "What the next one is answered with.",
                    }
                ),
            },
        ),
        "auth": _object(
            "Who may report.",
            {
                "required": {"type": "boolean", "description": "Whether a report needs a credential."},
                **_lists({"schemes": "How it is sent.", "scopes": "What it must hold."}),
                **_addresses({"authorization_server": "Where the metadata of the authorization server stands."}),
            },
        ),
        "field_limits": {
            "type": "object",
            "description": "The limits of each text of a report, by its name.",
            "additionalProperties": _object(
                "The limits of one text.",
                {
                    "required": {"type": "boolean", "description": "Whether a report must have it."},
                    "min_length": {"type": "integer", "minimum": 0, "description": "Characters at least, trimmed."},
                    "max_length": {"type": "integer", "minimum": 1, "description": "Characters at most, trimmed."},
                },
            ),
        },
        "deduplication": _object(
            "When two reports count as one.",
            _strings(
                {"window": "Within which time.", "scope": "What must be the same.", "repeated": "What the second gets."}
            ),
        ),
        "guidance": _object(
            "How to write a report.",
            {
                **_lists(
                    {
                        "report": "What is worth one.",
                        "rules": "What makes it useful.",
                        "never_include": "What does not belong in it.",
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
        "info": {"type": "object", "description": "What the API is."},
        "paths": {"type": "object", "description": "Its operations, by path and method."},
    },
}


def _described(info: dict[str, Any]) -> dict[str, Any]:
    shown = {name: info[name] for name in ("title", "version", "summary")}
    return {"openapi": "3.1.0", "info": shown, "paths": {}}


def _shown(schema: Schema, value: Any) -> Schema:
    """The schema with the values of the document itself as the examples of its fields."""
    if "additionalProperties" in schema:
        each = _shown(schema["additionalProperties"], next(iter(value.values())))
        return {**schema, "additionalProperties": each, "examples": [value]}
    if "properties" not in schema:
        return {**schema, "examples": [value]}
    properties = {name: _shown(field, value[name]) for name, field in schema["properties"].items()}
    return {**schema, "properties": properties}


def documents(info: dict[str, Any]) -> dict[str, tuple[str, Schema, Any]]:
    """By operation: the component's name, its schema, and the document itself where it is small."""
    found = {
        "getOpenapi": ("OpenApiDocument", _DESCRIPTION, _described(info)),
        "getAuthorizationServer": ("AuthorizationServerMetadata", _SERVER, service.describe_authorization_server()),
        "getAgentFeedback": ("FeedbackDiscovery", _FEEDBACK, service.describe_feedback()),
    }
    return {
        operation: (name, _shown(schema, document), document) for operation, (name, schema, document) in found.items()
    }
