"""The table of operations from which error responses propose a request that would work.

It is part of the shared layer, so that each function knows all operations. `controlplane.http.fixes` reads it.
"""

import json
from typing import Any

from scripts.openapi.components import Object
from scripts.openapi.schemas import REFERENCE

_JSON = "application/json"


def describe(document: Object) -> str:
    """Returns the table as text: what a program needs to build a request of each operation, by method and path."""
    table = {
        f"{method.upper()} {path}": _operation(operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in table.items())
    return f"{{\n{lines}\n}}\n"


def _operation(operation: Object, document: Object) -> Object:
    kinds = {kind for choice in operation["security"] for kind in choice}
    row: Object = {
        "scopes": operation.get("x-required-scopes", []),
        "roles": operation.get("x-required-roles", []),
        "personal": kinds == {"userToken"},
        "query": {
            one["name"]: one["example"] if one["required"] else None
            for one in (_resolved(one, "parameters", document) for one in operation.get("parameters", ()))
            if one["in"] == "query"
        },
    }
    if "requestBody" in operation:
        contents = operation["requestBody"]["content"][_JSON]
        schema = _resolved(contents["schema"], "schemas", document)
        row["required"] = schema.get("required", [])
        row["example"] = next(iter(contents["examples"].values()))["value"]
        row["choices"] = {
            name: choices for name, field in schema["properties"].items() if (choices := _choices(field, document))
        }
    return row


def _resolved(described: Object, kind: str, document: Object) -> Object:
    if "anyOf" in described:
        (described,) = [option for option in described["anyOf"] if option.get("type") != "null"]
    if "$ref" not in described:
        return described
    found: Object = document["components"][kind][described["$ref"].rpartition("/")[2]]
    return found


def _choices(field: Object, document: Object) -> list[Any]:
    """Returns the values that a field of an enumeration can have, or nothing."""
    if field.get("$ref", "").startswith(REFERENCE):
        field = document["components"]["schemas"][field["$ref"].removeprefix(REFERENCE)]
    choices: list[Any] = field.get("enum", [])
    return choices
