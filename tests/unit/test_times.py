"""Times in queries: which are accepted, and their other forms."""

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.platform.http.fields import Time, to_seconds, to_timestamp
from tests.support.each import each

TIME: TypeAdapter[str] = TypeAdapter(Time)


@each(
    "text",
    ["2000-01-01T00:00:00Z", "2999-12-31T23:59:59-08:00", "2026-03-04T05:06:07+0100", f"2026-03-04T05:06:07.{0:019}Z"],
)
def test_a_time_has_a_date_and_a_time_zone_and_at_most_40_characters(text):
    assert TIME.validate_python(text) == text


@each(
    ("text", "advice"),
    [
        ("1999-12-31T23:59:59Z", "from the years 2000 to 2999"),
        ("3000-01-01T00:00:00Z", "from the years 2000 to 2999"),
        ("2026-03-04T05:06:07", "with its time zone, such as"),
        ("2026-03-04", "with its time zone, such as"),
        ("yesterday", "with its time zone, such as"),
        ("yesterday evening", "with its time zone, such as"),
        # isoformat() in a URL.
        ("2026-03-04T05:06:07 00:00", "as %2B, or send UTC, such as 2026-03-04T05:06:07Z"),
        ("2026-03-04T05:06:07.123456 01:00", "as %2B, or send UTC, such as 2026-03-04T05:06:07Z"),
        (f"2026-03-04T05:06:07.{0:020}Z", "at most 40 characters"),
    ],
)
def test_anything_else_is_refused_with_advice(text, advice):
    with pytest.raises(ValidationError) as refused:
        TIME.validate_python(text)
    assert advice in str(refused.value)


def test_a_timestamp_is_in_utc_and_rounded_up_to_milliseconds():
    for fraction, rounded in (
        ("", "07.000"),
        (".000001", "07.001"),
        (".001", "07.001"),
        (".5", "07.500"),
        (".999999", "08.000"),
    ):
        assert to_timestamp(f"2026-03-04T06:06:07{fraction}+01:00") == f"2026-03-04T05:06:{rounded}Z"
    assert to_seconds("2026-03-04T06:06:07.5+01:00") == 1_772_600_767.5
    assert (to_timestamp(None), to_seconds(None)) == (None, None)
