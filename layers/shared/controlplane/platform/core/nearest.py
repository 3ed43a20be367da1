"""Finds the known name that a mistyped one resembles: of a parameter, a field, or a value."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

# The similarity of two words that are written almost alike, such as `project` and `projects`.
_ENOUGH = 0.75
# Longer than most names. Comparing two words takes the product of their lengths.
_LONGEST_WORD = 40
_NO_LETTER = re.compile(r"[^a-z0-9]")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Returns ` Did you mean NAME?` with the most similar name, or an empty text. Ignores case and punctuation."""
    plain = _NO_LETTER.sub("", word.lower())
    best = max(names, key=lambda name: _similarity(plain, name.lower()), default="")
    return f" Did you mean {best}?" if _similarity(plain, best.lower()) >= _ENOUGH else ""


def _similarity(word: str, name: str) -> float:
    return SequenceMatcher(None, word, name).ratio() if max(len(word), len(name)) <= _LONGEST_WORD else 0.0
