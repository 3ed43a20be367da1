"""Elements that a consent tool activates, components that wait for consent, and conditions in attributes."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import words
from openassent_analysis.gates.context import GIVEN, NOTHING, Implied, Meaning, Reader, both, either_of, negated
from openassent_analysis.gates.origins import imported, in_project
from openassent_analysis.reading import alternatives, pattern_of, resource
from openassent_analysis.statements import FUNCTIONS

TAGS: Final = frozenset({"start_tag", "self_closing_tag", "jsx_self_closing_element", "jsx_opening_element"})
ELEMENTS: Final = frozenset({"jsx_element", "element", "script_element"})
# Types that the browser runs. It ignores a script of any other type until a consent tool changes the type.
_TYPE: Final = re.compile(r"""(?<![\w-])type\s{0,9}=\s{0,9}\{?["'`]?([\w/+.-]+)""", re.IGNORECASE)
_RUNS: Final = re.compile(
    r"(?:[\w-]+-)?(?:text|application)/(?:x-)?(?:java|ecma|type|coffee|live)script(?:1\.\d)?|(?:[\w-]+-)?module|text/babel|text/jsx|text/partytown|partytown|javascript|text/css|image/.*|js|text/js"
    rf"|{alternatives(resource('frameworks')['started_later'])}",
    re.IGNORECASE,
)
_TYPE_CHOSEN: Final = re.compile(r"""(?<![\w-]):?type\s{0,9}=\s{0,9}[^>]{0,200}?text/plain""", re.IGNORECASE)
_MARK: Final = re.compile(
    r"(?<![\w-])(?:data-(?:cookie-?consent|cookieblock-\w+|cookiecategory|cookie-?category|cookie-?yes|usercentrics|uc-[\w-]+|consent[\w-]*|cmp-[\w-]+|cky[\w-]*|"
    r"iub-[\w-]+|cmplz-[\w-]+|borlabs-[\w-]+|didomi[\w-]*|ot-ignore-never|cc-[\w-]+|gdpr[\w-]*|purposes?|suppressedsrc)\s{0,9}=|optanon-category-|_iub_cs_activate|cmplazyload|cmplz-|"
    r"cky-|rcb-)|consent-(?:src|required|id)\s{0,9}=",
    re.IGNORECASE,
)
_SCRIPT: Final = re.compile(r"<\s{0,9}script\b", re.IGNORECASE)
_CATEGORY_WITHOUT_SOURCE: Final = re.compile(r"(?<![\w-])data-(?:category|service|name)\s{0,9}=", re.IGNORECASE)
_OWN_SOURCE: Final = re.compile(r"(?<![\w-])src\s{0,9}=", re.IGNORECASE)
_TAG_NAME: Final = re.compile(r"<\s{0,9}([\w.:-]+)")
_CONDITION: Final = re.compile(
    r"""(?<![\w-])(?:v-if|v-else-if|\*ngIf|x-if|n-if|ng-if|\[if\])\s{0,5}=\s{0,5}(?:"([^"]{1,300})"|'([^']{1,300})')"""
)
_ELSE: Final = re.compile(r"""(?<![\w-])v-else(?:-if)?\b""")
_SHOWS_ANYWAY: Final = pattern_of(resource("consent-words")["shows_anyway"])
# Elements that are visible after the visitor has opened them, such as dialogs.
_OPENED: Final = re.compile(
    r"(?:Dialog|Modal|Popover|Sheet|Drawer|HoverCard|Collapsible|Accordion)\.?(?:Content|Panel|Body)"
)
_TEMPLATE: Final = re.compile(r"<template(?:\s{1,9}(?:id|class)=[\"'][^\"']{0,60}[\"'])?\s{0,9}>")
_CUSTOM: Final = re.compile(r"<[a-z]\w{0,40}-")
# Custom elements that show their template when the visitor presses a button, wherever that is.
_OPENED_BY_BUTTON: Final = re.compile(r"<(?:deferred|modal|dialog|popup)-", re.IGNORECASE)
_MAX_BEFORE: Final = 5000
_JSX: Final = frozenset({"jsx_self_closing_element", "jsx_opening_element"})
# Elements that show their content only while they are open.
_OPENS: Final = re.compile(r"(?:Dialog|Modal|Popup|Popover|Drawer|Lightbox|Overlay|Sheet|Offcanvas)(?:\.Root)?$")
_OPEN: Final = r"(?i:(?:is|modal)?[_-]?(?:open|opened|show|shown|visible|active))"
_IS_OPEN: Final = re.compile(_OPEN)
# :isOpen="…" and v-model="…" of Vue, and open={…} of Svelte.
_OPEN_IF: Final = re.compile(
    rf"""\s(?:(?::|v-bind:|v-model:|bind:)?{_OPEN}|v-model)=(?:"([^"]{{1,100}})"|'([^']{{1,100}})'|\{{([^{{}}]{{1,100}})\}})"""
)
_CONSENT: Final = pattern_of(resource("consent-words")["component"], re.IGNORECASE)


def tag_waits(reader: Reader, tag: SgNode) -> bool:
    """Returns whether a tag's attributes keep it from running or loading until a consent tool activates it."""
    text = tag.text()[:3000]
    kind = _TYPE.search(text)
    if _SCRIPT.match(text) and (_TYPE_CHOSEN.search(text) or (kind and not _runs(reader, kind[1]))):
        return True
    if kind and kind[1].lower() == "text/plain":
        return True
    return bool(_MARK.search(text)) or bool(
        _CATEGORY_WITHOUT_SOURCE.search(text)
        and not _OWN_SOURCE.search(text)
        and not _SCRIPT.match(text)
        and "data-src" in text
    )


def _runs(reader: Reader, written: str) -> bool:
    """Returns whether the browser runs a script of a type, or of the types that a name of the file has."""
    values = [it.value.text() for it in reader.index.declarations.get(written, ()) if it.value is not None]
    return bool(_RUNS.fullmatch(written)) or any("/" in it and "text/plain" not in it for it in values)


def tag_name(tag: SgNode) -> str:
    found = _TAG_NAME.match(tag.text()[:200])
    return found[1] if found else ""


def implied_by_tag(reader: Reader, block: Block, tag: SgNode) -> Implied:
    """Returns the gate implied by showing an element with this tag, or its content."""
    if tag_waits(reader, tag):
        return GIVEN
    implied = _implied_by_component(reader, block, tag_name(tag))
    implied = both(implied, implied_by_opening(reader, block, tag))
    if block.language != "html":
        return implied
    return GIVEN if _is_deferred(tag) else both(implied, _implied_by_attribute(reader, tag))


def _is_deferred(tag: SgNode) -> bool:
    """Returns whether a tag is of a template that a custom element shows when its button is pressed."""
    if _TEMPLATE.match(tag.text()[:100]) is None:
        return False
    element = tag.parent()
    owner = element.parent() if element is not None else None
    first = owner.child(0) if owner is not None else None
    if owner is None or first is None or _CUSTOM.match(first.text()[:100]) is None:
        return False
    if _OPENED_BY_BUTTON.match(first.text()[:100]):
        return True
    before = owner.text()[: tag.range().start.index - owner.range().start.index]
    return "<button" in before[-_MAX_BEFORE:]


def implied_by_opening(reader: Reader, block: Block, tag: SgNode) -> Implied:
    """Returns the gate implied by an open dialog."""
    if not _OPENS.search(_pascal(tag_name(tag))):
        return NOTHING
    if tag.kind() not in _JSX:
        written = _OPEN_IF.search(tag.text()[:3000])
        return meaning_of_script(reader, next(filter(None, written.groups()))).true if written else NOTHING
    for attribute in tag.children():
        name, value = attribute.child(0), attribute.child(2)
        if name is None or value is None or value.kind() != "jsx_expression" or not _IS_OPEN.fullmatch(name.text()):
            continue
        inner = value.child(1)
        return reader.meaning(block, inner).true if inner is not None else NOTHING
    return NOTHING


def _implied_by_component(reader: Reader, block: Block, name: str) -> Implied:
    if _OPENED.fullmatch(name):
        return GIVEN
    first = name.partition(".")[0]
    bare = first if first in reader.index.imports else _pascal(first)
    shows_anyway = bool(_SHOWS_ANYWAY.search(name.rpartition(".")[2]))
    if export := reader.index.imports.get(bare):
        if words.PACKAGE.fullmatch(export.module):
            return NOTHING if shows_anyway else GIVEN
        if not in_project(export.module):
            return NOTHING
        found = imported(export, bare).true
        return found._replace(unclear=bool(_CONSENT.search(bare)) and not shows_anyway)
    if first in reader.index.declarations and block.language != "html":
        return _shows_children_with(reader, first)
    if ("-" in name or name[:1].isupper()) and _CONSENT.search(name) and not _SHOWS_ANYWAY.search(_pascal(name)):
        return NOTHING if words.refuses(name) else GIVEN
    return NOTHING


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("-"))


