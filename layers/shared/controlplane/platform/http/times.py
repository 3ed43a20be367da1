"""Times in queries: RFC 3339 with a time zone."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


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
