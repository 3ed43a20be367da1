"""Decides whether a file takes part in asking for consent, from named evidence: a consent library or manager, its
functions and components, a banner of the project's own, or a key of storage that holds the visitor's choice.

Words in comments, paths, links, and options of other services aren't evidence. Reads the text only, because most files
are never parsed.
"""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.gates import words
from openassent_analysis.gates.options import GOOGLE_STARTS, denied_by_default, in_comment
from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.report import Load
from openassent_analysis.sources import Source
from openassent_analysis.vocabulary import sought

_MANAGERS: Final = "consent-management"
_IMPORT: Final = re.compile(r"""(?:from|import|require\(|import\()\s{0,9}["']([^"'\n]{2,100})["']""")
# An access to storage, and the key that follows it.
_ACCESS: Final = re.compile(
    r"""(?:Storage|[cC]ookies?|COOKIES?|cookieStore|\$cookies|SecureStore|MMKV|getCookie|setCookie|useCookie"""
    r"""|usePersist\w{0,20})(?:\([\w.]{0,40}\))?"""
    r"""(?:\??\.(?:getItem|setItem|get|set|has|put|read|save|value|indexOf|includes|match|split"""
    r"""|fetch))?[\s!=<>]{0,5}[(\[.=:]{1,2}\s{0,5}["'`/:]?([\w$.:-]{3,80})"""
)
_KEY_CONSTANT: Final = re.compile(r"""[\w$]{1,60}\s{0,5}[=:]\s{0,5}["'`]([\w.:-]{4,60})["'`]""")
_STORAGE: Final = pattern_of(resource("consent-words")["storage"])
_WORDS: Final = sought(resource("consent-words")["marks"])
# The project's own banner: an element, a component, or the module or partial that contains it.
_NAME: Final = (
    r"[cC]ookies?[-_]?(?:[cC]onsent|[bB]anner|[bB]ar|[nN]otice|[mM]odal|[pP]opup|[dD]ialog|[pP]olicy[-_]?[bB]anner"
    r"|[pP]references?[-_]?(?:[bB]anner|[mM]odal|[dD]ialog))(?![a-z])"
)
_BANNER: Final = re.compile(
    r"""(?:\b(?:id|class|className)\s{0,3}=\s{0,3}[{"'`]{1,2}[\w -]{0,60}"""
    r"""|<(?:[\w-]{0,30}[-.])?|["'][\w@./:-]{0,80}[/:]|["'])"""
    rf"{_NAME}"
)
_ELEMENTS: Final = sought(resource("consent-words")["elements"])
# Plugins whose names end with a consent manager's.
_PLUGIN: Final = re.compile(r"-plugin-[\w-]{0,40}(?:onetrust|cookiebot|usercentrics|osano|cookie-?consent|gdpr)[\"']")
_BANNER_NAME: Final = re.compile(_NAME)
_MAX_MATCHES: Final = 500


def consent_managers(source: Source) -> set[Load]:
    """Returns the consent managers whose addresses are in a file."""
    return {
        Load(vendor.id, source.catalogue.host_at(source.text, start))
        for start, vendor in source.addresses
        if vendor.category == _MANAGERS
    }


def asks_for_consent(source: Source) -> bool:
    """Returns whether a file takes part in asking for consent."""
    text = source.text
    if any(vendor.category == _MANAGERS and not in_comment(text, start) for start, vendor in source.addresses):
        return True
    if any(_BANNER_NAME.search(name) for name, _ in source.includes):
        return True
    if not source.vocabulary.present(_WORDS):
        return False
    return bool(
        _has(words.LIBRARY, text)
        or _has(_BANNER, text)
        or source.vocabulary.present(_ELEMENTS)
        or ("-plugin-" in text and _has(_PLUGIN, text))
        or any(words.PACKAGE.fullmatch(match[1]) for match in _IMPORT.finditer(text))
        or any(words.KEY.search(match[1]) and not in_comment(text, match.start()) for match in _ACCESS.finditer(text))
        or (
            _STORAGE.search(text) is not None
            and any(
                words.KEY.search(match[1]) and not in_comment(text, match.start())
                for match in _KEY_CONSTANT.finditer(text)
            )
        )
    )


def _has(pattern: re.Pattern[str], text: str) -> bool:
    for number, match in enumerate(pattern.finditer(text)):
        if not in_comment(text, match.start()):
            return True
        if number > _MAX_MATCHES:
            break
    return False


def sets_consent_mode(source: Source) -> bool:
    """Returns whether a file sets Google's consent defaults to denied before it loads anything of Google's."""
    if "denied" not in source.text:
        return False
    start = source.first(GOOGLE_STARTS)
    return denied_by_default(source.text[: start.start()] if start else source.text)
