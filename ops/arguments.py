"""Arguments that several commands share, and their validation."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated

import typer

_LIFE = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_FULL_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})/((?!\.\.?$)[A-Za-z0-9._-]{1,100})")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_LIFE_SECONDS = 3650 * 86_400


def one_of(values: Iterable[str]) -> Callable[[str], str]:
    """Returns a parser that accepts these values. It raises BadParameter, which becomes exit code 2."""
    known = tuple(values)

    def parse(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(known)}.")
        return text

    return parse


def parse_life(text: str) -> int:
    """Converts 90s, 30m, 1h, or 7d to seconds. Raises BadParameter."""
    match = _LIFE.fullmatch(text)
    if match is None:
        raise typer.BadParameter("Use a number followed by s, m, h, or d, for example 1h.")
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > MAX_LIFE_SECONDS:
        raise typer.BadParameter("The maximum lifetime is 3650d.")
    return seconds


def parse_moment(text: str) -> datetime:
    """Parses a time with its zone. Raises BadParameter."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter("Write the time like this: 2026-03-04T05:06:07Z.")
    return moment


def parse_full_name(text: str) -> str:
    """Accepts the full name of a repository. Raises BadParameter."""
    if not _FULL_NAME.fullmatch(text):
        raise typer.BadParameter("Write OWNER/NAME, for example acme/shop.")
    return text


def new_group(about: str) -> typer.Typer:
    """Returns a group of commands with this help. A command returns a `Result`."""
    return typer.Typer(
        help=about, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )


User = Annotated[str, typer.Argument(metavar="USER", help="Email address or user id.")]
Organization = Annotated[str, typer.Argument(metavar="ORGANIZATION", help="Slug or organization id.")]
Project = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="prj_…")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