_CHILDREN: Final = frozenset({"children", "slots", "$slots"})
_MAX_CHILDREN: Final = 20


def _shows_children_with(reader: Reader, component: str) -> Implied:
    """Returns the gate implied by a component of this file that renders its children."""
    for declared in reader.index.declarations[component][:1]:
        function = declared.value
        if function is not None and function.kind() == "call_expression":  # memo(() => ...)
            given = function.field("arguments")
            function = next((it for it in given.children() if it.kind() in FUNCTIONS), None) if given else None
        if function is None or function.kind() not in FUNCTIONS:
            return NOTHING
        return children_of(reader, declared.block, function)
    return NOTHING


def children_of(reader: Reader, block: Block, function: SgNode) -> Implied:
    """Returns the gate implied by a component, given as its function, that renders its children."""
    body = function.field("body") or function
    uses = (use for name in _CHILDREN for use in reader.index.uses_in(block, body, name, _MAX_CHILDREN))
    return either_of(reader.found(block, use, function).implied for use in uses) or NOTHING


def _implied_by_attribute(reader: Reader, tag: SgNode) -> Implied:
    text = tag.text()[:3000]
    found = NOTHING
    if match := _CONDITION.search(text):
        condition = match[1] or match[2]
        found = GIVEN if _opened_by_click(reader, text, condition) else meaning_of_script(reader, condition).true
    if _ELSE.search(text):
        found = both(found, _implied_by_else(reader, tag))
    return found


