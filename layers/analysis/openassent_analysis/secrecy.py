"""Masks secrets before text is stored or shown."""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.reading import pattern_of, resource

_KEEP: Final = 4
_TOKENS: Final = pattern_of(resource("secrets")["tokens"])
# If a word can repeat the start of a pattern, the pattern begins at the word and reads it once (an atomic group).
# Retrying at each repetition would take time that grows with the square of the word's length.
_WEB_TOKEN: Final = re.compile(
    r"(?<![0-9a-zA-Z_-])(?>([0-9a-zA-Z_-]*?)\b(?=eyJ)([0-9a-zA-Z_-]{13,}))(\.[0-9a-zA-Z_-]{10,}\.[0-9a-zA-Z_-]{8,})"
)
_ASSIGNED: Final = re.compile(
    r"""(\b(?>\w*?(?:secret|passw(?:or)?d|private_?key|access_?token|auth_?token|api_?key)\w*)["']?\s*[:=]\s*["'`])"""
    r"""([^"'`\n]{8,})""",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """Returns enough of a secret to identify it, and never more than an eighth of it."""
    return text[: min(_KEEP, len(text) // 8)] + "****"


def masked_lines(text: str) -> list[str]:
    """Returns the text's lines, each at its place, with everything masked that looks like a secret."""
    kept = _TOKENS.sub(lambda match: mask(match[0]) + "\n" * match[0].count("\n"), text)
    return masked(kept).split("\n")


def masked(text: str) -> str:
    """Returns the text with everything masked that looks like a secret."""
    text = _WEB_TOKEN.sub(lambda match: match[1] + mask(match[2] + match[3]), text)
    text = _TOKENS.sub(lambda match: mask(match[0]), text)
    return _ASSIGNED.sub(lambda match: match[1] + mask(match[2]), text)
