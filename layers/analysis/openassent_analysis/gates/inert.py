"""Recognizes code that a page shows as text, or keeps until a script uses it."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.sources import Source

# Elements whose content is text, and one that is kept for scripts.
_TEXT: Final = frozenset({"textarea", "xmp"})
_KEPT: Final = "template"
# The attributes of a template that no framework renders.
_ATTRIBUTES: Final = re.compile(
    r"<template(?:\s++(?:id|class|data-[\w-]{1,60})(?:\s*+=\s*+(?:\"[^\"]*\"|'[^']*'|[\w-]+))?+)*+\s*+>", re.IGNORECASE
)
# Code that shows a template, unless it waits for a press.
_SHOWN: Final = re.compile(r"\.content\.cloneNode\(|\bimportNode\(")
_PRESSED: Final = re.compile(r"click|submit|pointer(?:down|up)|press", re.IGNORECASE)
# Files of components, whose own template it is.
_COMPONENTS: Final = (".vue", ".svelte")
_TAG: Final = re.compile(r"<([a-zA-Z][\w-]*)")
_MAX_ANCESTORS: Final = 60
_MAX_USES: Final = 20
_LONGEST: Final = 300

_STRINGS: Final = frozenset({"string", "template_string"})
# Attributes of elements and components that show a text, and functions that copy one.
_SHOWING: Final = frozenset(
    {"value", "defaultValue", "code", "text", "snippet", "source", "textToCopy", "copyText", "children"}
)
_COPIES: Final = re.compile(r"copy|clipboard|writeText", re.IGNORECASE)
# Properties with code that documentation shows.
_DOCUMENTS: Final = re.compile(
    r"[\"']?(?:example|usage|docs?|documentation|instruction|embed_?code|install_?code|code_?(?:snippet|example|sample))s?[\"']?",
    re.IGNORECASE,
)
_SHOWS_CODE: Final = re.compile(r"<(?:code|pre|textarea)\b|code$")
_RUNNING: Final = re.compile(r"<(?:script|style)\b", re.IGNORECASE)


def is_inert(source: Source, block: Block, node: SgNode) -> bool:
    """Returns whether the code of a node doesn't run where it is: a page shows it, or a script has to use it."""
    if block.language == "html" and _is_kept(source, node):
        return True
    if block.language in SCRIPTS and node.kind() in _STRINGS and _is_shown(source, block, node):
        return True
    if block.language in SCRIPTS and node.kind() == "identifier" and _is_result_shown(node):
        return True
    while block.outer is not None and block.host is not None:
        if block.host.kind() in _STRINGS and block.outer.language in SCRIPTS:
            return _is_shown(source, block.outer, block.host)
        block = block.outer
    return False


def _is_kept(source: Source, node: SgNode) -> bool:
    elements = [it for it in node.ancestors()[:_MAX_ANCESTORS] if it.kind() == "element"]
    found = False
    for element in elements:
        opening = element.child(0)
        tag = _TAG.match(opening.text()[:_LONGEST]) if opening is not None else None
        name = tag[1].lower() if tag else ""
        if name in _TEXT:
            return True
        if "-" in name:
            return False  # a custom element renders its template
        found |= name == _KEPT and opening is not None and _ATTRIBUTES.fullmatch(opening.text()[:_LONGEST]) is not None
    if source.first(_SHOWN) and not source.first(_PRESSED):
        return False
    return found and not source.path.endswith(_COMPONENTS)


def _is_shown(source: Source, block: Block, string: SgNode) -> bool:
    around = string.parent()
    if around is None:
        return False
    if around.kind() == "jsx_expression":
        return _shows(string)
    if (key := around.field("key")) is not None and around.kind() == "pair":
        return _DOCUMENTS.fullmatch(key.text()[:_LONGEST]) is not None
    name = around.field("name") if around.kind() == "variable_declarator" else None
    if name is None or name.kind() != "identifier":
        return False
    written = name.text()
    uses = [it for it in block.uses.get(written, ()) if it.range().start.index != name.range().start.index]
    if not uses or len(uses) > _MAX_USES:
        return not uses and source.path.endswith(_COMPONENTS) and _is_shown_in_markup(source.text, written)
    return all(map(_shows, uses))


def _is_result_shown(callee: SgNode) -> bool:
    """Returns whether an element for code shows the result of a function: `<pre>{snippetFor(id)}</pre>`."""
    call = callee.parent()
    shown = call.parent() if call is not None and call.field("function") == callee else None
    holder = shown.parent() if shown is not None and shown.kind() == "jsx_expression" else None
    opening = holder.child(0) if holder is not None else None
    return opening is not None and _SHOWS_CODE.match(opening.text()[:_LONGEST]) is not None


def _shows(use: SgNode) -> bool:
    """Returns whether a place shows a text in JSX, or copies it."""
    around = use.parent()
    if around is None:
        return False
    if around.kind() == "arguments":
        call = around.parent()
        callee = call.field("function") if call is not None else None
        return callee is not None and _COPIES.search(callee.text()[-_LONGEST:]) is not None
    holder = around.parent() if around.kind() == "jsx_expression" else None
    if holder is None:
        return False
    if holder.kind() == "jsx_attribute":
        attribute = holder.child(0)
        return attribute is not None and attribute.text() in _SHOWING
    return holder.kind() == "jsx_element" and not _RUNNING.match(holder.text()[:_LONGEST])


def _is_shown_in_markup(text: str, name: str) -> bool:
    shown = f"{{{{ {name} }}}}" in text or f"{{{{{name}}}}}" in text or f':code="{name}"' in text
    return shown and f'v-html="{name}"' not in text
