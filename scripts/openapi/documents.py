"""Describes the well-known documents. Their formats are external standards: no envelope, and no models.

A schema is read off the document itself: its types and its examples. Only its texts are in documents.yaml.
"""

from pathlib import Path
from typing import Any

import yaml

from scripts.openapi.schemas import Schema
from system import service

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
    values = {
        "getOpenapi": {"openapi": "3.1.0", "info": summary, "paths": {}},
        "getAuthorizationServer": service.describe_authorization_server(),
        "getScanSarif": _SARIF_LOG,
        "getAgentFeedback": service.describe_feedback(),
    }
    described = yaml.safe_load(Path(__file__).with_name("documents.yaml").read_text(encoding="utf-8"))
    return {name: (it["component"], _schema(values[name], it["texts"])) for name, it in described.items()}
