"""Validation problems are in plain words and never contain the value that was sent. Times are read with their zone."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from controlplane.platform.core.errors import InvalidPayload, MethodNotAllowed, UnsupportedMediaType, summarize
from controlplane.platform.http.fields import Time, to_seconds, to_timestamp
from controlplane.platform.http.validation import described, to_problems
from tests.support.each import each

ROOT = Path(__file__).parents[2]
SECRET = "assent_secret"


def _refuse(_value: str) -> str:
    raise PydanticCustomError("reserved", "This name is reserved.")


def _fail(_value: str) -> str:
    raise ValueError("Must be a slug")


class Nested(BaseModel, extra="forbid", strict=True):
    color: Literal["red", "blue"]


class Body(BaseModel, extra="forbid", strict=True):
    text: Annotated[str, Field(min_length=1, max_length=5, pattern="^[a-z]*$")] = "a"
    long: Annotated[str, Field(min_length=3)] = "abc"
    count: Annotated[int, Field(ge=1, le=100)] = 1
    flag: bool = True
    several: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    nested: Nested = Nested(color="red")
    reserved: Annotated[str, AfterValidator(_refuse)] = ""
    slug: Annotated[str, AfterValidator(_fail)] = ""


CASES: list[tuple[dict[str, Any], list[str], str]] = [
    ({"text": ""}, ["text"], "Must have at least 1 character"),
    ({"text": SECRET}, ["text"], "Must have at most 5 characters"),
    ({"text": "A"}, ["text"], "Must match ^[a-z]*$"),
    ({"text": None}, ["text"], "Must be a string"),
    ({"long": "a"}, ["long"], "Must have at least 3 characters"),
    ({"count": SECRET}, ["count"], "Must be a whole number"),
    ({"count": 0}, ["count"], "Must be at least 1"),
    ({"count": 101}, ["count"], "Must be at most 100"),
    ({"flag": SECRET}, ["flag"], "Must be true or false"),
    ({"several": SECRET}, ["several"], "Must be a list"),
    ({"several": []}, ["several"], "Must have at least 1 item"),
    ({"several": [SECRET] * 3}, ["several"], "Must have at most 2 items"),
    ({"several": [1]}, ["several", "0"], "Must be a string"),
    ({"nested": SECRET}, ["nested"], "Must be an object"),
    ({"nested": {}}, ["nested", "color"], "Field required"),
    ({"nested": {"color": SECRET}}, ["nested", "color"], "Must be 'red' or 'blue'"),
    ({"other": SECRET}, ["other"], "Unknown field"),
    ({"reserved": SECRET}, ["reserved"], "This name is reserved."),
    ({"slug": SECRET}, ["slug"], "Must be a slug"),
]


def test_each_problem_is_in_plain_words_without_the_value():
    for body, path, message in CASES:
        with pytest.raises(ValidationError) as failure:
            Body.model_validate(body)
        (problem,) = to_problems(failure.value.errors())
        assert (problem["path"], problem["message"]) == (path, message)
        assert SECRET not in str(problem)


def test_a_pattern_is_described_in_words():
    pattern = described("^[0-7]{9}$", "Must be nine octal digits")
    (problem,) = to_problems(
        [{"type": "string_pattern_mismatch", "loc": ("body", "mode"), "msg": "x", "ctx": {"pattern": pattern}}]
    )
    assert problem["message"] == "Must be nine octal digits"


def test_every_pattern_of_a_request_is_described():
    """A regular expression says what a program accepts, not what a person should send."""
    files = [*ROOT.glob("functions/*/*schemas.py"), *ROOT.glob("functions/*/*routes.py")]
    sources = [path.read_text() for path in (*files, *ROOT.glob("layers/shared/controlplane/platform/http/*.py"))]
    assert re.findall(r"(?:[ (]pattern=)(?!described\().*", "\n".join(sources)) == []


def test_the_path_starts_below_the_part_of_the_request():
    for location, path, message in (
        (("body", "body", "a"), ["body", "a"], "Field required"),
        (("query", "limit"), ["limit"], "Field required"),
        (("limit",), ["limit"], "Field required"),
        (("body",), [], "A body is required. Send a JSON object."),
        ((), [], "A body is required. Send a JSON object."),
    ):
        (problem,) = to_problems([{"type": "missing", "loc": location, "msg": "x"}])
        assert (problem["path"], problem["message"]) == (path, message)
    for kind in ("model_attributes_type", "model_type", "dict_type"):
        (problem,) = to_problems([{"type": kind, "loc": ("body",), "msg": "x"}])
        assert problem["message"] == "The body must be a JSON object."
    (problem,) = to_problems([{"type": "list_type", "loc": ("body",), "msg": "x"}])
    assert problem["message"] == "Must be a list"


def test_the_message_is_the_first_problem_and_the_number_of_others():
    missing = [{"code": "missing", "message": "Field required", "path": [name]} for name in ("codeChallenge", "b", "c")]
    assert InvalidPayload(details=missing).public == "codeChallenge: field required (and 2 more)"
    assert InvalidPayload(details=missing[:1]).public == "codeChallenge: field required"
    nested = {"code": "x", "message": "HTTPS is required. Change the scheme.", "path": ["websites", "1"]}
    assert InvalidPayload(details=[nested]).public == "websites.1: HTTPS is required. Change the scheme."
    assert summarize([nested, nested]) == "websites.1: HTTPS is required. Change the scheme (and 1 more)"
    assert summarize([{**nested, "message": "A scheme is missing."}]) == "websites.1: a scheme is missing."
    assert summarize([{**nested, "path": []}]) == "HTTPS is required. Change the scheme."
    hostile = {"code": "x", "message": "Unknown field", "path": ["x" * 10_000] * 70}
    error = InvalidPayload(details=[hostile] * 5_000)
    assert error.public.endswith(" (and 4,999 more)")
    assert (len(error.public) < 400, len(error.details)) == (True, 101)


def test_invalid_payload_always_has_details():
    for error in (InvalidPayload(), InvalidPayload("Try again."), MethodNotAllowed(["GET"]), UnsupportedMediaType()):
        (problem,) = error.details
        assert problem["message"] == error.public
        assert problem["path"] == []


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
