"""Finds the names under which server code hands the visitor's choice to templates: helpers, variables of a context.

The code of most server languages isn't parsed. A name counts if its line reads a cookie whose key is one of consent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from openassent_analysis.gates import words
from openassent_analysis.report import MAX_CHOICES
from openassent_analysis.templates.dialects import dialect_of

_COOKIE: Final = re.compile(r"cookie", re.IGNORECASE)
# cookies[:name], request.COOKIES.get('name'), $_COOKIE['name'], Cookie::get(NAME), req.cookies.name
_READ: Final = re.compile(
    r"(?:\$_COOKIE|[cC]ookies?|COOKIES?)(?:\)|\?)?(?:->|\.|::)?(?:get|has|signed|encrypted|get_signed_cookie|fetch|dig|key\?)?"
    r"\s?[\[(.]\s?(?::|self(?:::|\.)|static::)?(?:[\"'](?P<key>[\w.:-]{2,80})[\"']|(?P<name>\w{2,80}))"
)
# The name that the choice is assigned to, or has in a hash, a dictionary, or a call.
_NAMED: Final = re.compile(
    r"(?:[\"':](?P<quoted>\w{2,60}[?]?)[\"']?\s{0,4}(?:=>|:|,)|[\"'](?P<item>\w{2,60})[\"']\]\s{0,4}=(?!=)"
    r"|(?P<name>\w{2,60})\s{0,4}(?:\|\|)?=(?![=>~])|(?P<key>\w{2,60}):\s)"
)
_FUNCTION: Final = re.compile(r"\b(?:def|function)\s{1,4}(?:self\.)?&?(?P<name>\w{2,60}[?]?)")
# The name says yes if nothing is stored.
_MISSING: Final = re.compile(
    r"nil\?|blank\?|empty\?|\bnil\b|\b[nN]one\b|\bnull\b|\bnot\s+in\b|\bundefined\b|unless\b|!=|\bempty\s?\(|!\s?isset|\bnot\s|![\s($\w]*$"
)
_CONSTANT: Final = re.compile(
    r"\b([A-Za-z_]\w{2,60})\s{0,4}(?::\s{0,4}\w{1,20}\s{0,4})?=>?\s{0,4}[\"']([\w.:-]{2,80})[\"']"
)
_ALIAS: Final = re.compile(
    r"(?:[\"'](?P<quoted>\w{2,60})[\"']\s{0,4}(?::|=>|,)|\b(?P<name>\w{2,60})\s{0,4}=)\s{0,4}"
    r"(?:\[\s{0,4}\$this\s{0,4},\s{0,4}[\"'])?[$@:]?(?P<value>\w{2,60}[?]?)"
)
_LONGEST_FUNCTION: Final = 1_000
_LONGEST_LINE: Final = 300
_MAX_READS: Final = 50


def choices_in(path: str, text: str, language: str) -> list[str]:
    """Returns the names of values that are true only if a cookie says that the visitor has agreed."""
    if not _is_server_code(path, language) or not _COOKIE.search(text):
        return []
    found = dict.fromkeys(_names(text))
    if found:
        for alias in _ALIAS.finditer(text):
            if alias["value"] in found:
                found[alias["quoted"] or alias["name"]] = None
    return [name for name in found if not words.refuses(name)][:MAX_CHOICES]


def _is_server_code(path: str, language: str) -> bool:
    dialect = dialect_of(path)
    if dialect is None:
        return language in {"python", "javascript", "typescript"}
    return dialect.in_strings or dialect.kind == "PHP"


def _names(text: str) -> Iterator[str]:
    constants: dict[str, str] | None = None
    for count, read in enumerate(_READ.finditer(text)):
        if count == _MAX_READS:
            return
        key = read["key"]
        if key is None:
            if not words.is_key(read["name"]) and constants is None:
                constants = dict(_CONSTANT.findall(text))
            key = read["name"] if constants is None else constants.get(read["name"], read["name"])
        if not words.is_key(key):
            continue
        start = max(text.rfind("\n", 0, read.start()) + 1, read.start() - _LONGEST_LINE)
        end = text.find("\n", read.end(), read.end() + _LONGEST_LINE)
        before, after = text[start : read.start()], text[read.end() : end if end >= 0 else read.end() + _LONGEST_LINE]
        if _MISSING.search(before) or _MISSING.search(after):
            continue
        named = [next(filter(None, it.groups())) for it in _NAMED.finditer(before)]
        if named:
            yield named[-1]
        *_, function = (None, *_FUNCTION.finditer(text, max(0, read.start() - _LONGEST_FUNCTION), read.start()))
        if function is not None:
            yield function["name"]
