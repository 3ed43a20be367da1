"""The trees of a source file: its own, and one for each script embedded in it.

HTML, Vue, and Svelte files contain script elements; JSX and code contain scripts and pages in strings. Each is a block
with its own tree and its offset in the file. A tree is built when a rule first needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from ast_grep_py import Config, SgNode, SgRoot

from openassent_analysis.catalogue import Vendor
from openassent_analysis.files import without_open_comments
from openassent_analysis.reading import alternatives, resource
from openassent_analysis.statements import FUNCTIONS

SCRIPTS: Final = frozenset({"javascript", "typescript", "tsx"})

_TYPE: Final = re.compile(r"""\btype\s*=\s*["']?([\w/+.-]+)""", re.IGNORECASE)
_TYPESCRIPT: Final = re.compile(r"""\blang\s*=\s*["']?tsx?\b""", re.IGNORECASE)
_RUNS: Final = re.compile(
    r"(?:text|application)/(?:javascript|ecmascript|x-javascript|babel|partytown)|module|text/plain"
    rf"|{alternatives(resource('frameworks')['started_later'])}"
)
_HOLDS_SCRIPT: Final = re.compile(
    r"<[Ss]cript|__html|innerHTML|\.(?:innerText|text(?:Content)?)\s*=|createTextNode|\beval\(|\btemplate:|\[\s*[\"']script[\"']|\btag[\"']?\s*:\s*[\"']script"
    r"|[\"'`]\s{0,20}[!;]?\(?function\s?\(\w,"
)
# A name whose value becomes the text of an element, or is run.
_SHOWN: Final = re.compile(
    r"(?:(?:__html|innerHTML|\.(?:innerText|text(?:Content)?))[\"']?\s{0,4}[:=]\s{0,4}\{?"
    r"|(?:createTextNode|\beval)\()\s{0,4}(\w{1,60})\b(?![.(])"
)
# The beginning of a string with a tag's code.
_SNIPPET: Final = re.compile(r"[\"'`]\s{0,20}[!;]?\(?function\s?\(\w,")
# A function whose result becomes the text of an element.
_RETURNED: Final = re.compile(r"(?:__html|innerHTML)[\"']?\s{0,4}:\s{0,4}(?:this\.)?(\w{1,60})\(")
_STRINGS: Final = frozenset({"string", "template_string"})
# The beginning of a string that is a page or the head of one, which a server writes.
_PAGE: Final = re.compile(r"<(?i:!doctype|html|head)\b")
_LOADS_IN_PAGE: Final = re.compile(r"<(?i:script|iframe)\b")
_SUBSTITUTION: Final = re.compile(r"\$\{[^{}]*\}")
_ESCAPED: Final = re.compile(r"(<?)\\(?:[nrt]|(.))", re.DOTALL)
_CONSTANTS: Final = resource("queries")["constants"]
_FIELDS: Final = frozenset({"public_field_definition", "field_definition"})
_LONGEST_NAME: Final = 200
# A property that a pattern takes from an object: const {video} = config
_TAKEN: Final = "shorthand_property_identifier_pattern"
# window.name and window["name"], which code also calls by the name alone.
_GLOBAL: Final = re.compile(r"""^(?:window|globalThis|self)(?:\.|\[["'])([\w$]+)(?:["']\])?$""")
_INDEX: Final = re.compile(r"\[[A-Za-z_$][\w$.]*\]")
_MAX_VALUES: Final = 4
_SCRIPT_ELEMENTS: Final[Config] = {"rule": {"kind": "script_element"}}
PLACE_OF_MARKUP: Final = resource("queries")["place_of_markup"]
_SCRIPTS_IN_JSX: Final = resource("queries")["scripts_in_jsx"]
_CODE: Final = re.compile(r"[(=]")
# What a browser shows as text, up to the end tag or the end of the page.
_TEXT: Final = re.compile(r"<textarea\b[^<>]*+>[^<]*+(?:<(?!/textarea\b)[^<]*+)*+", re.IGNORECASE)
_SCRIPTS_IN_STRINGS: Final = resource("queries")["scripts_in_strings"]
_SNIPPETS: Final = resource("queries")["snippets"]
_RETURNED_STRINGS: Final = resource("queries")["returned_strings"]


