"""Types of fields that several responses have, each with its description, format, and example.

A field of such a type can override any of them: `created_at: Timestamp = Field(description="…")`.
"""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

_TIME = Field(json_schema_extra={"format": "date-time"}, examples=["2026-03-04T05:06:07.000Z"])
_URL = Field(json_schema_extra={"format": "uri"})


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 2000 <= moment.year < 3000:
        raise PydanticCustomError("invalid_time", "This is not a time with a date and a time zone.")
    return text


# A time in a request.
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(_time)]
Timestamp = Annotated[str, _TIME]
OptionalTimestamp = Annotated[str | None, _TIME]
Url = Annotated[str, _URL]
OptionalUrl = Annotated[str | None, _URL]

OrganizationId = Annotated[str, Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])]
OrganizationSlug = Annotated[str, Field(description="The organization's name used in URLs.", examples=["acme"])]
ProjectId = Annotated[str, Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])]
VendorId = Annotated[str, Field(description="The vendor's ID.", examples=["segment"])]
