"""Parts that commands share: their Typer groups, common options, and questions. Only these ask in the terminal."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from openassent_cli.help import MORE, PlainCommand, PlainGroup
from openassent_cli.invocation import command
from openassent_cli.printable import printable_line
from openassent_cli.problems import Exit, Problem

Limit = Annotated[int, typer.Option("--limit", "-L", min=1, help="How many to list at most.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the change, but don't make it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]

Excluded = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Leave out these files. Can be repeated.")
]
Included = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="GLOB",
        help="Also read these files, although they look like tests, demos, copies, or build output. Can be repeated.",
    ),
]
OnlyRules = Annotated[
    list[str] | None, typer.Option("--rule", metavar="ID", help="Only findings of this rule. Can be repeated.")
]

DEFAULT_LIMIT = 50


class Priority(StrEnum):
    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class Group(typer.Typer):
    """A group of commands. Each of them has the options of every command."""

    def __init__(self, cls: type[PlainGroup] = PlainGroup, **options: Any) -> None:
        super().__init__(cls=cls, **options, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

    def add(self, name: str, *examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Adds a command. Returns the function unchanged. examples: command lines that its help shows."""
        lines = "".join(f"\n  {it}" for it in examples)
        epilog = f"\b\nExamples:{lines}\n\n{MORE}" if examples else MORE
        register = self.command(name, cls=PlainCommand, epilog=epilog)

        def added(function: Callable[..., None]) -> Callable[..., None]:
            register(command(function))
            return function

        return added


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something is lost. Raises Problem if the command has no terminal, and Abort if the answer is no."""
    if yes:
        return
    _require_terminal("a confirmation", "--yes")
    typer.confirm(printable_line(question), abort=True, err=True)


def ask(what: str, option: str) -> str:
    """Asks for a value that no option gave. Raises Problem, which names the option, without a terminal."""
    _require_terminal(what, option)
    answer: str = typer.prompt(f"Enter {what}", err=True)
    return answer


def _require_terminal(what: str, option: str) -> None:
    if not typer.get_text_stream("stdin").isatty():
        raise Problem(f"This needs {what}.", f"Give {option}.", Exit.USAGE)


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TEXT = re.compile(r"([0-9]{1,6})([smhdw])\Z")


class Duration:
    """A number of seconds, written as a whole number and a unit."""

    def __init__(self, text: str) -> None:
        match = _TEXT.match(text.strip().lower())
        if match is None:
            raise typer.BadParameter(f"{text!r} isn't a duration. Examples: 30m, 12h, 90d.")
        self.seconds = int(match[1]) * _UNITS[match[2]]

    def ago(self) -> datetime:
        """Returns the time this long ago."""
        return datetime.now(UTC) - timedelta(seconds=self.seconds)

    def from_now(self) -> datetime:
        """Returns the time when this has passed."""
        return datetime.now(UTC) + timedelta(seconds=self.seconds)
