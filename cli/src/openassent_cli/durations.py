"""Durations as people write them: 90d, 12h, 30m."""

import re
from datetime import UTC, datetime, timedelta

import typer

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
