"""The output of commands: formatted with rich for people, or one JSON document on stdout for programs.

Values in the table come from untrusted users: they must not act as terminal escape sequences or as rich markup.
"""

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ops.errors import Misused, Refused

if TYPE_CHECKING:
    from rich.console import Console

_ANY_WIDTH = 10_000


class Result(NamedTuple):
    """The result of a command: the document, and a note for people."""

    document: dict[str, Any] | list[dict[str, Any]]
    note: str | None = None


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
    from rich.text import Text  # noqa: PLC0415 (slow to import, and not needed for JSON)

    console = _console()
    inner = {name: value for name, value in record.items() if isinstance(value, list) and value and _is_records(value)}
    width = max((len(name) for name in record if name not in inner), default=0)
    for name, value in record.items():
        if name not in inner:
            console.print(Text.assemble((f"{name:<{width}}  ", "bold"), _plain(value)), soft_wrap=True)
    for name, value in inner.items():
        console.print(Text(f"\n{name}", "bold"))
        _print_table(value)


def _print_table(records: list[dict[str, Any]]) -> None:
    """Prints one row per record or, if the terminal is too narrow for whole rows, one block per record."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = _console()
    if not records:
        console.print("None.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in records[0]:
        table.add_column(name, no_wrap=True)
    for record in records:
        table.add_row(*(Text(_plain(value)) for value in record.values()))
    if console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum <= console.width:
        console.print(table)
        return
    for number, record in enumerate(records):
        if number:
            console.print()
        _print_record(record)


def _console() -> "Console":
    """Returns a console for stdout. If it isn't a terminal, lines aren't wrapped or truncated."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=_ANY_WIDTH)


def _is_records(entries: list[Any]) -> bool:
    return all(isinstance(entry, dict) for entry in entries)
