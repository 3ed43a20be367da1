"""JSON as RFC 8259 has it and nothing looser, so that what is stored can be read back by anyone.

Refused beyond the grammar: duplicate keys, NaN and Infinity (also by overflow, as 1e400), lone surrogates, NUL,
invalid UTF-8, a byte order mark, nesting past 64 levels, and integers of more than 1,000 digits.
"""

import json
import math
import re
from typing import Any

MAX_DEPTH = 64
_MAX_DIGITS = 1_000


class InvalidJson(ValueError):
    """The text is not acceptable JSON; the message is public."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise InvalidJson("an object has the same key twice")
    return out


def _constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidJson("a number is out of range")
    return value


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise InvalidJson("a number has too many digits")
    return int(text)


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidJson("a string contains NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("a string contains half of a surrogate pair") from None


def _check_strings(value: Any) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for entry in value:
            _check_strings(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            _check_text(key)
            _check_strings(entry)


_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]')


def _check_depth(body: bytes) -> None:
    # A cheap bound first: bodies with few brackets, strings' own included, need no walk.
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKENS.finditer(body):
        mark = token[0]
        if mark in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise InvalidJson(f"nesting is deeper than {MAX_DEPTH} levels")
        elif mark in (b"]", b"}"):
            depth -= 1


def loads(body: bytes) -> Any:
    """The value. Raises InvalidJson."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidJson("the body is not valid UTF-8") from None
    _check_depth(body)
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at character {error.pos}") from None
    if b"\\u" in body or b"\\U" in body:  # a raw surrogate fails to decode, a raw NUL to parse: only escapes remain
        _check_strings(value)
    return value
