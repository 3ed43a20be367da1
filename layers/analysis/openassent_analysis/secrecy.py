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
    |\*\*\*|test|mock|12345678|abcdef|process\.env|foobar|lorem|undefined|deadbeef|cafebabe|qwerty""",
    re.IGNORECASE | re.VERBOSE,
)
# Public by design, whatever they are called: browser keys, publishable and test keys, site keys, and identifiers.
_PUBLIC: Final = re.compile(
    r"AIza[\w-]{20,}|[psr]k_test_\w*|pk_live_\w*|pk\.eyJ[\w.-]*|phc_\w*|G-[A-Z0-9]+|UA-[\d-]+"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)
# Keys that documentation and tools publish, such as the first accounts of local blockchains, keys for tests, and hashes
# of nothing. By the start of their SHA-256, so that this file doesn't contain them.
_PUBLISHED: Final = frozenset({
    "03b970ed8171d73b", "07e23ede2756aa3f", "0fff9ee671b05ea2", "153a182586451358", "1e3e58656012d861",
    "4a4b805b92e737a1", "562a0a18b8efc2b0", "578592185588730b", "739aa5069e8ad159", "78314b11be2e5815",
    "8335c55334821eef", "b26ab6529d20ebeb", "bc1a50966c9e6486", "cd372fb85148700f", "f215faf9d88b7f0a",
    "f5e95c9954635b65", "fb8f35129df87662",
})  # fmt: skip
# The issuer of the tokens in Supabase's documentation and local setup.
_DEMO_ISSUERS: Final = frozenset({"supabase-demo", "demo", "example"})
_WORD: Final = re.compile(r"[a-z]{4,}|[A-Z]{4,}|[A-Z][a-z]{3,}")
_VOWEL: Final = re.compile(r"[aeiouAEIOU]")
# Words for an example of a secret: in the name of a folder or file, and around the secret.
_SHOWN_BY_PATH: Final = re.compile(
    r"(?i:example|sample|mock|fixture|swagger|openapi|tutorial|i18n|locale|translation|^docs?$|^lang(?:uage)?s?$)"
)
_SHOWN: Final = re.compile(
    r"(?i:example|sample|placeholder|mock|fake|dummy|fixture|stub|snippet|schema|swagger|openapi|tutorial|i18n|locale"
    r"|translation|default_?value|help_?text|hint|tooltip|description|prefill|^docs?$)"
    r"|(?:^|_)(?:demo|test)(?:_|$|[A-Z])"
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
