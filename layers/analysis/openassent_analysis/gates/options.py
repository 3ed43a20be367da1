"""Settings that make a vendor's own code wait for consent, and scripts that block the scripts after them on a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.sources import Source

_AUTO_BLOCKER: Final = pattern_of(resource("consent-words")["auto_blocker"], re.IGNORECASE)
GOOGLE: Final = frozenset({"google-analytics", "google-tag-manager", "google-ads", "firebase-analytics"})
_DEFAULT: Final = re.compile(r"""["']consent["']\s{0,9},\s{0,9}["']default["']\s{0,9},\s{0,9}([^)]{0,1500})""")
# The first command of a tag, after which defaults come too late.
GOOGLE_STARTS: Final = re.compile(
    r"""["']config["']\s{0,9},|["']?gtm\.start["']?\s{0,9}:|(?<![\w.])ga\(\s{0,9}["']create"""
)
_STORAGE: Final = re.compile(r"""["']?(\w{1,40}_storage)["']?\s{0,9}:\s{0,9}([^,}]{1,200})""")
_ASSIGNED: Final = re.compile(r"(?<![\w$.])([\w$.]{1,60})\s{0,9}[:=]")
_COMMENT: Final = re.compile(r"//|\*|#|<!--")
_COMMENTED: Final = re.compile(r"//[^\n]*+|/\*[^*]*+\*/")
_WANTED: Final = {"google-ads": ("ad_storage",), "google-analytics": ("analytics_storage",)}


def _settings(kind: str) -> dict[str, re.Pattern[str]]:
    """Returns the expressions of a kind by vendor."""
    known = resource("vendor-settings")
    return {vendor: pattern_of(given[kind]) for vendor, given in known.items() if kind in given}


