"""Times in queries: RFC 3339 with a time zone."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 2000 <= moment.year < 3000:
        raise PydanticCustomError("invalid_time", "This is not a time with a date and a time zone.")
    return text


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
