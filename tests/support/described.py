"""docs/openapi.json as tests read it: its operations, what its references stand for, and what its schemas allow."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

PATH = Path(__file__).parents[2] / "docs" / "openapi.json"
METHODS = ("get", "post", "patch", "delete")
_BASE = "urn:openapi"
_FORMATS = FormatChecker(("email",))


@_FORMATS.checks("date-time")
def _is_date_time(value: Any) -> bool:
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)
    )


@_FORMATS.checks("uri")
def _is_uri(value: Any) -> bool:
    return not isinstance(value, str) or bool(urlsplit(value).scheme and urlsplit(value).netloc)


@cache
def document() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(PATH.read_text())
    return described


@dataclass(frozen=True)
class Described:
    """One operation of the document, and where it stands."""

    path: str
    method: str
    content: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def pointer(self) -> str:
        return f"#/paths/{_escaped(self.path)}/{self.method}"

    def responses(self) -> dict[int, dict[str, Any]]:
        return {int(status): resolve(response) for status, response in self.content["responses"].items()}


@cache
def operations_described() -> list[Described]:
    return [
        Described(path, method, item[method])
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item
    ]


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """The thing itself where this is a reference to it. Raises KeyError where the reference leads nowhere."""
    while "$ref" in part:
        found = document()
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name.replace("~1", "/").replace("~0", "~")]
        part = found
    return part


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")


@cache
def _registry() -> Registry[Any]:
    return Registry().with_resource(_BASE, Resource.from_contents(document(), default_specification=DRAFT202012))


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    """What a schema of the document says against a value."""
    # The references in it are read as those of the document.
    rooted = json.loads(json.dumps(schema).replace('"$ref": "#', f'"$ref": "{_BASE}#'))
    validator = Draft202012Validator(rooted, registry=_registry(), format_checker=_FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def parts(value: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within a part of the document, with its place. What examples hold is no part of it."""
    if isinstance(value, list):
        for position, part in enumerate(value):
            yield from parts(part, f"{at}/{position}")
    elif isinstance(value, dict):
        yield at, value
        for name, part in value.items():
            if name not in {"example", "examples", "value", "const", "enum", "default"}:
                yield from parts(part, f"{at}/{name}")
