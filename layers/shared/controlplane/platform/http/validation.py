"""Converts pydantic's validation errors to the problems that clients receive, in plain words.

A problem never contains the value that was sent, which may be a secret.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from controlplane.platform.core.errors import InvalidPayload, Problems, did_you_mean, problem

# In words, by pattern.
_PATTERNS: dict[str, str] = {}

# The number of problems whose unknown field is compared with the known ones.
_COMPARED = 5
# In pydantic's list of expected values.
_QUOTED = re.compile(r"'([^']*)'")
_PLACES = frozenset({"body", "query", "path", "header"})
_OBJECTS = ("dict_type", "model_attributes_type", "model_type")
# By pydantic's type of error. Other types, such as those of our own validators, keep their text.
_TEXTS = {
    "bool_type": "Must be true or false",
    "extra_forbidden": "Unknown field",
    "greater_than_equal": "Must be at least {ge}",
    "int_parsing": "Must be a whole number",
    "int_type": "Must be a whole number",
    "less_than_equal": "Must be at most {le}",
    "list_type": "Must be a list",
    "literal_error": "Must be {expected}",
    "missing": "Field required",
    "string_pattern_mismatch": "Must match {pattern}",
    "string_too_long": "Must have at most {max_length} {characters}",
    "string_too_short": "Must have at least {min_length} {characters}",
    "string_type": "Must be a string",
    "too_long": "Must have at most {max_length} {items}",
    "too_short": "Must have at least {min_length} {items}",
    "value_error": "{error}",
    **dict.fromkeys(_OBJECTS, "Must be an object"),
}


def described(pattern: str, text: str) -> str:
    """Returns the pattern of a field. A problem has the text in its place."""
    _PATTERNS[pattern] = text
    return pattern


def to_problems(errors: Any, fields: Collection[str] = ()) -> Problems:
    """Returns the problems of `ValidationError.errors()`: code, message, and path of field names.

    fields: those of the body, of which an unknown field may be a misspelling.
    """
    return [_problem(error, fields, place) for place, error in enumerate(errors)]


def checked[T](check: Callable[[str], T]) -> AfterValidator:
    """Returns a validator that converts a text, and reports the problem of the InvalidPayload that `check` raises."""

    def convert(text: str) -> T:
        try:
            return check(text)
        except InvalidPayload as error:
            (found,) = error.details
            raise PydanticCustomError(found["code"], "{message}", {"message": found["message"]}) from None

    return AfterValidator(convert)


def suggest(message: str, word: str, names: Iterable[str], place: int) -> str:
    """Returns the message with the name that was probably meant. place: the problem's, among those of the request."""
    # A body can have thousands of unknown fields, and each comparison takes time.
    meant = did_you_mean(word, names) if place < _COMPARED else ""
    return f"{message}.{meant}" if meant else message


def _problem(error: dict[str, Any], fields: Collection[str], place: int) -> dict[str, Any]:
    location = error["loc"]
    path = [str(name) for name in (location[1:] if location[:1] and location[0] in _PLACES else location)]
    message = _describe(error, has_field=bool(path))
    if error["type"] == "extra_forbidden" and len(path) == 1:
        message = suggest(message, path[0], fields, place)
    elif error["type"] == "literal_error" and isinstance(error["input"], str):
        message = suggest(message, error["input"], _QUOTED.findall(error["ctx"]["expected"]), place)
    return problem(path, message, error["type"])


def _describe(error: dict[str, Any], *, has_field: bool) -> str:
    kind, values = error["type"], error.get("ctx", {})
    if kind == "missing" and not has_field:
        return "A body is required. Send a JSON object."
    if kind in _OBJECTS and not has_field:
        return "The body must be a JSON object."
    if kind == "string_pattern_mismatch" and values["pattern"] in _PATTERNS:
        return _PATTERNS[values["pattern"]]
    if kind not in _TEXTS:
        return str(error["msg"])
    plural = "" if values.get("min_length", values.get("max_length")) == 1 else "s"
    return _TEXTS[kind].format(**values, characters=f"character{plural}", items=f"item{plural}")