def _opened_by_click(reader: Reader, text: str, name: str) -> bool:
    """Returns whether a condition of Alpine is a name that is false at first, and that only clicks set."""
    if "x-if" not in text or name not in reader.index.closed:
        return False
    return "click" in (events := reader.index.events.get(name, set())) and events <= {"click", "keydown", "keyup"}


def _implied_by_else(reader: Reader, tag: SgNode) -> Implied:
    """Returns the gate implied by `v-else`: no earlier branch is shown."""
    element = tag.parent()
    before = element.prev() if element is not None else None
    for _ in range(10):
        if before is None:
            break
        first = before.child(0)
        if before.kind() in {"element", "script_element"} and first is not None:
            match = _CONDITION.search(first.text()[:3000])
            return negated(meaning_of_script(reader, match[1] or match[2])).true if match else NOTHING
        before = before.prev()
    return NOTHING


def meaning_of_script(reader: Reader, condition: str) -> Meaning:
    """Returns the meaning of a condition that is a script's expression, in an attribute or a template."""
    block = Block("javascript", condition, 0)
    root = block.root
    first = root.child(0)
    return reader.meaning(block, first if first is not None else root)


_ENABLING: Final = resource("queries")["enabling_options"]
_MAX_OPTIONS: Final = 10
# <GoogleAnalytics enabled={allowed} /> of Svelte, <google-analytics :enabled="allowed" /> of Vue
_ENABLED: Final = re.compile(r"""\s:?enabled=(?:\{|["'])([^{}"'<>]{1,200})""")
_LONGEST_TAG: Final = 2_000


def enabled_with_consent(reader: Reader, block: Block, call: SgNode) -> bool:
    """Returns whether an option of a call, or of a component, is true only if the visitor has consented."""
    if block.host is not None and (written := _ENABLED.search(block.host.text()[:_LONGEST_TAG])):
        return meaning_of_script(reader, written[1]).true.given
    if call.kind() not in {"call_expression", "new_expression"}:
        return False
    for pair in call.find_all(_ENABLING)[:_MAX_OPTIONS]:
        value = pair.field("value")
        if value is not None and value.kind() not in {"true", "false"} and reader.meaning(block, value).true.given:
            return True
    return False
