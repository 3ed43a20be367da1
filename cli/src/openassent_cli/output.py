"""Results: for people as tables and short texts, for programs as JSON."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from openassent_cli.invocation import console, in_terminal, invocation, note
from openassent_cli.printable import printable, printable_line

if TYPE_CHECKING:
    from rich.text import Text

Item = TypeVar("Item")

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_STYLES = {"P0": "bold white on red", "P1": "bold red", "P2": "bold yellow", "P3": "bold blue"}


def plain(value: object) -> object:
    """Returns a value as the API's JSON has it: without fields that it doesn't have, and with its form of times."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(by_alias=True, exclude_unset=True))
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


@contextmanager
def written_to(path: Path | None) -> Iterator[None]:
    """Writes what is printed on standard output to a file instead, if there is a path."""
    with path.open("w", encoding="utf-8") if path else nullcontext(sys.stdout) as file, redirect_stdout(file):
        yield


def print_json(value: object) -> None:
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def show_list(
    items: Iterable[Item],
    columns: Mapping[str, str | Callable[[Item], object]],
    *,
    limit: int | None = None,
    empty: str,
) -> None:
    """Prints items, or the first of them, as a table or as a JSON array. Says so if there are more.

    columns: by title, the path of an attribute, or a function of the item.

    Unless standard output is a terminal, each item is one line without a header, and its columns end with a tab.
    """
    found = list(islice(items, None if limit is None else limit + 1))
    shown = found[:limit]
    if invocation().json:
        print_json(shown)
    elif not shown:
        note(empty)
    else:
        values = [attrgetter(it) if isinstance(it, str) else it for it in columns.values()]
        _print_rows([*columns], [[value(item) for value in values] for item in shown])
    if len(found) > len(shown):
        note(f"Only the first {limit} are shown. Use --limit to see more.")


def show(item: object, facts: Sequence[tuple[str, object]]) -> None:
    """Prints one thing as JSON, or the facts about it, one on each line. Facts that are None are left out."""
    if invocation().json:
        print_json(item)
        return
    known = [(title, value) for title, value in facts if value is not None]
    if not in_terminal():
        for title, value in known:
            typer.echo(f"{title}:\t{_field(value)}")
        return
    from rich.table import Table  # noqa: PLC0415 (takes long to import, and only a terminal needs it)
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for title, value in known:
        lines = value if isinstance(value, list | tuple) else [value]
        table.add_row(title, Text("\n".join(map(cell, lines))))
    console().print(table)


def _print_rows(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if not in_terminal():
        for row in rows:
            typer.echo("\t".join(map(_field, row)))
        return
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in titles:
        # An ID is to be copied, so it is in one piece.
        table.add_column(title, overflow="fold", no_wrap=title == "ID")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console().print(table)


def done(item: object, message: str) -> None:
    """Prints the result of a change: the response as JSON, or a sentence."""
    if invocation().json:
        print_json(item)
    else:
        note(message)


def show_secret(secret: str | None, *, dry_run: bool) -> None:
    """Prints a new secret on standard output, unless it doesn't exist, or the JSON of `done` has shown it."""
    if not dry_run and not invocation().json:
        note("Store the secret now: it can't be shown again.")
        typer.echo(secret)


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: `1 website`, `1,200 websites`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def by_priority(priorities: Iterable[str]) -> str:
    """Returns how many there are of each priority: `1 P1, 2 P3`."""
    return ", ".join(f"{number} {priority}" for priority, number in sorted(Counter(priorities).items()))


def heading(priority: str, title: str) -> "Text":
    """Returns the first line of a finding."""
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble((f" {priority} ", _STYLES.get(priority, "bold")), " ", (printable_line(title), "bold"))


def cell(value: object) -> str:
    """Returns a value as one line for people. Text from the service can't control the terminal."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return ago(value)
    if isinstance(value, list | tuple):
        return ", ".join(cell(part) for part in value)
    return printable_line(str(value))


def _field(value: object) -> str:
    """Returns a value as one line for programs."""
    return str(plain(value)) if isinstance(value, datetime) else cell(value)


def ago(moment: datetime | str | None) -> str:
    """Returns a time as people say it: `5 minutes ago`, `in 3 hours`, or the date if it is more than 30 days away."""
    if moment is None:
        return "never"
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (datetime.now(UTC) - moment).total_seconds()
    distance = abs(seconds)
    if distance < _MINUTE:
        return "just now" if seconds >= 0 else "in less than a minute"
    if distance > 30 * _DAY:
        return moment.date().isoformat()
    units = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"))
    unit, name = next(it for it in units if distance >= it[0])
    text = counted(int(distance // unit), name)
    return f"{text} ago" if seconds > 0 else f"in {text}"


def print_text(text: "Text", *, indent: int = 0, above: int = 0) -> None:
    """Prints text with space before it. Only a terminal gets it wrapped to its width."""
    if in_terminal():
        from rich.padding import Padding  # noqa: PLC0415

        console().print(Padding(text, (above, 0, 0, indent)))
        return
    for line in [""] * above + text.plain.split("\n"):
        typer.echo(f"{' ' * indent}{line}" if line else "")


def _highlighted(code: str, language: str) -> "Text":
    if not in_terminal():
        from rich.text import Text  # noqa: PLC0415

        return Text(code.expandtabs(4))
    from rich.syntax import Syntax  # noqa: PLC0415 (takes long to import, and only a terminal needs it)

    return Syntax("", language, theme="ansi_dark").highlight(code)


def print_code(
    code: str, language: str, first_line: int | None = None, *, indent: int = 2, marked: range = range(0)
) -> None:
    """Prints code in its colors, with line numbers if the first one is known.

    marked: the numbers of the lines to mark among the others.
    """
    from rich.text import Text  # noqa: PLC0415

    highlighted = _highlighted(printable(code), language)
    highlighted.rstrip()
    lines = highlighted.split("\n", allow_blank=True)
    width = len(str((first_line or 0) + len(lines)))
    for number, line in enumerate(lines, first_line or 0):
        label = "" if first_line is None else f"{number:>{width}}  "
        mark = ("> " if number in marked else "  ") if marked else ""
        print_text(Text.assemble((mark, "bold"), (label, "dim"), line), indent=indent)
