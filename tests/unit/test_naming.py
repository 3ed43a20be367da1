"""Valid names: the rule, and the pattern that the document shows."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.platform.core.naming import Name, clean_name

NAME: TypeAdapter[str] = TypeAdapter(Name)
PATTERN = re.compile(NAME.json_schema()["pattern"])
NAMES = (
    "x", "x" * 100, f" {'x' * 100}\t\n", "Ромашка", "A\u0301cme", "\U0001f469\u200d\U0001f680 Rockets", "\ue000",
    "日本",
)  # fmt: skip
NO_NAMES = (
    "", " ", "\t\n", "x" * 101, "a\nb", "a\x00", "a\x9fb", "a\x7fb", "a\u2028b", "a\u202eb", "a\u2066b", "a\u2069b",
    "\xad", "\u034f", "\u061c", "\u115f\u1160", "\u17b4\u17b5", "\u180b\u180f", "\u200b\u200d", "\u2060", "\u3164",
    "\u2800", "\ufe00\ufe0f", "\ufeff", "\uffa0",
)  # fmt: skip


def test_a_name_matches_the_pattern_if_it_is_valid():
    for text in NAMES:
        assert NAME.validate_python(text) == clean_name(text) == text.strip()
        assert PATTERN.search(text), ascii(text)
    for text in NO_NAMES:
        with pytest.raises(ValidationError):
            pytest.fail(ascii(NAME.validate_python(text)))
        assert (clean_name(text), PATTERN.search(text)) == (None, None), ascii(text)
