"""Masks secrets before text is stored or shown, and distinguishes secrets from placeholders."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from typing import Any, Final

from openassent_analysis.reading import pattern_of, resource

_KEEP: Final = 4
_SECRETS: Final = resource("secrets")
_TOKENS: Final = pattern_of(_SECRETS["tokens"])
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
_PLACEHOLDER: Final = pattern_of(_SECRETS["placeholder"], re.IGNORECASE)
_PUBLIC: Final = pattern_of(_SECRETS["public"], re.IGNORECASE)
_PUBLISHED: Final = frozenset(_SECRETS["published"])
# The issuer of the tokens in Supabase's documentation and local setup.
_DEMO_ISSUERS: Final = frozenset({"supabase-demo", "demo", "example"})
_WORD: Final = re.compile(r"[a-z]{4,}|[A-Z]{4,}|[A-Z][a-z]{3,}")
_VOWEL: Final = re.compile(r"[aeiouAEIOU]")
# Words for an example of a secret: in the name of a folder or file, and around the secret.
_SHOWN_BY_PATH: Final = re.compile(
    r"(?i:example|sample|mock|fixture|swagger|openapi|tutorial|i18n|locale|translation|^docs?$|^lang(?:uage)?s?$)"
)
_SHOWN: Final = pattern_of(_SECRETS["shown"])


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


def is_public(text: str) -> bool:
    """Returns whether everyone may know a value: it is made for browsers, or documentation publishes it."""
    published = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16] in _PUBLISHED
    return published or bool(_PUBLIC.fullmatch(text)) or jwt_claims(text).get("iss") in _DEMO_ISSUERS


def says_shown(name: str) -> bool:
    """Returns whether the name of a key or variable says that its values are shown rather than used."""
    return bool(_SHOWN.search(name))


def is_in_documentation(path: str) -> bool:
    """Returns whether a path says that its file contains documentation, examples, or texts."""
    return any(_SHOWN_BY_PATH.search(part.partition(".")[0]) for part in path.split("/"))


def entropy(text: str) -> float:
    """Returns bits per character, by the text's own frequencies. Words are below 3.5, 20 random characters above."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) if text else 0.0


def is_random(text: str) -> bool:
    """Returns whether text looks generated: no spaces, several kinds of characters, no words."""
    kinds = sum(bool(kind.search(text)) for kind in _KINDS)
    return kinds >= 2 and not _SPACE.search(text) and entropy(text) >= 3.5 and not _consists_of_words(text)


def _consists_of_words(text: str) -> bool:
    """Returns whether half of a text are runs of letters with vowels. Generated text has short runs."""
    words = (word for word in _WORD.findall(text) if _VOWEL.search(word))
    return 2 * sum(map(len, words)) >= sum(map(str.isalnum, text))


def jwt_claims(token: str) -> dict[str, Any]:
    """Returns the claims of a JSON web token, unverified, or {} if the text isn't a token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
