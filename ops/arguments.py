"""Arguments that several commands share, and their validation."""

import re
from typing import Annotated

import typer

_LIFE = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_LIFE_SECONDS = 3650 * 86_400


def parse_life(text: str) -> int:
    """Converts 90s, 30m, 1h, or 7d to seconds. Raises BadParameter, which becomes exit code 2."""
    match = _LIFE.fullmatch(text)
    if match is None:
        raise typer.BadParameter("Use a number followed by s, m, h, or d, for example 1h.")
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > MAX_LIFE_SECONDS:
        raise typer.BadParameter("The maximum lifetime is 3650d.")
    return seconds


def parse_name(text: str) -> str:
    """Validates a name as the API does: 1 to 100 characters without control characters. Raises BadParameter."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 (slow to import, and not needed for --help)

    from controlplane.core.naming import Name as ServiceName  # noqa: PLC0415

    try:
        return TypeAdapter(ServiceName).validate_python(text)
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"]) from None


User = Annotated[str, typer.Argument(metavar="USER", help="Email address or user id.")]
Organization = Annotated[str, typer.Argument(metavar="ORGANIZATION", help="Slug or organization id.")]
Name = Annotated[str, typer.Option("--name", help="The display name.", parser=parse_name)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
