"""Decides which vendors a place in the code loads or starts: by its address, its path, or the call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ast_grep_py import Config, SgNode, SgRoot

from openassent_analysis.addresses import looped_in
from openassent_analysis.blocks import SCRIPTS, Block, Loaded
from openassent_analysis.calls import calls
from openassent_analysis.sources import TAGS_OF_ADS, Source
from openassent_analysis.unknown import CREATED, SCRIPT_FILE
from openassent_analysis.values import arguments_of, named_values, values

_COMMENTS: Final[Config] = {"rule": {"kind": "comment"}}
_MAX_ARGUMENTS: Final = 8
# Placeholders of templates, which can't be folded.
_PLACEHOLDER: Final = re.compile(
    r"\{\{[^{}]{0,200}\}\}|\{%[^%]{0,200}%\}|<%[^%]{0,200}%>|[$#]\{[^{}]{0,200}\}|<\?[^?]{0,200}\?>|\{[\w.]{1,80}\}"
)
_WORD: Final = re.compile(r"[\w$]+")
# Names that suggest a function of another file adds scripts, and addresses of scripts.
_ADDS: Final = re.compile(
    r"^(?:load|inject|insert|append|attach|embed|add)(?!\w*(?:style|css|font|image|link))|script", re.IGNORECASE
)
_SCRIPT: Final = re.compile(r"\.js\b|/(?:js|tag|sdk)\b")
_ADDS_MEMBER: Final = re.compile(
    r"^(?:load|inject|insert|append|embed|add|use|create|include|attach|import|get|fetch|require|run)\w{0,40}[sS]cript"
    r"|^js$"
)
# Service workers run these scripts, not pages.
_IN_WORKER: Final = "importScripts"
# A hit that code sends to Google Analytics without a script, and words of code that runs on the visitor's device: in a
# page, a browser's extension, or a desktop app. A server may know the visitor's choice from elsewhere.
_SENDS: Final = frozenset({"fetch", "ofetch", "$fetch", "axios", "ky", "post"})
_HIT: Final = re.compile(
    r"^\(\s{0,20}[\"'`](?:https?:)?//(?:www|ssl|region1)\.google-analytics\.com/(?:(?:mp|g|j|r)/)?collect\b"
)
_ON_DEVICE: Final = re.compile(
    r"[\"'](?:electron|react-native)[\"']|\b(?:chrome|browser)\.(?:runtime|storage)\b|\b(?:localStorage|navigator|document)\.\w"
)
_LONGEST_NAME: Final = 100
_LONGEST_ARGUMENTS: Final = 600
_LONGEST_TAG: Final = 2_000
_MARKUP: Final = re.compile(r"(?:<|%3C)(?:script|iframe|img)\b", re.IGNORECASE)
_ADDRESS_OF_MARKUP: Final = re.compile(r"""(?<![\w-])src\s*=\s*\\?["']?([^\s"'<>\\]{4,500})""", re.IGNORECASE)
_ASSEMBLED: Final = frozenset({"binary_expression", "template_string"})
# :src="name", :src="name.value", :src="name(id)", :src="safe(name)", and :src="object.name" of Vue, [src]="name | safe"
# of Angular, src={name} and src={object.name} of Svelte and Astro.
_BOUND: Final = re.compile(
    r"""(?:(?::|v-bind:|\[(?:attr\.)?)src\]?\s*=\s*["']|src\s*=\s*["']?\{)(?:this\.)?(?P<name>[\w$]{1,60}(?:\.[\w$]{1,60}){0,4})"""
    r"""(?:\((?P<arguments>[\w$.,\s]{0,60})\))?(?:\s*\|\s*\w{1,40}(?:\s*:\s*["']?[\w-]{1,40}["']?)?){0,3}\s*\}?["']?"""
)
# The expression of an attribute: of Vue and Angular, of Svelte and Astro, and Svelte's text with expressions.
_EXPRESSION: Final = re.compile(
    r"""(?::|v-bind:|\[(?:attr\.)?)src\]?\s?=\s?(?:"(?P<double>[^"<>]{1,300})"|'(?P<single>[^'<>]{1,300})')"""
    r"""|src\s?=\s?(?:\{(?P<braces>(?:[^{}]|\{[^{}]{0,100}\}){1,300})\}|"(?P<mixed>[^"<>{}]{0,100}\{[^"<>]{1,300})")"""
)
_SCRIPT_TAG: Final = re.compile(r"<script\b", re.IGNORECASE)
_WITH_SCRIPTS: Final = (".vue", ".svelte", ".astro", ".ts")
# {src} of Svelte and Astro, :src of Vue.
_SHORT: Final = re.compile(r"^(?:\{src\}|:src)$")
_DOTTED: Final = re.compile(r"(?:this\.)?([\w$]{1,60}(?:\.[\w$]{1,60}){0,4})")
_MAX_SCRIPTS: Final = 8
# An address that is only an expression of a template, or a name.
_NAMED_ADDRESS: Final = re.compile(
    r"""(?:[:\[]|v-bind:|\[attr\.)?src\]?\s*=\s*(?:["']?_{4,}["']?|["']?\{\s*[\w$.?]+\s*\}["']?"""
    r"""|(?<=:src=|src\]=)["'][\w$.?| ]+["'])""",
    re.IGNORECASE,
)
_UNKNOWN_HOST: Final = re.compile(r"//_{3,}")
_CONTAINERS: Final = frozenset({"arrow_function", "function_expression", "object", "array"})
_CALLS: Final = frozenset({"call_expression", "new_expression"})
# Of Python: a form field, and the base class of a form.
_FIELDS: Final = frozenset({"call", "identifier"})


def loaded(source: Source, block: Block, node: SgNode, capture: str | None) -> tuple[Loaded, ...]:
    """Returns the candidate's vendors and addresses, by a capture or its whole code. Cached for all rules."""
    key = node, capture
    if key not in block.loaded:
        block.loaded[key] = tuple(dict.fromkeys(_loaded(source, block, node, capture)))
    return block.loaded[key]


def _loaded(source: Source, block: Block, node: SgNode, capture: str | None) -> Iterator[Loaded]:
    if node.kind() in _FIELDS and (vendor := calls().of_field((node.field("function") or node).text()[:_LONGEST_NAME])):
        yield Loaded(vendor, "")
        return
    if node.kind() in _CALLS and (start := _started(source, block, node)):
        yield start
        return
    place = node if capture is None else node.get_match(capture)
    if place is None and capture == "URL":
        place = _sent(source, node) or _inserted(block, node)
    if place is None:
        yield from _of_element(node)
        return
    known = False
    in_markup = block.language not in SCRIPTS and place.kind() == "attribute"
    bound = (
        (*_bound(source, place), *_computed(source, block, place), *_of_template(source, block, place))
        if in_markup
        else ()
    )
    for address in (*bound, *_addresses(block, place)):
        if found := _at(source, address):
            known = True
            yield found
    # An address that is written out says more.
    written_out = "//" in place.text() and "___" not in place.text()
    if in_markup and not known and not written_out:
        yield from _of_element(node)
    if not known and _NAMED_ADDRESS.fullmatch(place.text()[:_LONGEST_NAME]) and "nocookie" not in source.text:
        yield from islice(_by_name(source, block, node, place), 1)


def _by_name(source: Source, block: Block, node: SgNode, place: SgNode) -> Iterator[Loaded]:
    """Yields the vendors that the name of an address says, or that of the file with a frame."""
    written = _original(source, block, place) or place.text()
    chosen = "?" in written.replace("?.", "")  # by a condition, which may have a vendor's name, too
    file = "" if _SCRIPT_TAG.match(node.text()[:_LONGEST_NAME]) else source.path.rpartition("/")[2]
    yield from (Loaded(vendor, "") for vendor in calls().named_in(f"{file} {'' if chosen else written}"))


def _of_element(node: SgNode) -> Iterator[Loaded]:
    if element := calls().of_element(node.text()[:_LONGEST_TAG]):
        vendor, started = element
        yield Loaded(vendor, "", started)


def _of_template(source: Source, block: Block, attribute: SgNode) -> Iterator[str]:
    """Yields the addresses in the template's expressions that an attribute has as its value."""
    original = _original(source, block, attribute)
    for address in source.template.variables.addresses_in(original) if source.template and original else ():
        # A host is a part of the address.
        yield address if "//" in address else _UNKNOWN_HOST.sub(f"//{address}", attribute.text())


def _original(source: Source, block: Block, attribute: SgNode) -> str:
    """Returns an attribute as the template has it, or an empty string if no expression is in it."""
    if source.template is None:
        return ""
    span = attribute.range()
    start, end = (source.template.origin(block.start + it.index) for it in (span.start, span.end))
    original = source.original[start : min(end, start + _LONGEST_ARGUMENTS)]
    return "" if original == attribute.text() and "${" not in original else original


def _bound(source: Source, attribute: SgNode) -> Iterator[str]:
    """Yields the addresses that the scripts of a component compute for an attribute of its markup."""
    bound = _BOUND.fullmatch(_SHORT.sub("src={src}", attribute.text()[:_LONGEST_NAME]))
    if bound:
        for written in (bound["name"], *_DOTTED.findall(bound["arguments"] or "")):
            yield from _named(source, written)


def _computed(source: Source, block: Block, attribute: SgNode) -> Iterator[str]:
    """Yields the addresses that an attribute of a component puts together, of names that its scripts know."""
    found = _EXPRESSION.match(block.text, attribute.range().start.index)
    if found is None or not source.path.endswith(_WITH_SCRIPTS):
        return
    mixed = found["mixed"] and f"`{found['mixed'].replace('{', '${')}`"
    written = mixed or found["double"] or found["single"] or found["braces"]
    if "+" not in written and "${" not in written:
        return
    expression = SgRoot(f"({written})", "typescript").root().find({"rule": {"kind": "parenthesized_expression"}})
    for script in source.blocks[:_MAX_SCRIPTS]:
        if expression is not None and script.language in SCRIPTS:
            yield from (value for value in values(script, expression) if "//" in value)


def _named(source: Source, written: str) -> Iterator[str]:
    """Yields the addresses that a name in the markup of a component has."""
    if written in source.given:
        yield from source.given[written].splitlines()
    if source.template is not None:
        yield from source.template.variables.addresses.get(written, ())
    holder, _, members = written.partition(".")
    first, _, rest = members.partition(".")
    inner = rest if first == "value" else members
    listed = looped_in(source.original).get(holder, "") if members != "value" else ""
    for script in source.blocks[:_MAX_SCRIPTS]:
        if script.language in SCRIPTS:
            found = named_values(script, listed or holder, inner) or named_values(script, f"this.{holder}", inner)
            yield from (_PLACEHOLDER.sub("_", value) for value in found)


def _started(source: Source, block: Block, node: SgNode) -> Loaded | None:
    callee = node.field("function") or node.field("constructor")
    arguments = node.field("arguments")
    if callee is None or arguments is None:
        return None
    shape = calls().of_call(callee.text(), arguments.text())
    # An object of the file's own, which has a vendor's name.
    own = block.constants.get(callee.text().partition(".")[0], ())
    if (
        shape is None
        or any(value.kind() == "object" for value in own)
        or any(name in source.imported for name in _WORD.findall(callee.text()[-100:]))
    ):
        return None
    address = source.catalogue.first_in(arguments.text())
    host = source.catalogue.host_at(arguments.text()) if address is shape.vendor else ""
    return Loaded(shape.vendor, host, not shape.alone)


def _sent(source: Source, node: SgNode) -> SgNode | None:
    """Returns the arguments of a call with which code on the visitor's device sends a hit."""
    sent, callee = node.get_match("SENT"), node.field("function")
    if sent is None or callee is None or not _HIT.match(sent.text()[:_LONGEST_ARGUMENTS]):
        return None
    name = callee.text()[-_LONGEST_NAME:].rpartition(".")[2]
    return sent if name in _SENDS and source.first(_ON_DEVICE) else None


def _inserted(block: Block, node: SgNode) -> SgNode | None:
    """Returns the arguments of a call that adds a script with the address it is given, or that sends a beacon."""
    sent, callee = node.get_match("SENT"), node.field("function")
    if sent is None or callee is None:
        return None
    name = callee.text()[-_LONGEST_NAME:].rpartition(".")[2]
    if name == "sendBeacon" or name in block.inserters:
        return sent
    adds = _ADDS if callee.kind() == "identifier" else _ADDS_MEMBER
    if adds.search(name) and _SCRIPT.search(sent.text()[:_LONGEST_ARGUMENTS]):
        return sent
    return None


def scripts_of(block: Block, node: SgNode) -> Iterator[str]:
    """Yields the addresses from which code visibly loads a script."""
    place = node.get_match("URL") or _inserted(block, node)
    if place is None:
        return
    certain = _adds_script(block, node)
    for written in _addresses(block, place):
        address = written.removeprefix("src=").strip("{}\"'`")
        if certain or SCRIPT_FILE.match(address):
            yield address


def _adds_script(block: Block, node: SgNode) -> bool:
    """Returns whether the candidate sets the address of a script element, or calls a function that says so."""
    if node.kind() == "pair":
        # An object as an argument: the call gives it its meaning.
        given, call = node.ancestors()[1:3]
        return given.kind() != "arguments" or "script" in call.text()[:_LONGEST_NAME].lower()
    if node.kind().startswith("jsx_"):
        tag = node.field("name")
        return tag is None or tag.text().lower() == "script"
    changed = node.field("left") or node.field("function")
    if changed is None:
        return False
    element = changed.field("object")
    if element is None or not changed.text().endswith((".src", ".setAttribute")):
        name = changed.text()[-_LONGEST_NAME:].rpartition(".")[2]
        return name != _IN_WORKER and name.lower().endswith(("script", "scripts"))
    written = element.text()[:_LONGEST_ARGUMENTS]
    made = (value.text()[:_LONGEST_ARGUMENTS] for value in block.constants.get(written, ()))
    return any(CREATED.search(code) for code in (written, *made))


def _addresses(block: Block, place: SgNode) -> Iterator[str]:
    """Yields the addresses that an expression, an attribute, or an argument list can have."""
    if place.kind() not in _ASSEMBLED:
        yield _PLACEHOLDER.sub("_", without_comments(place))
    if block.language not in SCRIPTS:
        return
    if place.kind() == "arguments":
        parts = arguments_of(place)[:_MAX_ARGUMENTS]
    elif place.kind() == "jsx_attribute":
        parts = [child for child in place.children() if child.kind() == "jsx_expression"]
    else:
        parts = [place]
    for part in parts:
        if part.kind() in _CONTAINERS:
            continue
        for folded in values(block, part):
            value = _PLACEHOLDER.sub("_", folded)
            if _MARKUP.search(value):
                yield from _ADDRESS_OF_MARKUP.findall(value)
            else:
                yield value


def _at(source: Source, address: str) -> Loaded | None:
    vendor = source.catalogue.first_in(address)
    if vendor is not None and vendor.id == "facebook-sdk":  # the same host serves the pixel, per language
        vendor = calls().of_path(address.strip("\"'`")) or vendor
    if vendor is not None and vendor.category == "cdn":  # the path says which package it serves
        vendor = calls().of_path(address.strip("\"'`")) or vendor
    if vendor is not None and vendor.id == "vimeo" and "dnt=1" in address:
        return None  # without identifiers
    if vendor is not None:
        if vendor.id == "google-analytics" and any(mark in address for mark in TAGS_OF_ADS):
            vendor = source.catalogue.vendors["google-ads"]
        return Loaded(vendor, source.catalogue.host_at(address))
    vendor = calls().of_path(address.strip("\"'`"))
    return Loaded(vendor, source.catalogue.host_at(address)) if vendor else None


def without_comments(node: SgNode) -> str:
    """Returns the code of a node without comments."""
    text = node.text()
    if not any(mark in text for mark in ("/*", "//", "#", "<!--")):
        return text
    start = node.range().start.index
    kept, after = [], 0
    for comment in node.find_all(_COMMENTS):
        span = comment.range()
        kept.append(text[after : span.start.index - start])
        after = span.end.index - start
    return " ".join([*kept, text[after:]])