# A vendor's image is loaded whatever its own tag does.
_IMAGE: Final = re.compile(r"<img\b", re.IGNORECASE)
# Vendors whose images set no cookies.
_WITHOUT_COOKIES: Final = ("matomo", "piwik")
_STARTS_OF: Final = _settings("starts")
_OPTIONS_OF: Final = _settings("options")
_CALLS_OF: Final = _settings("calls")
# Settings of the same names that are about something else.
_DEBUGGING: Final = re.compile(r"debug\s{0,9}:\s{0,9}\{[^{}]{0,400}\}")
_MAX_CALL: Final = 3000
_MAX_STARTS: Final = 20
_MAX_NAMES: Final = 300
_OBJECT: Final = re.compile(r"(?<![\w.$])([A-Za-z_$][\w$]{0,60}+)(?:\s{0,9}:[^=\n{]{1,80})?\s{0,9}=\s{0,9}\{")
# The element whose address code sets, and the mark that it gives an element.
_SOURCE_OF: Final = re.compile(r"""^([\w$]{1,60}+)\.(?:src\s{0,9}=|setAttribute\(\s{0,9}["'`]src["'`])""")
_MARKED: Final = re.compile(
    r"""(?<![\w$.])([\w$]{1,60}+)\.(?:type\s{0,9}=\s{0,9}["'`]text/plain|dataset\.(?:cookie-?consent|cookiecategory)\s{0,9}="""
    r"""|setAttribute\(\s{0,9}["'`](?:type["'`]\s{0,9},\s{0,9}["'`]text/plain|data-(?:cookie-?consent|cookiecategory|cookie-category"""
    r"""|usercentrics)["'`]))""",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_DENIED: Final = re.compile(r"(?<![\w$.])([A-Za-z_$][\w$]{0,60})\s{0,9}=(?=[^\n]{0,200}denied)")


def blocked_by_script(source: Source, offset: int) -> bool:
    """Returns whether an earlier script on the page blocks the code at an offset."""
    if source.first(_AUTO_BLOCKER) is None:
        return False
    found = islice(_AUTO_BLOCKER.finditer(source.text, 0, offset), _MAX_STARTS)
    return any(not in_comment(source.text, blocker.start()) for blocker in found)


def blocks(source: Source) -> bool:
    """Returns whether a page contains a script that blocks later ones."""
    return blocked_by_script(source, len(source.text))


def marked_by_code(block: Block, node: SgNode) -> bool:
    """Returns whether the code that adds a script marks it for a consent tool, which starts it."""
    if "text/plain" not in block.text and "consent" not in block.text:
        return False
    added = _SOURCE_OF.search(node.text()[:_MAX_NAMES])
    if added is None:
        return False
    start = node.range().start.index
    return any(
        mark[1] == added[1] for mark in _MARKED.finditer(block.text, max(0, start - _MAX_CALL), start + _MAX_CALL)
    )


def in_comment(text: str, offset: int) -> bool:
    """Returns whether a place is in a comment of HTML or of a script, or in a line that starts with a comment."""
    line = text[text.rfind("\n", max(0, offset - 500), offset) + 1 : offset].lstrip()
    if _COMMENT.match(line) or " //" in line[-200:]:
        return True
    for opening, closing in (("<!--", "-->"), ("/*", "*/")):
        opened = text.rfind(opening, max(0, offset - 5000), offset)
        if opening == "/*" and text.startswith(("//*", ":/*"), max(0, opened - 1)):
            continue  # https://*.a.test
        if opened >= 0 and text.find(closing, opened, offset) < 0:
            return True
    return False


def waits_by_itself(source: Source, node: SgNode, vendor: str, offset: int) -> bool:
    """Returns whether a setting in the file makes a vendor's own code wait for consent."""
    if vendor in GOOGLE and denied_by_default(_before_start(source, node, offset), vendor):
        return True
    name = _entry_of(vendor, _CALLS_OF)
    image = name not in _WITHOUT_COOKIES and _IMAGE.match(node.text()[:_MAX_NAMES])
    if name and not image and _calls_whenever(source, _CALLS_OF[name], offset):
        return True
    name = _entry_of(vendor, _OPTIONS_OF)
    if not name:
        return False
    option = _OPTIONS_OF[name]
    if source.first(option) is None:
        return False
    texts = [*_calls(source, name), _statement(node)]
    return any(option.search(_DEBUGGING.sub("", text)) for text in texts)


def _calls_whenever(source: Source, pattern: re.Pattern[str], offset: int) -> bool:
    """Returns whether every page with the code at an offset also contains a call, under any of its conditions."""
    if source.first(pattern) is None:
        return False
    conditions = source.template_conditions(offset)
    return any(
        not in_comment(source.text, call.start())
        and all(it in conditions for it in source.template_conditions(call.start()))
        for call in islice(pattern.finditer(source.text), _MAX_STARTS)
    )


def _entry_of(vendor: str, entries: Iterable[str]) -> str:
    """Returns the entry for a vendor, or for the product that its id begins with. Empty if it has no entry."""
    return next((it for it in entries if vendor == it or vendor.startswith(f"{it}-")), "")


def _before_start(source: Source, node: SgNode, offset: int) -> str:
    """Returns the text before a tag of Google's starts: an asynchronous tag starts with its first command."""
    start = source.first(GOOGLE_STARTS)
    text = node.text()[:_MAX_CALL]
    asynchronous = "gtag/js" in text and ("async" in text or "defer" in text or text.startswith("<Script"))
    end = start.start() if start else offset
    return source.text[: end if asynchronous else min(end, offset)]


def _statement(node: SgNode) -> str:
    if node.kind() == "call_expression" or "element" in node.kind():
        return node.text()[:_MAX_CALL]
    return ""


def _calls(source: Source, vendor: str) -> list[str]:
    """Returns the texts of a vendor's calls, and of the objects that are given to them by name."""
    found = []
    objects: dict[str, int] | None = None
    for match in islice(_STARTS_OF[vendor].finditer(source.text), _MAX_STARTS):
        if in_comment(source.text, match.start()):
            continue
        text = balanced(source.text, match.end() - 1)
        found.append(text)
        if objects is None:
            objects = {it[1]: it.end() - 1 for it in _OBJECT.finditer(source.text)}
        names = set(_NAME.findall(text[:_MAX_NAMES])) & objects.keys()
        found += [balanced(source.text, objects[name]) for name in names]
    return found


def balanced(text: str, start: int) -> str:
    """Returns the text up to the bracket that closes the first one, up to a limit."""
    depth = 0
    end = min(len(text), start + _MAX_CALL)
    for position in range(start, end):
        character = text[position]
        if character in "([{<" and (character != "<" or position == start):
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth <= 0:
                return text[start : position + 1]
    return text[start:end]


def denied_by_default(text: str, vendor: str = "") -> bool:
    """Returns whether a text sets Google's consent defaults so that a vendor's tag waits, or all of them do."""
    for match in islice(_DEFAULT.finditer(text), _MAX_STARTS):
        if in_comment(text, match.start()):
            continue
        settings = dict(_STORAGE.findall(_COMMENTED.sub("", match[1])))
        wanted = _WANTED.get(vendor, ("analytics_storage", "ad_storage"))
        if settings:
            denied = [_denies(text, settings[name].strip()) for name in wanted if name in settings]
            if any(denied) and (vendor or all(denied)):
                return True
        elif "denied" in match[1] or ((name := _NAME.match(match[1])) and _may_deny(text, name[0])):
            return True
    return False


def _denies(text: str, value: str) -> bool:
    """Returns whether a value of defaults denies, itself or by a name: `state = accepted ? 'granted' : 'denied'`."""
    if "denied" in value or not _NAME.fullmatch(value):
        return "denied" in value
    return any(given[1] == value for given in _DENIED.finditer(text))


def _may_deny(text: str, name: str) -> bool:
    """Returns whether defaults deny that have a name. A name of another file does: granting needs no defaults."""
    return "denied" in text or all(match[1] != name for match in _ASSIGNED.finditer(text))
