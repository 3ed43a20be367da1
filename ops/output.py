"""The results and errors of commands: text for people, or one JSON document on stdout for programs.

Each error has an exit code, and a message that tells the operator what to do next.

Values in the table come from untrusted users: they must not act as terminal escape sequences.
"""

import json
import sys
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel


class Refused(Exception):
    """Nothing was changed, or the table was unavailable."""

    exit_code = 1
    code = "REFUSED"


class Misused(Refused):
    """The command line is invalid."""

    exit_code = 2
    code = "USAGE"


class NotFound(Refused):
    """The named resource doesn't exist."""

    exit_code = 3
    code = "NOT_FOUND"


class Conflict(Refused):
    """The request conflicts with the current state."""

    exit_code = 4
    code = "CONFLICT"


class Result(NamedTuple):
    """The result of a command: the document, and a note for people."""

    document: dict[str, Any] | list[dict[str, Any]]
    note: str | None = None


def fields(item: object, *names: str) -> dict[str, Any]:
    """Returns these fields of an item, under their names in JSON."""
    return {to_camel(name): getattr(item, name) for name in names}


def show(result: Result, *, as_json: bool) -> None:
    """Prints the document to stdout and, unless `as_json`, the note to stderr."""
    if as_json:
        print(json.dumps(result.document, indent=2, ensure_ascii=False))
        return
    if isinstance(result.document, list):
        _print_table(result.document)
    else:
        _print_record(result.document)
    if result.note:
        print(result.note, file=sys.stderr)


def show_error(error: Refused, *, as_json: bool) -> None:
    """Prints the error to stderr."""
    if as_json:
        print(json.dumps({"error": {"code": error.code, "message": str(error)}}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"Error: {_plain(error)}", file=sys.stderr)


def confirm(question: str, *, yes: bool) -> None:
    """Returns if the operator agrees. Raises Misused if stdin isn't a terminal, Refused if the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Misused(f"{question} Can't ask for confirmation here: pass --yes.")
    print(f"{_plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("Nothing was changed.")


def _plain(value: Any) -> str:
    """Formats a value as one line without control characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_plain(entry) for entry in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(entry)}" for name, entry in value.items()) or "-"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in str(value))


def _print_record(record: dict[str, Any]) -> None:
    """Prints one field per line, then lists of records as tables. Never wraps lines, so that secrets can be copied."""
    inner = {name: value for name, value in record.items() if isinstance(value, list) and _has_records(value)}
    width = max((len(name) for name in record if name not in inner), default=0)
    for name, value in record.items():
        if name not in inner:
            print(f"{name:<{width}}  {_plain(value)}")
    for name, value in inner.items():
        print(f"\n{name}")
        _print_table(value)


def _print_table(records: list[dict[str, Any]]) -> None:
    """Prints one row per record."""
    if not records:
        print("None.")
        return
    rows = [[*records[0]], *([_plain(value) for value in record.values()] for record in records)]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _has_records(entries: list[Any]) -> bool:
    return bool(entries) and all(isinstance(entry, dict) for entry in entries)
