"""Finds the element or statement that an edit would change, in the file's own text. Runs inside the sandbox.

A place is left out if an edit isn't safe: in another syntax than that of pages and scripts, inside a string, in code of
a template, or if the lines contain something that looks like a secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ast_grep_py import Config, SgNode

from openassent_analysis import secrecy
from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.conditions import Candidate
from openassent_analysis.places import BODY, CHILD, IMPORT, MAX_RANGES, MAX_TEXT, STATEMENT, TAG, UNUSED, VALUE, Place
from openassent_analysis.sources import Source
from openassent_analysis.statements import FUNCTIONS
from openassent_analysis.templates.dialects import dialect_of

_TAGS: Final = frozenset({"start_tag", "self_closing_tag"})
_JSX: Final = frozenset({"jsx_opening_element", "jsx_self_closing_element"})
_AROUND: Final = frozenset({"jsx_element", "jsx_fragment"})
_SCRIPT_NAMES: Final = frozenset({"script", "Script"})
_HOLDS_STATEMENTS: Final = frozenset({"program", "statement_block", "if_statement", "else_clause"})
_HEADS: Final = frozenset({"head", "Head"})
_NAMES: Final[Config] = {"rule": {"kind": "identifier"}}
_LONGEST_LINE_BEFORE: Final = 200
_MAX_ANCESTORS: Final = 30
_MAX_AROUND: Final = 3
Range = tuple[int, int]


def places_of(candidate: Candidate) -> list[Place]:
    """Returns the place of a candidate, and for code with imports also the first one. Empty if no edit is safe."""
    source = candidate.source
    dialect = dialect_of(source.path)
    if dialect is not None and (dialect.in_strings or dialect.indented):
        return []
    found = _element(candidate) or _statement(candidate)
    if found is None:
        return []
    if candidate.started and found.kind != STATEMENT:
        found = found._replace(parts={**found.parts, "started": (found.start, found.end)})
    places = [found]
    if found.kind != TAG:
        places += filter(None, (_first_import(source), _body(source) if found.kind != STATEMENT else None))
    text = "\n".join(place.text for place in places)
    return [] if len(text) > MAX_TEXT or secrecy.masked(text) != text else places


def _element(candidate: Candidate) -> Place | None:
    block, node = candidate.block, candidate.node
    if block.language not in SCRIPTS:
        return _tag(candidate.source, block, node) if node.kind() in _TAGS and block.outer is None else None
    if block.outer is None:
        return _jsx(candidate.source, block, node) if node.kind() in _JSX else None
    if block.host is None:
        return None
    if block.outer.language not in SCRIPTS:
        tag = block.host if block.host.kind() in _TAGS else block.host.child(0)
        return _tag(candidate.source, block.outer, tag) if tag is not None and block.outer.outer is None else None
    if block.outer.outer is not None:
        return None
    element = next((it for it in _elements_around(block.host) if _name(it) in _SCRIPT_NAMES), None)
    return _jsx(candidate.source, block.outer, element) if element is not None else None


def _elements_around(node: SgNode) -> Iterator[SgNode]:
    for around in node.ancestors()[:_MAX_ANCESTORS]:
        if around.kind() in FUNCTIONS:
            return
        if around.kind() in _JSX:
            yield around
        elif around.kind() == "jsx_element" and (tag := around.child(0)) is not None:
            yield tag


def _name_of(tag: SgNode) -> SgNode | None:
    if tag.kind() in _JSX:
        return tag.field("name")
    return next((it for it in tag.children() if it.kind() == "tag_name"), None)


def _name(tag: SgNode) -> str:
    name = _name_of(tag)
    return name.text() if name is not None else ""


def _tag(source: Source, block: Block, tag: SgNode) -> Place | None:
    element = tag.parent() if tag.kind() == "start_tag" else None
    # An image or a broken element ends with its tag.
    if element is None or element.children()[-1].kind() != "end_tag":
        element = tag
    around: SgNode | None = element
    for _ in range(_MAX_AROUND):
        around = around.parent() if around is not None else None
        if around is not None and _is_noscript(around):
            return _place(source, block, TAG, tag, element, around)
    return _place(source, block, TAG, tag, element, None)


def _is_noscript(element: SgNode) -> bool:
    tag = element.child(0)
    return tag is not None and _name(tag).lower() == "noscript"


def _jsx(source: Source, block: Block, tag: SgNode) -> Place | None:
    element = tag.parent() if tag.kind() == "jsx_opening_element" else tag
    if element is None:
        return None
    around = element.parent()
    kind = CHILD if around is not None and around.kind() in _AROUND else VALUE
    noscript = around if around is not None and kind == CHILD and _is_noscript(around) else None
    return _place(source, block, kind, tag, element, noscript)


def _place(  # noqa: PLR0917
    source: Source, block: Block, kind: str, tag: SgNode, element: SgNode, noscript: SgNode | None
) -> Place | None:
    name = _name_of(tag)
    if name is None:
        return None
    nodes = {"tag": tag, "name": name}
    if noscript is not None:
        nodes["noscript"] = noscript
    if kind != TAG and any(_name(it) in _HEADS for it in _elements_around(element)):
        nodes["head"] = element
    for attribute in tag.children():
        if attribute.kind() in {"attribute", "jsx_attribute"} and len(nodes) < MAX_RANGES:
            written = attribute.text().partition("=")[0].strip()
            nodes.setdefault(f"@{written[:100]}", attribute)
    ranges = {part: _range(source, block, node) for part, node in nodes.items()}
    whole = _range(source, block, element)
    outer = ranges.get("noscript") or whole
    if outer is None or whole is None:
        return None
    kept = {part: span for part, span in ranges.items() if span is not None}
    if len(kept) < len(ranges) or _is_code(source, whole[0]):
        return None
    return _of_lines(source, kind, outer, whole, kept)


def _range(source: Source, block: Block, node: SgNode) -> Range | None:
    """Returns the range of a node in the file, or None if the file's text isn't that of the page there."""
    span = node.range()
    start, end = block.start + span.start.index, block.start + span.end.index
    if source.template is None:
        return start, end
    first, last = source.template.origin(start), source.template.origin(end - 1)
    same = source.original[first] == source.text[start] and source.original[last] == source.text[end - 1]
    return (first, last + 1) if same and last - first == end - 1 - start else None


def _is_code(source: Source, start: int) -> bool:
    """Returns whether a place is inside code of PHP, or in an escaped string."""
    opened = source.original.rfind("<?", 0, start)
    inside = opened >= 0 and source.original.find("?>", opened, start) < 0
    return source.template is not None and inside and not source.original.startswith("<?xml", opened)


def _of_lines(source: Source, kind: str, outer: Range, whole: Range, parts: dict[str, Range]) -> Place | None:
    """Returns the place with its lines, and the line before if it is short, so that an edit can remove lines."""
    text = source.original
    start = text.rfind("\n", 0, outer[0]) + 1
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    if start and start - before <= _LONGEST_LINE_BEFORE:
        start = before
    end = text.find("\n", max(outer[1], 1) - 1)
    end = len(text) if end < 0 else end
    lines = text[start:end].removesuffix("\r")
    if len(lines) > MAX_TEXT:
        return None
    moved = {part: (first - start, last - start) for part, (first, last) in parts.items()}
    return Place(kind, text.count("\n", 0, start) + 1, lines, whole[0] - start, whole[1] - start, moved)


def _statement(candidate: Candidate) -> Place | None:
    """Returns the statement of a call of an imported package, if its value isn't used."""
    block, node = candidate.block, candidate.node
    if block.language not in SCRIPTS or block.outer is not None or candidate.host or candidate.started:
        return None
    statement = node.parent()
    if node.kind() != "call_expression" or statement is None or statement.kind() != "expression_statement":
        return None
    around = statement.parent()
    if around is None or around.kind() not in _HOLDS_STATEMENTS:
        return None
    start, end = block.start + statement.range().start.index, block.start + statement.range().end.index
    span = _plain_range(candidate.source, start, end)
    if span is None:
        return None
    # Only one statement can take its place.
    parts = {} if around.kind() in {"program", "statement_block"} else {"branch": span}
    return _of_lines(candidate.source, STATEMENT, span, span, parts)


