"""Types of fields that several requests or responses share, each with its description, format, and example.

A field of such a type can override any of them: `created_at: Timestamp = Field(description="…")`.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from controlplane.platform.http.envelope import Wire


def _without_zero_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# JSON has one type of number, in which 5.0 is the whole number 5. A text or a boolean isn't a number.
WholeNumber = Annotated[int, Field(strict=True), BeforeValidator(_without_zero_fraction)]

_TIME = Field(json_schema_extra={"format": "date-time"})
_URL = Field(json_schema_extra={"format": "uri"})

Timestamp = Annotated[str, _TIME]
OptionalTimestamp = Annotated[str | None, _TIME]
Url = Annotated[str, _URL]
OptionalUrl = Annotated[str | None, _URL]

OrganizationId = Annotated[str, Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])]
OrganizationSlug = Annotated[str, Field(description="The organization's name used in URLs.", examples=["acme"])]
ProjectId = Annotated[str, Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])]
VendorId = Annotated[str, Field(description="The vendor's ID.", examples=["segment"])]


class Reason(Wire):
    """The reason for a failure."""

    code: str = Field(description="The error code, for use in programs.", examples=["ARCHIVE_TOO_LARGE"])
    message: str = Field(
        description="The explanation, for people.", examples=["The repository is larger than a scan reads."]
    )


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _time(text: str) -> str:
    moment = _read(text)
    if moment is None and _read(text.replace(" ", "+")) is not None:
        raise _invalid("Write the + of the time zone as %2B, or send UTC, such as 2026-03-04T05:06:07Z.")
    if moment is None or moment.tzinfo is None:
        raise _invalid("Send a date and a time with its time zone, such as 2026-03-04T05:06:07Z.")
    if not 2000 <= moment.year < 3000:
        raise _invalid("Send a time from the years 2000 to 2999.")
    return text


def _invalid(advice: str) -> PydanticCustomError:
    return PydanticCustomError("invalid_time", advice)


Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(_time)]


def to_seconds(text: str | None) -> float | None:
    """Returns the Unix time of a `Time`, or None without one."""
    return datetime.fromisoformat(text).timestamp() if text is not None else None


def to_timestamp(text: str | None) -> str | None:
    """Returns a `Time` in the format of `clock.timestamp`, rounded up to milliseconds, or None without one."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text).astimezone(UTC)
    moment += timedelta(microseconds=-moment.microsecond % 1000)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
