import io
from datetime import UTC, datetime, timedelta

import pytest
import typer

from openassent_cli.commands.api import field_value
from openassent_cli.commands.shared import Duration, confirm
from openassent_cli.output import ago, cell
from openassent_cli.printable import printable
from tests.support.each import each

DURATIONS = {"30s": 30, "5m": 300, "12h": 43_200, "90d": 7_776_000, "1W": 604_800}

# Seconds from now.
AGES = {-5: "just now", -60: "1 minute ago", -7_300: "2 hours ago", -90_000: "1 day ago", 7_500: "in 2 hours"}


def after(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@each(
    ("show", "value", "shown"),
    [
        (printable, "a\x1b[31mb\x07c\r", "a�[31mb�c�"),
        (printable, "two\nlines\tand é 🎉", "two\nlines\tand é 🎉"),
        (cell, "two\n\tlines\x1b[2J", "two lines\ufffd[2J"),
        *((cell, *pair) for pair in ((None, ""), (True, "yes"), (False, "no"), (["a", "b"], "a, b"), (3, "3"))),
        *((lambda it: ago(after(it)), *pair) for pair in AGES.items()),
        (ago, datetime(2024, 2, 29, 23, 59, tzinfo=UTC), "2024-02-29"),
        (ago, None, "never"),
        *((field_value, *pair) for pair in (("true", True), ("5", 5), ('["a"]', ["a"]), ("Shop", "Shop"))),
        *((field_value, it, it) for it in ("NaN", "1e999", "[" * 9_999)),
        *((lambda it: Duration(it).seconds, *pair) for pair in DURATIONS.items()),
    ],
)
def test_a_value_is_shown_in_words_on_one_line_and_read_as_people_write_it(show, value, shown):
    assert show(value) == shown


@each("text", ["", "5", "d", "-1d", "1.5h", "1d2h", "9999999d", "٣d"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(typer.BadParameter):
        Duration(text)


@each("answer", ["n", ""])
def test_no_ends_the_command(answer, monkeypatch):
    typed = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("typer.get_text_stream", lambda _: typed)
    monkeypatch.setattr("sys.stdin", typed)
    with pytest.raises(typer.Abort):
        confirm("Delete it?", yes=False)
