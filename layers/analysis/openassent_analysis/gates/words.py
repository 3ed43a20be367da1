"""The names by which consent is asked for and stored: of libraries, of keys in storage, and of values.

A name is evidence only where it is used: a key in an access to storage, a library's object in code, a value that no
code of the file defines.
"""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.libraries import libraries
from openassent_analysis.reading import alternatives, pattern_of, resource

_WORDS: Final = resource("consent-words")
_OBJECTS: Final = alternatives(_WORDS["library"])
LIBRARY: Final = re.compile(rf"(?<![\w$.])(?:(?:window|globalThis|self)\.)?(?:{_OBJECTS})(?![\w$])")
# Packages of consent libraries, and their submodules.
_PACKAGES: Final = "|".join([*map(re.escape, libraries()), alternatives(_WORDS["packages"])])
PACKAGE: Final = re.compile(rf"(?:{_PACKAGES})(?:/[\w./-]{{0,200}})?")
# A key under which a visitor's choice is stored.
KEY: Final = pattern_of(_WORDS["key"], re.IGNORECASE)
# Of a key, name, or value: the visitor refuses, or hasn't been asked. Nothing follows from its absence.
REFUSAL: Final = pattern_of(_WORDS["refusal"], re.IGNORECASE)
_LACKING: Final = pattern_of(_WORDS["lacking"], re.IGNORECASE)
_ASKING: Final = pattern_of(_WORDS["asking"], re.IGNORECASE)
_STRONG: Final = pattern_of(_WORDS["strong"], re.IGNORECASE)
_WEAK: Final = pattern_of(_WORDS["weak"], re.IGNORECASE)
_SETTING: Final = pattern_of(_WORDS["setting"])
_NOT_YES: Final = pattern_of(_WORDS["not_yes"], re.IGNORECASE | re.DOTALL)
CATEGORY: Final = pattern_of(_WORDS["category"], re.IGNORECASE)
# Names of handlers that run when the visitor agrees, and when the visitor doesn't.
ACCEPTS: Final = re.compile(
    r"(?:^|[^a-z])(?:on|handle|do|did|when|if|after|with|set|give|grant|confirm|save)?_?(?:user|cookies?|all"
    r"|visitor)?_?(?:accept|agree|allow|opt_?in|grant|consent)(?:ed|s|ing)?",
    re.IGNORECASE,
)


def says_yes(literal: str) -> bool:
    """Returns whether a value that the choice is compared with stands for consent."""
    return not _NOT_YES.fullmatch(literal.strip())


def is_key(text: str) -> bool:
    """Returns whether a text contains a key under which a visitor's consent is stored."""
    return bool(KEY.search(text)) and not REFUSAL.search(text)


def strength(name: str) -> int:
    """Returns 2 if a name says that the visitor has consented, 1 if it may, -1 if it says the opposite, otherwise 0."""
    name = name[-200:]
    if REFUSAL.search(name) or _LACKING.search(name):
        return -1
    if _ASKING.search(name):
        return 1
    if _STRONG.search(name):
        return 2
    if _SETTING.search(name):
        return 0
    return 1 if _WEAK.search(name) else 0


def lacks(name: str) -> bool:
    """Returns whether a name says that the visitor hasn't consented."""
    return bool(_LACKING.search(name[-200:]))


def asks(name: str) -> bool:
    """Returns whether a name says that consent is missing, or is being asked for."""
    return bool(_ASKING.search(name[-200:]))


def accepts(name: str) -> bool:
    """Returns whether a handler's name says that it runs when the visitor agrees."""
    name = name[-100:]
    return bool(ACCEPTS.search(name)) and not REFUSAL.search(name)


def refuses(text: str) -> bool:
    return bool(REFUSAL.search(text))
