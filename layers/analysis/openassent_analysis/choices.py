"""Finds the names under which server code hands the visitor's choice to templates.

The code of most server languages isn't parsed: a name counts if its line reads a cookie whose key is one of consent. Of
PHP, also functions count whose returned values all say that the visitor has agreed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Final

from openassent_analysis.gates import words
from openassent_analysis.gates.texts import meaning_of_text
from openassent_analysis.gating import SERVER
from openassent_analysis.report import MAX_CHOICES
from openassent_analysis.templates.dialects import dialect_of

_MARKS: Final = ("cookie", "consent", "gdpr")
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
_PHP: Final = (".php", ".inc", ".module", ".theme", ".phtml")
_FUNCTION_OF_PHP: Final = re.compile(r"\bfunction\s{1,4}&?(?P<name>\w{2,60})\s{0,4}\(")
_RETURNED: Final = re.compile(r"\breturn\b\s{0,9}(?P<value>[^;]{0,400});")
# Values that a function returns if the visitor hasn't agreed.
_NO: Final = re.compile(r"(?:false|null|0|''|\"\"|\[\s?\]|array\(\s?\))?", re.IGNORECASE)
# A value that isn't only stored: what a function or a comparison gives, or an entry.
_DECIDED: Final = re.compile(r"[(\[=]")
_MAX_FUNCTIONS: Final = 200
_MAX_ROUNDS: Final = 4
_LONGEST_LINE: Final = 300
_MAX_READS: Final = 50


def choices_in(path: str, text: str, language: str) -> list[str]:
    """Returns the names of values that are true only if a cookie says that the visitor has agreed."""
    if not _is_server_code(path, language):
        return []
    lower = text.lower()
    if not any(mark in lower for mark in _MARKS):
        return []
    found = dict.fromkeys(_names(text))
    if path.endswith(_PHP):
        _add_functions(found, text)
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


def _add_functions(found: dict[str, None], text: str) -> None:
    """Adds the functions of PHP that return something else than no only if the visitor has agreed."""
    undecided = dict(_functions(text))
    for _ in range(_MAX_ROUNDS):
        decided = [
            name
            for name, values in undecided.items()
            if all(given or any(it in found for it in providers) for given, providers in values)
        ]
        if not decided:
            return
        found.update(dict.fromkeys(decided))
        for name in decided:
            del undecided[name]


def _functions(text: str) -> Iterator[tuple[str, list[tuple[bool, list[str]]]]]:
    """Yields the functions of PHP that may give the choice: for each returned value, whether it does, or by which."""
    starts = [*islice(_FUNCTION_OF_PHP.finditer(text), _MAX_FUNCTIONS)]
    for start, following in zip_longest(starts, starts[1:]):
        body = text[start.end() : following.start() if following else len(text)]
        if len(body) > _LONGEST_FUNCTION:
            continue
        written = [it["value"].strip() for it in _RETURNED.finditer(body)]
        values = [it for it in written if not _NO.fullmatch(it)]
        if values and all(map(_DECIDED.search, values)):
            meanings = [meaning_of_text(value).true for value in values]
            yield (
                start["name"],
                [(it.given, [named.name for named in it.providers if named.module == SERVER]) for it in meanings],
            )