class Loaded(NamedTuple):
    """A vendor that code loads or starts. `host` is empty if the code doesn't show an address.

    started: something else loads the vendor's code, possibly in another file.
    """

    vendor: Vendor
    host: str
    started: bool = False


def _without_elements(area: re.Match[str]) -> str:
    tag, end, content = area[0].partition(">")
    return tag + end + content.replace("<", " ")


@dataclass
class Block:
    """One tree of a file. `host` is the element of the outer block that contains it."""

    language: str
    text: str
    start: int
    outer: Block | None = None
    host: SgNode | None = None

    @cached_property
    def root(self) -> SgNode:
        text = self.text
        if self.language == "html":
            text = _TEXT.sub(_without_elements, without_open_comments(text))
        return SgRoot(text, self.language).root()

    @cached_property
    def uses(self) -> dict[str, list[SgNode]]:
        """All identifier nodes, by name."""
        found: dict[str, list[SgNode]] = {}
        for node in self.root.find_all({"rule": {"kind": "identifier"}}):
            found.setdefault(node.text(), []).append(node)
        return found

    @cached_property
    def constants(self) -> dict[str, list[SgNode]]:
        """The first values that are assigned to each name or property, and functions, if they contain a string."""
        found: dict[str, list[SgNode]] = {}
        for node in self.root.find_all(_CONSTANTS[self.language]):
            name = node.field("name") or node.field("left") or node.field("property")
            value = node.field("value") or node.field("right")
            value = node if node.kind() in FUNCTIONS else value
            if name is not None and name.kind() == "array_pattern":  # const [address, setAddress] = useState(…)
                name = name.child(1)
            if name is not None and name.kind() == "object_pattern":
                for part in name.children():
                    if part.kind() == _TAKEN:
                        found.setdefault(part.text()[:_LONGEST_NAME], [part])
            elif name is not None and value is not None:
                written = f"this.{name.text()[:_LONGEST_NAME]}" if node.kind() in _FIELDS else plain_name(name)
                known = found.setdefault(written, [])
                if len(known) < _MAX_VALUES:
                    known.append(value)
        return found

    @cached_property
    def properties(self) -> dict[str, list[SgNode]]:
        """The first values of the properties of object literals, by name."""
        found: dict[str, list[SgNode]] = {}
        for pair in self.root.find_all({"rule": {"kind": "pair"}}):
            key, value = pair.field("key"), pair.field("value")
            if key is not None and value is not None:
                known = found.setdefault(key.text()[:_LONGEST_NAME], [])
                if len(known) < _MAX_VALUES:
                    known.append(value)
        return found

    @cached_property
    def inserters(self) -> dict[str, SgNode]:
        """The functions that add a script or a frame whose address they are given, by name."""
        return inserters_of(self.root)

    @cached_property
    def loaded(self) -> dict[tuple[SgNode, str | None], tuple[Loaded, ...]]:
        """A cache for `loading`: the loads of each node, which several rules need."""
        return {}

    @cached_property
    def named(self) -> dict[str, tuple[str, ...]]:
        """A cache for `values`: the strings that are assigned to a name."""
        return {}


def plain_name(node: SgNode) -> str:
    """Returns a name or a property as written, without the global object, and with `[]` for any index."""
    written = _INDEX.sub("[]", node.text()[:_LONGEST_NAME])
    shared = _GLOBAL.match(written)
    return shared[1] if shared else written


def script_elements(page: Block) -> Iterator[Block]:
    """Yields the scripts inside the elements of a page."""
    if "<script" not in page.text.lower():
        return
    for element in page.root.find_all(_SCRIPT_ELEMENTS):
        tag = element.child(0)
        body = next((child for child in element.children() if child.kind() == "raw_text"), None)
        if tag is None or body is None:
            continue
        opening = tag.text()
        kind = _TYPE.search(opening)
        if kind and not _RUNS.fullmatch(kind[1].lower()):
            continue
        language = "typescript" if _TYPESCRIPT.search(opening) else "javascript"
        yield Block(language, body.text(), page.start + body.range().start.index, page, element)


