"""Assembles the OpenAPI document from the routes of all functions."""

import importlib
import json
from pathlib import Path
from typing import Any

from fastapi.openapi.utils import get_openapi

from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.http import deprecations
from controlplane.platform.http.route import routes_of
from scripts.openapi.components import FAILURES, OAUTH, Components, header_name
from scripts.openapi.documents import documents
from scripts.openapi.operations import finish
from scripts.openapi.schemas import REFERENCE, enumerations
from scripts.openapi.texts import ABOUT, FIXED

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
    components.schemas.extend()
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {**FIXED["info"], "description": ABOUT.replace("{deprecations}", _deprecations())},
        "externalDocs": FIXED["externalDocs"],
        "servers": FIXED["servers"],
        "tags": _tags(paths),
        "paths": paths,
        "x-common-headers": FIXED["x-common-headers"],
        "components": _components(components),
        "x-oauth": {"error": FIXED["x-oauth-error"], "responses": dict(sorted(components.responses[OAUTH].items()))},
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
