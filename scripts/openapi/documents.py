"""Describes the well-known documents. Their formats are external standards: no envelope, and no models.

A schema is read off the document itself: its types and its examples. Only its texts are written here.
"""

from typing import Any

from scripts.openapi.schemas import Schema
from system import service

_SERVER = {
    "": "The authorization server metadata of RFC 8414, with the device grant of RFC 8628.",
    "issuer": "The address of the authorization server.",
    "device_authorization_endpoint": "Where a device requests a code.",
    "token_endpoint": "Where a device redeems the code and refreshes its tokens.",
    "revocation_endpoint": "Where a device revokes its tokens.",
    "grant_types_supported": "The grants that the token endpoint supports.",
    "response_types_supported": "`none`: there is no authorization endpoint.",
    "scopes_supported": "The scopes that a device can request.",
    "code_challenge_methods_supported": "The methods of hashing the code verifier.",
    "token_endpoint_auth_methods_supported": "`none`: clients are public.",
    "revocation_endpoint_auth_methods_supported": "`none`: clients are public.",
    "service_documentation": "The documentation for people.",
}
_FEEDBACK = {
    "": "The discovery document of the feedback.now protocol.",
    "schema_version": "The version of the protocol.",
    "name": "The name of the service.",
    "description": "What to report on.",
    "endpoints": "The endpoints.",
    "endpoints.feedback": "Accepts reports.",
    "categories": "The values of `category`.",
    "surfaces": "The values of `surface`.",
    "rate_limits": "How many new reports are accepted.",
    "rate_limits.submissions_per_hour": "New reports in the window.",
    "rate_limits.window": "The period in which reports are counted.",
    "rate_limits.counted_by": "Whose reports count together.",
    "rate_limits.exceeded": "The response to a report above the limit.",
    "auth": "What a report must be authenticated with.",
    "auth.required": "Whether a report needs a credential.",
    "auth.schemes": "The authentication schemes.",
    "auth.scopes": "The scopes it must have.",
    "auth.authorization_server": "The metadata of the authorization server.",
    "field_limits": "The limits of each text field of a report, by its name.",
    "field_limits.*": "The limits of one field.",
    "field_limits.*.required": "Whether the field is required.",
    "field_limits.*.min_length": "Minimum length, after trimming.",
    "field_limits.*.max_length": "Maximum length, after trimming.",
    "deduplication": "When two reports count as duplicates.",
    "deduplication.window": "The period in which duplicates are recognized.",
    "deduplication.scope": "What two duplicates have in common.",
    "deduplication.repeated": "The response to a duplicate.",
    "guidance": "How to write a report.",
    "guidance.report": "What to report.",
    "guidance.rules": "What makes a report useful.",
    "guidance.never_include": "What a report must not contain.",
    "guidance.documentation": "Describes the API.",
}
_OPENAPI = {
    "": "An OpenAPI document.",
    "openapi": "The version of OpenAPI.",
    "info": "The title and description of the API.",
    "paths": "Its operations, by path and method.",
}
_SARIF = {
    "": "A log in SARIF 2.1.0.",
    "$schema": "The schema of the format.",
    "version": "The version of the format.",
    "runs": "One run: the tool, its rules, and results.",
}
_SARIF_LOG = {
    "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
    "version": "2.1.0",
    "runs": [{"tool": {"driver": {"name": "Assent", "rules": []}}, "results": []}],
}
_TYPES: dict[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0},
    str: {"type": "string"},
}


def _schema(value: Any, texts: dict[str, str], at: str = "") -> Schema:
    """Returns the schema of a document's part. An object whose fields have no texts is left open."""
    about: Schema = {"description": texts[at]}
    inside = f"{at}." if at else ""
    if isinstance(value, list):
        items = {"type": "object" if value and isinstance(value[0], dict) else "string"}
        return {"type": "array", "items": items, **about, "examples": [value]}
    if not isinstance(value, dict):
        address = {"format": "uri"} if str(value).startswith("https://") else {}
        return {**_TYPES[type(value)], **address, **about, "examples": [value]}
    if f"{inside}*" in texts:
        each = _schema(next(iter(value.values())), texts, f"{inside}*")
        return {"type": "object", **about, "additionalProperties": each, "examples": [value]}
    if any(name.startswith(inside) for name in texts if name):
        fields = {name: _schema(part, texts, inside + name) for name, part in value.items()}
        return {"type": "object", **about, "required": [*fields], "properties": fields}
    return {"type": "object", **about, "examples": [value]}


def documents(info: dict[str, Any]) -> dict[str, tuple[str, Schema]]:
    """Returns, by operation: the component's name, and its schema."""
    summary = {name: info[name] for name in ("title", "version", "summary")}
    described = {"openapi": "3.1.0", "info": summary, "paths": {}}
    return {
        "getOpenapi": ("OpenApiDocument", _schema(described, _OPENAPI)),
        "getAuthorizationServer": (
            "AuthorizationServerMetadata",
            _schema(service.describe_authorization_server(), _SERVER),
        ),
        "getScanSarif": ("SarifLog", _schema(_SARIF_LOG, _SARIF)),
        "getAgentFeedback": ("FeedbackDiscovery", _schema(service.describe_feedback(), _FEEDBACK)),
    }
