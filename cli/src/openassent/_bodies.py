"""Reads JSON of a service that may be another one, or hostile."""

import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

# Ten times what the API has. Python, pydantic, and programs that walk through a value have limits of their own.
_DEEPEST = 100
# Others can't be added to a time.
_LONGEST_INTEGER = 16


def json_of(content: bytes, *, without: str = "") -> Any:
    """Returns the value of a JSON text, or None if it is invalid, is nested too deeply, or has a huge number.

    without: a credential that is replaced.
    """
    if without:
        content = content.replace(without.encode(), b"[credential]")
    try:
        value = json.loads(content, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    return None if _is_deep(value) else value


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError
    return int(digits)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for it in level
            if isinstance(it, list | dict)
            for part in (it.values() if isinstance(it, dict) else it)
        ]
    return bool(level)


def seconds_of(value: str | None) -> float | None:
    """Returns the seconds of a Retry-After header (RFC 9110, section 10.2.3), or None if it is missing or invalid."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def warnings_of(envelope: dict[str, Any]) -> list[str]:
    """Returns the fields of the request that the service ignored, each with what is wrong with it."""
    listed = envelope.get("warnings")
    warnings = [it for it in listed if isinstance(it, dict)] if isinstance(listed, list) else []
    return [f"{_place(it.get('path'))}: {it.get('message')}" for it in warnings]


def _place(path: object) -> str:
    return ".".join(map(str, path)) if path and isinstance(path, list) else "body"
