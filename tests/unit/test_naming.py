"""Valid names: the rule, and the pattern that the document shows."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.platform.core.naming import Name, clean_name
from tests.support.each import each

NAME: TypeAdapter[str] = TypeAdapter(Name)
PATTERN = re.compile(NAME.json_schema()["pattern"])

NAMES = [
    "x",
    "x" * 100,
    f" {'x' * 100}\t\n",
    "Ромашка",
    "A\u0301cme",
    "\U0001f469\u200d\U0001f680 Rockets",
    "\ue000",
    "日本",
]
NO_NAMES = [
    "",
    " ",
    "\t\n",
    "x" * 101,
    "a\nb",
    "a\x00",
    "a\x9fb",
    "a\x7fb",
    "a\u2028b",
    "a\u202eb",
    "a\u2066b",
    "a\u2069b",
    "\xad",
    "\u034f",
    "\u061c",
    "\u115f\u1160",
    "\u17b4\u17b5",
    "\u180b\u180f",
    "\u200b\u200d",
    "\u2060",
    "\u3164",
    "\u2800",
    "\ufe00\ufe0f",
    "\ufeff",
    "\uffa0",
]


@each("text", NAMES, ids=ascii)
def test_a_valid_name_matches_the_pattern(text):
    assert NAME.validate_python(text) == clean_name(text) == text.strip()
    assert PATTERN.search(text)


@each("text", NO_NAMES, ids=ascii)
def test_an_invalid_name_doesnt_match_the_pattern(text):
    with pytest.raises(ValidationError):
        NAME.validate_python(text)
    assert clean_name(text) is None
    assert not PATTERN.search(text)
