"""The whole document, put together."""

import importlib
import json
from pathlib import Path
from typing import Any

from fastapi.openapi.utils import get_openapi

from controlplane.core.scopes import API_KEY_SCOPES
from scripts.openapi import links, words
from scripts.openapi.components import Components, header_name
from scripts.openapi.documents import documents
from scripts.openapi.examples import scopes_in_words
from scripts.openapi.operations import finish
from scripts.openapi.schemas import fixed

ROOT = Path(__file__).parents[2]


def apps() -> dict[str, Any]:
    """The app of each function, by group."""
    groups = sorted(path.parent.name for path in (ROOT / "functions").glob("*/routes.py"))
    return {group: importlib.import_module(f"{group}.app").app for group in groups}


def describe() -> str:
    """The document as text, the same for the same routes."""
    components = Components(documents(words.INFO))
    components.schemas.add(fixed())
    paths = _paths(components)
    links.add(paths, components.parameters)
    document = {
        "openapi": "3.1.0",
        "info": words.INFO,
        "externalDocs": words.REFERENCE,
        "servers": words.SERVERS,
        "tags": _tags(paths),
        "paths": paths,
        "components": _components(components),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _paths(components: Components) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    seen: set[str] = set()
    for app in apps().values():
        part = get_openapi(title=app.title, version=words.INFO["version"], openapi_version="3.1.0", routes=app.routes)
        found = part.get("components", {}).get("schemas", {})
        components.schemas.add({name: schema for name, schema in found.items() if "ValidationError" not in name})
        for route in app.routes:
            if not route.include_in_schema:
                continue  # a page for people
            for method in route.methods:
                operation = finish(route, part["paths"][route.path][method.lower()], components)
                for unique in (operation["operationId"], operation["summary"]):
                    if unique in seen:
                        raise SystemExit(f"two operations are called {unique}")
                    seen.add(unique)
                paths.setdefault(route.path, {})[method.lower()] = operation
    return dict(sorted(paths.items()))


def _tags(paths: dict[str, Any]) -> list[dict[str, str]]:
    used = {tag for path in paths.values() for operation in path.values() for tag in operation["tags"]}
    if used != set(words.TAGS):
        raise SystemExit(f"the tags in use and those in words.py differ: {sorted(used ^ set(words.TAGS))}")
    return [{"name": name, "description": about} for name, about in sorted(words.TAGS.items())]


def _components(components: Components) -> dict[str, Any]:
    schemes = json.loads(json.dumps(words.SECURITY_SCHEMES))
    key, user = schemes["organizationApiKey"], schemes["userToken"]
    key["description"] = key["description"].format(key_scopes=", ".join(f"`{scope}`" for scope in API_KEY_SCOPES))
    user["description"] = user["description"].format(scopes=scopes_in_words())
    return {
        "securitySchemes": schemes,
        "parameters": dict(sorted(components.parameters.items())),
        "headers": {header_name(name): header for name, header in words.HEADERS.items()},
        "responses": dict(sorted(components.responses.items())),
        "examples": dict(sorted(components.examples.items())),
        "schemas": dict(sorted(components.schemas.collected.items())),
    }