def shown_names(text: str) -> list[str]:
    """Returns the names in a file whose values become the text of an element, or are run."""
    return list(dict.fromkeys(_SHOWN.findall(text)))


def scripts_in_strings(block: Block, shown: list[str]) -> Iterator[Block]:
    """Yields the scripts and pages that strings of code contain. shown: the names of the file with such values."""
    if not (shown or _HOLDS_SCRIPT.search(block.text) or _PAGE.search(block.text)):
        return
    # TypeScript's own grammar has no JSX.
    strings = block.root.find_all(_SCRIPTS_IN_STRINGS if block.language == "typescript" else _SCRIPTS_IN_JSX)
    if shown and _SNIPPET.search(block.text):
        strings += block.root.find_all(_SNIPPETS)
    for name in shown:
        strings += [
            it
            for it in block.constants.get(name, ())
            if it.kind() in _STRINGS and not it.text()[1:].lstrip().startswith("<")
        ]
    for name in dict.fromkeys(_RETURNED.findall(block.text)):
        for function in block.constants.get(name, ()):
            strings += _results_of(function)
    for string in dict.fromkeys(strings):
        # Replaces substitutions with names of the same length, so that the rest parses and keeps its offsets.
        text = _SUBSTITUTION.sub(lambda match: "_" * len(match[0]), string.text()[1:-1])
        start = block.start + string.range().start.index + 1
        if text.lstrip().startswith("<"):
            text = _ESCAPED.sub(lambda match: f" {match[1]}{match[2] or ' '}", text)
            if _LOADS_IN_PAGE.search(text):
                page = Block("html", text, start, block, string)
                yield page
                yield from script_elements(page)
        elif _CODE.search(text):
            yield Block("javascript", text, start, block, string)


def _results_of(function: SgNode) -> list[SgNode]:
    """Returns the strings with code that a function returns."""
    body = function.field("body") if function.kind() in FUNCTIONS else None
    if body is None:
        return []
    found = [body, *body.find_all(_RETURNED_STRINGS)]
    return [it for it in found if it.kind() in _STRINGS and not it.text()[1:].lstrip().startswith("<")]


_SOURCES: Final = resource("queries")["set_sources"]
_NAMING: Final = frozenset({
    "variable_declarator", "pair", "assignment_expression", "public_field_definition", "field_definition",
})  # fmt: skip
_PARAMETERS: Final = resource("queries")["parameters"]
_INSERTED: Final = ("script", "iframe")
_MAX_PLACES: Final = 40
_MAX_ANCESTORS: Final = 60
_MAX_WRAPPERS: Final = 4
_LONGEST: Final = 400


def inserters_of(root: SgNode) -> dict[str, SgNode]:
    """Returns the functions that add an element whose address is a parameter, by name, with the place that does it."""
    found: dict[str, SgNode] = {}
    for place in root.find_all(_SOURCES)[:_MAX_PLACES]:
        value = place.field("right") or place.field("arguments")
        used = {it.text() for it in value.find_all({"rule": {"kind": "identifier"}})[:8]} if value else set()
        for function in place.ancestors()[:_MAX_ANCESTORS] if used else ():
            if function.kind() not in FUNCTIONS or used.isdisjoint(_parameters(function)):
                continue
            if (name := _name(function)) and any(element in function.text() for element in _INSERTED):
                found.setdefault(name, place)
            break
    return found


def _parameters(function: SgNode) -> set[str]:
    only, several = function.field("parameter"), function.field("parameters")
    if only is not None:
        return {only.text()[:_LONGEST]}
    return {name.text() for name in several.find_all(_PARAMETERS)[:20]} if several is not None else set()


def _name(function: SgNode) -> str | None:
    name = function.field("name")
    around = function.parent()
    for _ in range(_MAX_WRAPPERS):  # const add = useCallback((src) => ...)
        if name is not None or around is None:
            break
        if around.kind() in _NAMING:
            name = around.field("name") or around.field("key") or around.field("left") or around.field("property")
        around = around.parent()
    return name.text()[:_LONGEST].rpartition(".")[2].strip("\"'") if name is not None else None
