"""Assembles the OpenAPI document from the routes of all functions."""

import importlib
import json
from pathlib import Path
from typing import Any

import yaml
from fastapi.openapi.utils import get_openapi

from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.http import deprecations
from controlplane.platform.http.route import routes_of
from scripts.openapi.components import FAILURES, OAUTH, Components, header_name
from scripts.openapi.operations import finish
from scripts.openapi.schemas import REFERENCE, Schema, enumerations
from scripts.openapi.texts import ABOUT, FIXED
from system import service

ROOT = Path(__file__).parents[2]

_DEPRECATIONS = """\
A response to a request that uses one of these has three headers: `Deprecation` (RFC 9745) with the date since when,
`Sunset` (RFC 8594) with the date until when it works at least, and `Link` to this section and to the operation that
replaces a deprecated one. A deprecated field of a response has no header, because the server can't know whether you
read it.
"""


def apps() -> dict[str, Any]:
    """Returns the app of each function, by group."""
    groups = sorted(path.parent.name for path in (ROOT / "functions").glob("*/routes.py"))
    return {group: importlib.import_module(f"{group}.app").app for group in groups}


def describe() -> dict[str, Any]:
    """Returns the document. The output depends only on the routes."""
    components = Components(documents(FIXED["info"]))
    components.schemas.add(FIXED["components"]["schemas"], sent=True)
    paths = _paths(components)
    components.schemas.share()
    components.schemas.extend()
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {**FIXED["info"], "description": ABOUT.replace("{deprecations}", _deprecations())},
        "externalDocs": FIXED["externalDocs"],
        "servers": FIXED["servers"],
        "security": FIXED["security"],
        "tags": _tags(paths),
        "paths": paths,
        "x-common-headers": FIXED["x-common-headers"],
        "components": _components(components),
        "x-oauth": {**FIXED["x-oauth"], "responses": dict(sorted(components.responses[OAUTH].items()))},
    }
    written = json.dumps(document)
    for name in enumerations():
        # Some are only sent, or only taken.
        if f'"{REFERENCE}{name}"' not in written:
            del document["components"]["schemas"][name]
    return document


def _deprecations() -> str:
    """Returns the section on deprecations as Markdown, without its heading."""
    return "\n".join([_DEPRECATIONS, *(f"- {one.subject}. {one.notice}" for one in deprecations.ALL)])


def _paths(components: Components) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    seen: set[str] = set()
    for app in apps().values():
        routes: list[Any] = list(routes_of(app.routes))
        part = get_openapi(title=app.title, version=FIXED["info"]["version"], openapi_version="3.1.0", routes=routes)
        found = part.get("components", {}).get("schemas", {})
        components.schemas.add({name: schema for name, schema in found.items() if "ValidationError" not in name})
        for route in routes:
            if not route.include_in_schema:
                continue  # a page for people
            for method in route.methods:
                operation = finish(route, part["paths"][route.path][method.lower()], components)
                for unique in (operation["operationId"], operation["summary"]):
                    if unique in seen:
                        raise SystemExit(f"two operations are both named {unique}")
                    seen.add(unique)
                paths.setdefault(route.path, {})[method.lower()] = operation
    return dict(sorted(paths.items()))


def _tags(paths: dict[str, Any]) -> list[dict[str, str]]:
    tags: list[dict[str, str]] = FIXED["tags"]
    used = {tag for path in paths.values() for operation in path.values() for tag in operation["tags"]}
    if unknown := used ^ {tag["name"] for tag in tags}:
        raise SystemExit(f"the tags in use and those in document.yaml differ: {sorted(unknown)}")
    return tags


def _components(components: Components) -> dict[str, Any]:
    fixed = FIXED["components"]
    scopes = "\n".join(f"- `{name}`: {about}" for name, about in SCOPES.items())
    key_scopes = ", ".join(f"`{scope}`" for scope in API_KEY_SCOPES)
    schemes = {
        name: {**it, "description": it["description"].format(scopes=scopes, key_scopes=key_scopes)}
        for name, it in fixed["securitySchemes"].items()
    }
    return {
        "securitySchemes": schemes,
        "parameters": dict(sorted(components.parameters.items())),
        "headers": {header_name(name): header for name, header in fixed["headers"].items()},
        "responses": dict(sorted(components.responses[FAILURES].items())),
        "schemas": dict(sorted(components.schemas.collected.items())),
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
    about: Schema = {"description": texts[at]} if at in texts else {}
    inside = f"{at}." if at else ""
    if isinstance(value, list):
        items = {"type": "object" if value and isinstance(value[0], dict) else "string"}
        return {"type": "array", "items": items, **about, "examples": [value]}
    if not isinstance(value, dict):
        address = {"format": "uri"} if str(value).startswith("https://") else {}
        return {**_TYPES[type(value)], **address, **about, "examples": [value]}
    if f"{inside}*" in texts:
        each = _schema(next(iter(value.values())), texts, f"{inside}*")
        return {"type": "object", **about, "additionalProperties": each, "examples": [dict([*value.items()][:1])]}
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
