"""A source file as trees: its own, and one for every script that stands inside it.

An HTML, Vue or Svelte file holds script elements; JSX holds scripts in template strings. Each is a block with a tree of
its own and a place in the file. A tree is built when a rule first asks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ast_grep_py import Config, SgNode, SgRoot

from scan_execution.analysis.catalogue import Catalogue, Vendor

SCRIPTS: Final = frozenset({"javascript", "typescript", "tsx"})

_TYPE: Final = re.compile(r"""\btype\s*=\s*["']?([\w/+.-]+)""", re.IGNORECASE)
_TYPESCRIPT: Final = re.compile(r"""\blang\s*=\s*["']?tsx?\b""", re.IGNORECASE)
_RUNS: Final = re.compile(
    r"(?:text|application)/(?:javascript|ecmascript|x-javascript|babel|partytown)|module|text/plain"
)
_SCRIPT_ELEMENTS: Final[Config] = {"rule": {"kind": "script_element"}}
_JSX_SCRIPTS: Final[Config] = {
    "rule": {
        "kind": "template_string",
        "any": [
            {"inside": {"kind": "jsx_expression", "inside": {"kind": "jsx_element", "regex": "^<[Ss]cript"}}},
            {"inside": {"kind": "pair", "has": {"field": "key", "regex": "^['\"]?(__html|innerHTML)"}}},
        ],
    }
}
# Marks the block of a template's condition: Django and Jinja, Handlebars, EJS, Svelte.
_CONDITION: Final = re.compile(
    r"\{%-?\s*(?:(?P<if>if|unless)\b(?P<test>[^%]{0,300})|(?P<end>endif|endunless)\b)"
    r"|\{\{[#^](?:(?P<hif>if|unless)\b(?P<htest>[^}]{0,300}))|(?P<hend>\{\{/(?:if|unless)\}\})"
    r"|\{#if\b(?P<stest>[^}]{0,300})|(?P<send>\{/if\})"
    r"|<%[-_]?\s*if\s*\((?P<etest>[^%]{0,300})|(?P<eend><%[-_]?\s*\}\s*[-_]?%>)"
)


@dataclass
class Block:
    """One tree of a file. `host` is the element of the outer block that this one stands in."""

    language: str
    text: str
    start: int
    outer: Block | None = None
    host: SgNode | None = None

    @cached_property
    def root(self) -> SgNode:
        return SgRoot(self.text, self.language).root()

    @cached_property
    def uses(self) -> dict[str, list[SgNode]]:
        """Identifiers by name, each with every place where it stands."""
        found: dict[str, list[SgNode]] = {}
        for node in self.root.find_all({"rule": {"kind": "identifier"}}):
            found.setdefault(node.text(), []).append(node)
        return found


@dataclass
class Source:
    """A file's text, and what is known of it before any tree is built."""

    path: str
    text: str
    language: str
    catalogue: Catalogue

    @cached_property
    def addresses(self) -> list[tuple[int, Vendor]]:
        return list(self.catalogue.addresses_in(self.text))

    @cached_property
    def packages(self) -> dict[str, Vendor]:
        return self.catalogue.packages_in(self.text)

    @cached_property
    def imported(self) -> dict[str, Vendor]:
        """The vendors' packages by the names that the file gives to what it imports from them."""
        found = {}
        for package, vendor in self.packages.items():
            quoted = rf"""["']{re.escape(package)}(?:/[\w/-]+)?["']"""
            clauses = rf"import\s+(?:type\s+)?([^;\"'`]{{1,500}}?)\s+from\s+{quoted}"
            required = rf"(?:const|let|var)\s+([^=;]{{1,300}}?)=\s*(?:await\s+)?(?:require|import)\s*\(\s*{quoted}"
            for match in re.finditer(f"{clauses}|{required}", self.text):
                for name in re.findall(r"[A-Za-z_$][\w$]*", match[1] or match[2]):
                    found[name] = vendor
        return found

    @cached_property
    def main(self) -> Block:
        return Block(self.language, self.text, 0)

    @cached_property
    def blocks(self) -> list[Block]:
        """The file's own tree first, then the scripts inside it."""
        found = [self.main]
        if self.language == "html":
            found.extend(self._script_elements())
        for block in list(found):
            if block.language in {"javascript", "tsx"} and re.search(r"<[Ss]cript|__html|innerHTML", block.text):
                found.extend(_scripts_in_jsx(block))
        return found

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a character."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_start(self, line: int) -> int:
        """Where a line (from 1) begins; the end of the text for the line behind the last one."""
        return self._line_starts[line - 1] if line <= len(self._line_starts) else len(self.text)

    def first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match in the text, looked for once however many candidates ask."""
        if pattern not in self._searched:
            self._searched[pattern] = pattern.search(self.text)
        return self._searched[pattern]

    @cached_property
    def _searched(self) -> dict[re.Pattern[str], re.Match[str] | None]:
        return {}

    @cached_property
    def template_conditions(self) -> list[tuple[str, int, int]]:
        """(condition, start, end) of every conditional block of a template language."""
        return list(self._template_conditions())

    def _template_conditions(self) -> Iterator[tuple[str, int, int]]:
        opened: list[tuple[str, int]] = []
        for match in _CONDITION.finditer(self.text):
            if any(match[end] for end in ("end", "hend", "send", "eend")):
                if opened:
                    test, start = opened.pop()
                    yield test, start, match.start()
            else:
                test = match["test"] or match["htest"] or match["stest"] or match["etest"] or ""
                opened.append((test, match.end()))

    def _script_elements(self) -> Iterator[Block]:
        if "<script" not in self.text.lower():
            return
        for element in self.main.root.find_all(_SCRIPT_ELEMENTS):
            tag = element.child(0)
            body = next((child for child in element.children() if child.kind() == "raw_text"), None)
            if tag is None or body is None:
                continue
            opening = tag.text()
            kind = _TYPE.search(opening)
            if kind and not _RUNS.fullmatch(kind[1].lower()):
                continue
            language = "typescript" if _TYPESCRIPT.search(opening) else "javascript"
            yield Block(language, body.text(), body.range().start.index, self.main, element)


def _scripts_in_jsx(block: Block) -> Iterator[Block]:
    for string in block.root.find_all(_JSX_SCRIPTS):
        # Substitutions become names of the same length, so that the rest parses and keeps its place.
        text = re.sub(r"\$\{[^{}]*\}", lambda match: "_" * len(match[0]), string.text()[1:-1])
        yield Block("javascript", text, block.start + string.range().start.index + 1, block, string)
