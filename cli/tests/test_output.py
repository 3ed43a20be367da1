import io
from datetime import UTC, datetime, timedelta

import pytest
import typer

from openassent_cli.commands.api import field_value
from openassent_cli.commands.shared import Duration, confirm
from openassent_cli.output import ago, cell
from openassent_cli.printable import printable
from tests.support.each import each


class TestText:
    def test_text_from_elsewhere_cant_control_the_terminal(self):
        assert printable("a\x1b[31mb\x07c\r") == "a�[31mb�c�"
        assert printable("two\nlines\tand é 🎉") == "two\nlines\tand é 🎉"

    def test_a_cell_is_one_line(self):
        assert cell("two\n\tlines\x1b[2J") == "two lines\ufffd[2J"

    @each(("value", "shown"), [(None, ""), (True, "yes"), (False, "no"), (["a", "b"], "a, b"), (3, "3")])
    def test_values_are_shown_as_words(self, value, shown):
        assert cell(value) == shown


@each(
    ("text", "value"),
    [
        ("true", True),
        ("5", 5),
        ('["a"]', ["a"]),
        ("Shop", "Shop"),
        *((it, it) for it in ("NaN", "1e999", "[" * 9_999)),
    ],
)
def test_a_field_is_json_or_a_string(text, value):
    assert field_value(text) == value


class TestConfirmation:
    @pytest.fixture
    def terminal(self, monkeypatch):
        """A terminal, in which the person has typed what the test writes to it."""
        typed = io.StringIO()
        monkeypatch.setattr(typed, "isatty", lambda: True)
        monkeypatch.setattr("typer.get_text_stream", lambda _: typed)
        monkeypatch.setattr("sys.stdin", typed)
        return typed

    @each("answer", ["n", ""])
    def test_no_ends_the_command(self, answer, terminal):
        terminal.write(f"{answer}\n")
        terminal.seek(0)
        with pytest.raises(typer.Abort):
            confirm("Delete it?", yes=False)


class TestTimes:
    @each(
        ("seconds", "shown"),
        [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago"), (-7_300, "in 2 hours")],
    )
    def test_a_recent_time_is_relative(self, seconds, shown):
        assert ago(datetime.now(UTC) - timedelta(seconds=seconds)) == shown

    def test_a_distant_time_is_a_date(self):
        assert ago(datetime(2024, 2, 29, 23, 59, tzinfo=UTC)) == "2024-02-29"

    def test_a_missing_time_is_never(self):
        assert ago(None) == "never"


class TestDurations:
    @each(("text", "seconds"), [("30s", 30), ("5m", 300), ("12h", 43_200), ("90d", 7_776_000), ("1W", 604_800)])
    def test_a_duration_is_a_number_and_a_unit(self, text, seconds):
        assert Duration(text).seconds == seconds

    @each("text", ["", "5", "d", "-1d", "1.5h", "1d2h", "9999999d", "٣d"])
    def test_an_invalid_duration_is_refused(self, text):
        with pytest.raises(typer.BadParameter):
            Duration(text)
