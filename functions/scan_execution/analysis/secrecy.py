"""Masks secrets before text is stored or shown, and distinguishes secrets from placeholders."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from typing import Any, Final

_KEEP: Final = 4
_TOKENS: Final = re.compile(
    r"""
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----[\s\S]*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|rk)_live_[0-9a-zA-Z]{8,}
    | \bwhsec_[0-9a-zA-Z+/=]{8,}
    | \bsk-[0-9a-zA-Z_-]{16,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bgh[opsur]_[0-9a-zA-Z]{16,} | \bgithub_pat_[0-9a-zA-Z_]{16,} | \bglpat-[0-9a-zA-Z_-]{16,}
    | \bxox[abeoprs]-[0-9a-zA-Z-]{8,} | hooks\.slack\.com/services/[0-9a-zA-Z/_]{16,}
    | \bSG\.[0-9a-zA-Z_-]{8,}\.[0-9a-zA-Z_-]{8,} | \bkey-[0-9a-f]{32}\b
    | \bphx_[0-9a-zA-Z]{16,} | \bEAA[0-9a-zA-Z]{40,} | \bshpat_[0-9a-f]{16,} | \bnpm_[0-9a-zA-Z]{30,}
    | (?<=://)[^\s:/@"'`]{1,80}:[^\s/@"'`]{1,200}(?=@)
    """,
    re.VERBOSE,
)
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
_SPACE: Final = re.compile(r"\s")
_KINDS: Final = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_PLACEHOLDER: Final = re.compile(
    r"""example|placeholder|change.?me|your.?|dummy|sample|fake|redacted|insert|replace|todo|xxx|\.\.\.|<|>|\$\{|\{\{|%[(s]
    |\*\*\*|test|mock|12345678|abcdef|process\.env|foobar|lorem|undefined""",
    re.IGNORECASE | re.VERBOSE,
)


def mask(text: str) -> str:
    """Returns enough of a secret to identify it, and never more than an eighth of it."""
    return text[: min(_KEEP, len(text) // 8)] + "****"


def masked(text: str, known: tuple[str, ...] = ()) -> str:
    """Returns the text with all secrets masked: the known ones, and everything that looks like one."""
    for secret in known:
        if len(secret) >= _KEEP:
            text = text.replace(secret, mask(secret))
    text = _WEB_TOKEN.sub(lambda match: match[1] + mask(match[2] + match[3]), text)
    text = _TOKENS.sub(lambda match: mask(match[0]), text)
    return _ASSIGNED.sub(lambda match: match[1] + mask(match[2]), text)


def is_placeholder(text: str) -> bool:
    """Returns whether text is a placeholder for a secret: it says so, or has fewer than six distinct characters."""
    return bool(_PLACEHOLDER.search(text)) or len(set(text)) < 6


def entropy(text: str) -> float:
    """Returns bits per character, by the text's own frequencies. Words are below 3.5, 20 random characters above."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) if text else 0.0


def is_random(text: str) -> bool:
    """Returns whether text looks generated: no spaces, several kinds of characters, no pattern."""
    kinds = sum(bool(kind.search(text)) for kind in _KINDS)
    return kinds >= 2 and not _SPACE.search(text) and entropy(text) >= 3.5


def jwt_claims(token: str) -> dict[str, Any]:
    """Returns the claims of a JSON web token, unverified, or {} if the text isn't one."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
