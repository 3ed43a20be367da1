"""A strict parser for RFC 8259 JSON, so that any parser can read what is stored.

In addition to syntax errors, it rejects duplicate keys, NaN and Infinity (also by overflow, such as 1e400), lone
surrogates, NUL, invalid UTF-8, a byte order mark, more than 64 levels of nesting, integers with more than 1,000 digits,
objects with more than 10,000 keys, and more than 50,000 opening brackets and braces, including those inside strings.
Parsing takes linear time, also for bodies that are rejected.
"""

import codecs
import json
import math
from typing import Any

MAX_DEPTH = 64
_MAX_DIGITS = 1_000
# Of a key in a message.
_SHOWN_LENGTH = 50
# No operation needs a hundredth of either. Parsing an empty object takes as long as 40 characters of text.
MAX_KEYS = 10_000
MAX_OPENINGS = 50_000


class InvalidJson(ValueError):
    """The text is not acceptable JSON; the message is public."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise InvalidJson(f"an object has more than {MAX_KEYS:,} keys")
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidJson(f"an object has the key {_shown(twice)} twice")
    return out


def _shown(name: str) -> str:
    """Returns the start of a name, quoted and in ASCII."""
    return json.dumps(name[:_SHOWN_LENGTH])


def _constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number. Send null, or leave the field out")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidJson("a number is larger than 1.8e308, which most programs can't read")
    return value


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise InvalidJson(f"a number has more than {_MAX_DIGITS:,} digits")
    return int(text)


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidJson("a string contains the character NUL. Remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("a string contains half of a surrogate pair, as if an emoji had been cut in two") from None


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


def _check_depth(value: Any) -> None:
    # Traversed level by level, without recursion, visiting each value once.
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            entry
            for holder in level
            for entry in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(entry, (dict, list))
        ]
    if level:
        raise _too_deep()


def _too_deep() -> InvalidJson:
    return InvalidJson(f"nesting is deeper than {MAX_DEPTH} levels")


def loads(body: bytes) -> Any:
    """Returns the parsed value. Raises InvalidJson."""
    if body.startswith(codecs.BOM_UTF8):
        raise InvalidJson("it begins with a byte order mark. Save it as UTF-8 without one")
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidJson("it is in UTF-16. Save it as UTF-8")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidJson("it is not valid UTF-8") from None
    openings = body.count(b"[") + body.count(b"{")
    if openings > MAX_OPENINGS:
        raise InvalidJson(f"it has more than {MAX_OPENINGS:,} opening brackets and braces")
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        found = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
        raise InvalidJson(f"{found} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    if openings > MAX_DEPTH:
        _check_depth(value)
    if b"\\u" in body:  # raw surrogates and NUL were rejected above; only escapes remain
        _check_strings(value)
    return value
