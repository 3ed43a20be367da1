"""Compares a JSON body with the operation's model: unknown fields, fields that don't go together, and empty changes.

pydantic doesn't report these for fields that it ignores, nor along with other problems. This only reads names, so it
runs before validation, and one response has all problems.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args

from pydantic.alias_generators import to_camel

from controlplane.platform.core.errors import Problems, problem
from controlplane.platform.http.deprecations import Deprecation, used_in
from controlplane.platform.http.envelope import Changes, Wire
from controlplane.platform.http.validation import suggest


class _Field(NamedTuple):
    """A field's name in Python, and the model in it, if there is one."""

    name: str
    model: type[Wire] | None


def model_in(annotation: Any) -> type[Wire] | None:
    """Returns the model of a body or field: its type, or that of a list's entries or of an optional value."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Wire)), None)


def field_names(model: type[Wire]) -> list[str]:
    """Returns the names of the fields in JSON. A model that hasn't been built yet doesn't have their aliases."""
    return [field.alias or to_camel(name) for name, field in model.model_fields.items()]


class Comparison(NamedTuple):
    """The problems of the body as a whole, the unknown fields, which are ignored, and the deprecations of the others.

    The unknown fields of a change that has no others are problems.
    """

    problems: Problems
    unknown: Problems
    deprecated: list[Deprecation]


def compare(model: type[Wire], content: Any) -> Comparison:
    unknown = _find_unknown(model, content)
    if not isinstance(content, dict):
        return Comparison([], unknown, [])
    given = _given(model, content)
    problems, deprecated = model.contradictions(given), [*used_in(model, given)]
    if issubclass(model, Changes) and _is_void(model, content):
        return Comparison(problems + _find_empty(model, content) + unknown, [], deprecated)
    return Comparison(problems, unknown, deprecated)


@cache
def _fields(model: type[Wire]) -> dict[str, _Field]:
    """Returns the fields by each name that a body can have for them."""
    fields = [_Field(name, model_in(field.annotation)) for name, field in model.model_fields.items()]
    return {it.name: it for it in fields} | dict(zip(field_names(model), fields, strict=True))


def _find_unknown(model: type[Wire], content: Any) -> Problems:
    """Returns a problem for each unknown field, except for those that pydantic rejects."""
    return [
        problem(path, suggest("Unknown field", path[-1], known, place), "unknown_field")
        for place, (path, known) in enumerate(_list_unknown(model, content, []))
    ]


def _list_unknown(model: type[Wire], content: Any, path: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the path of each unknown field, and the names that are known there."""
    if isinstance(content, list):
        for place, entry in enumerate(content):
            yield from _list_unknown(model, entry, [*path, str(place)])
    elif isinstance(content, dict) and model.model_config.get("extra") != "forbid":
        fields = _fields(model)
        for name, value in content.items():
            if name not in fields:
                yield [*path, name], field_names(model)
            elif (inner := fields[name].model) is not None:
                yield from _list_unknown(inner, value, [*path, name])


def _given(model: type[Wire], content: dict[str, Any]) -> dict[str, Any]:
    """Returns the known fields by their Python names, also within models."""
    fields = _fields(model)
    return {
        fields[name].name: _given(inner, value) if (inner := fields[name].model) and isinstance(value, dict) else value
        for name, value in content.items()
        if name in fields
    }


def _find_empty(model: type[Wire], content: dict[str, Any]) -> Problems:
    """Returns the problem of a void change that has no field at all, or of its parts that have none."""
    blank = [name for name, value in content.items() if value == {} and name in _fields(model)]
    if len(blank) == len(content):
        return [_nothing([])]
    parts = ((name, _fields(model)[name].model) for name in blank)
    return [_nothing([name]) for name, part in parts if part is not None and issubclass(part, Changes)]


def _nothing(path: list[str]) -> dict[str, Any]:
    return problem(path, "Name at least one thing to change.", "empty")


def _is_void(model: type[Wire], content: Any) -> bool:
    """Returns whether an object has no known field, or only parts without any."""
    fields = _fields(model)
    return isinstance(content, dict) and all(
        name not in fields or ((inner := fields[name].model) is not None and _is_void(inner, value))
        for name, value in content.items()
    )
