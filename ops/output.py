"""What a command shows: for people with rich, for programs one JSON document on stdout and nothing else.

Whatever comes out of the table was written by strangers: a terminal must not take it for commands, nor rich for markup.
"""

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ops.errors import Misused, Refused

if TYPE_CHECKING:
    from rich.console import Console

_ANY_WIDTH = 10_000


class Shown(NamedTuple):
    """What a command has to say: the document, and a sentence for people beside it."""

    document: dict[str, Any] | list[dict[str, Any]]
    note: str | None = None


def show(shown: Shown, *, as_json: bool) -> None:
    """Prints the document on stdout; the note goes to people only, on stderr."""
    if as_json:
        print(json.dumps(shown.document, indent=2, ensure_ascii=False))
        return
    if isinstance(shown.document, list):
        _print_table(shown.document)
    else:
        _print_record(shown.document)
    if shown.note:
        print(shown.note, file=sys.stderr)


def show_error(error: Refused, *, as_json: bool) -> None:
    """Prints what failed on stderr."""
    if as_json:
        print(json.dumps({"error": {"code": error.code, "message": str(error)}}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"Error: {_plain(error)}", file=sys.stderr)


def confirm(question: str, *, yes: bool) -> None:
    """Returns where the operator agrees. Raises Misused where nobody can be asked, Refused where the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Misused(f"{question} Nobody is there to ask: give --yes.")
    print(f"{_plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("Nothing was changed.")


def _plain(value: Any) -> str:
    """One line without control characters."""
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
    """One field a line, lists of records as tables below. Lines are never wrapped: secrets are copied from here."""
    from rich.text import Text  # noqa: PLC0415 (slow to import, and JSON needs none of it)

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
    """A row a record; where the terminal is too narrow for whole rows, a block a record."""
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
    """Standard output; where it is no terminal, lines are as long as they are."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=_ANY_WIDTH)


def _is_records(entries: list[Any]) -> bool:
    return all(isinstance(entry, dict) for entry in entries)