def _plain_range(source: Source, start: int, end: int) -> Range | None:
    if source.template is None:
        return start, end
    first = source.template.origin(start)
    return (first, first + end - start) if source.original.startswith(source.text[start:end], first) else None


def _imports(source: Source) -> list[SgNode]:
    if source.main.language not in SCRIPTS or source.template is not None:
        return []
    return [it for it in source.main.root.children() if it.kind() == "import_statement"]


def _first_import(source: Source) -> Place | None:
    first = next(iter(_imports(source)), None)
    return _whole(source, IMPORT, first) if first is not None else None


def _whole(source: Source, kind: str, statement: SgNode) -> Place | None:
    span = statement.range().start.index, statement.range().end.index
    return _of_lines(source, kind, span, span, {})


def _body(source: Source) -> Place | None:
    if "<body" not in source.text or source.template is not None:
        return None
    body = source.main.root.find({"rule": {"kind": "jsx_opening_element", "has": {"field": "name", "regex": "^body$"}}})
    name = _name_of(body) if body is not None else None
    if body is None or name is None:
        return None
    parts = {"tag": _span(body), "name": _span(name)}
    return _of_lines(source, BODY, parts["tag"], parts["tag"], parts)


def _span(node: SgNode) -> Range:
    return node.range().start.index, node.range().end.index


def unused_imports(source: Source, places: Sequence[Place]) -> list[Place]:
    """Returns the imports of one name that only these elements use."""
    elements = [it for it in places if it.kind in {CHILD, VALUE}]
    counted = Counter[str]()
    for element in elements:
        counted[element.name] += 1 if element.code.endswith("/>") else 2
    found = []
    for statement in _imports(source):
        names = [
            it for clause in statement.children() if clause.kind() == "import_clause" for it in clause.find_all(_NAMES)
        ]
        if len(names) == 1 and counted[names[0].text()] == len(source.main.uses.get(names[0].text(), ())) - 1:
            found.append(_whole(source, UNUSED, statement))
    return [it for it in found if it is not None]
