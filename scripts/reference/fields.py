"""Describes schemas in words: the name, type, limits, and children of each field."""

import json
import re
from typing import Any

from scripts.reference.document import Field, Variant
from scripts.reference.samples import Samples

_FORMATS = {"date-time": "RFC 3339 time", "uri": "URI", "email": "email address"}
# Longer patterns are left to the OpenAPI document.
_LONGEST_PATTERN = 50


class Fields:
    """Reads the schemas of one document."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def shapes(self, schema: dict[str, Any]) -> list[Variant]:
        """The shapes of an object, or of the items of a list, with their fields."""
        node = self._samples.merge(schema)
        if node.get("type") == "array":
            return self.shapes(node.get("items", {}))
        shapes = [shape for shape in self._samples.variants(node) if shape.get("properties")]
        if any(shape.get("type") == "array" for shape in self._samples.variants(node)) and not shapes:
            return [variant for shape in self._samples.variants(node) for variant in self.shapes(shape)]
        several = len(shapes) > 1
        return [
            Variant(
                title_in_words(shape.get("title", "")) if several else "",
                shape.get("description", ""),
                self._fields(shape),
            )
            for shape in shapes
        ]

    def _fields(self, node: dict[str, Any], ancestors: tuple[str, ...] = ()) -> list[Field]:
        required = node.get("required", [])
        return [
            self.read(name, child, required=name in required, ancestors=ancestors)
            for name, child in node.get("properties", {}).items()
        ]

    def read(self, name: str, schema: dict[str, Any], *, required: bool, ancestors: tuple[str, ...] = ()) -> Field:
        """The field in words, with the fields inside it."""
        node = self._samples.merge(schema)
        (only, *others) = self._samples.variants(node)
        read = Field(
            name,
            self.type_of(schema),
            required,
            node.get("description") or only.get("description", ""),
            node.get("deprecated", False),
            self._facts(node),
        )
        inner = self._samples.merge(only.get("items", {})) if only.get("type") == "array" else only
        title = inner.get("title", "")
        if title and title in ancestors:
            return read
        deeper = (*ancestors, title)
        if others and inner.get("properties"):
            read.variants = [
                Variant(
                    title_in_words(shape.get("title", "")), shape.get("description", ""), self._fields(shape, deeper)
                )
                for shape in (only, *others)
            ]
        elif inner.get("properties"):
            read.children = self._fields(inner, deeper)
        return read

    def type_of(self, schema: dict[str, Any]) -> str:
        """`string`, `array of objects`, `integer or null`."""
        node = self._samples.merge(schema)
        if self._samples.variants(node) != [node]:
            options = [self.type_of(option) for option in node.get("anyOf") or node["oneOf"]]
            return " or ".join(dict.fromkeys(options))
        kinds = node.get("type")
        if isinstance(kinds, list):
            return " or ".join(self.type_of({**node, "type": kind}) for kind in kinds)
        if kinds == "array":
            of = self.type_of(node["items"]) if "items" in node else ""
            return f"array of {of}s" if re.fullmatch(r"[a-z]+", of) else f"array of ({of})" if of else "array"
        if kinds is None:
            return "object" if "properties" in node else _type_of_value(node)
        return str(kinds)

    def _facts(self, node: dict[str, Any]) -> list[str]:
        """Returns the limits of a value in words."""
        facts: list[str] = []
        for one in self._samples.variants(node):
            if one.get("type") == "array":
                facts += _between(one.get("minItems"), one.get("maxItems"), "item")
                if one.get("uniqueItems"):
                    facts.append("no repeated ones")
                facts += [f"each {fact}" for fact in self._facts(self._samples.merge(one.get("items", {})))]
            if "enum" in one:
                facts.append(f"one of {', '.join(_plain(value) for value in one['enum'])}")
            if "const" in one:
                facts.append(f"always {_plain(one['const'])}")
            facts += _between(one.get("minLength"), one.get("maxLength"), "character")
            facts += _between(one.get("minimum"), one.get("maximum"), "")
            if "format" in one:
                facts.append(_FORMATS.get(one["format"], one["format"]))
            if 0 < len(one.get("pattern", "")) <= _LONGEST_PATTERN:
                facts.append(f"matches {_plain(one['pattern'])}")
        if node.get("default") is not None and "const" not in node:
            facts.append(f"{_plain(node['default'])} if omitted")
        return list(dict.fromkeys(facts))


def _plain(value: Any) -> str:
    """A JSON value between backticks."""
    return f"`{json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value}`"


def _type_of_value(node: dict[str, Any]) -> str:
    for value in [*node.get("enum", []), *([node["const"]] if "const" in node else [])]:
        return {str: "string", bool: "boolean", int: "integer", float: "number"}.get(type(value), "")
    return "any value" if node.keys() - {"description", "title"} == set() else ""


def title_in_words(title: str) -> str:
    """`ScanNotStarted` as `Scan not started`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f" {match[1].lower()}", title)


def _between(minimum: int | None, maximum: int | None, unit: str) -> list[str]:
    """`3 to 20 characters`, `at most 512 characters`."""
    number = maximum if maximum is not None else minimum
    noun = f" {unit}{'' if number == 1 else 's'}" if unit else ""
    if minimum is not None and maximum is not None:
        return [f"{minimum:,}{noun}" if minimum == maximum else f"{minimum:,} to {maximum:,}{noun}"]
    if maximum is not None:
        return [f"at most {maximum:,}{noun}"]
    # Readers expect text that isn't empty and numbers that aren't negative.
    return [f"at least {minimum:,}{noun}"] if minimum is not None and minimum > (1 if unit else 0) else []
