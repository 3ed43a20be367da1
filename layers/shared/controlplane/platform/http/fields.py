"""Types of fields that several requests or responses share, each with its description, format, and example.

A field of such a type can override any of them: `created_at: Timestamp = Field(description="…")`.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _without_zero_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# JSON has one type of number, in which 5.0 is the whole number 5. A text or a boolean isn't a number.
WholeNumber = Annotated[int, Field(strict=True), BeforeValidator(_without_zero_fraction)]

_TIME = Field(json_schema_extra={"format": "date-time"}, examples=["2026-03-04T05:06:07.000Z"])
_URL = Field(json_schema_extra={"format": "uri"})

Timestamp = Annotated[str, _TIME]
OptionalTimestamp = Annotated[str | None, _TIME]
Url = Annotated[str, _URL]
OptionalUrl = Annotated[str | None, _URL]

OrganizationId = Annotated[str, Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])]
OrganizationSlug = Annotated[str, Field(description="The organization's name used in URLs.", examples=["acme"])]
ProjectId = Annotated[str, Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])]
VendorId = Annotated[str, Field(description="The vendor's ID.", examples=["segment"])]
