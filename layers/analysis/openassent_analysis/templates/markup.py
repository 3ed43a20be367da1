"""The HTML that a template writes: its text, where each part of it comes from, and under which conditions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from openassent_analysis.templates.variables import Variables

# Deeper conditions, and the conditions of earlier branches beyond these, are ignored.
_MAX_DEPTH: Final = 64
_MAX_BRANCHES: Final = 8
_MAX_FUNCTIONS: Final = 200
_MAX_USES: Final = 20
# A call of a function, or its name in a string: add_action('wp_head', 'print_tag').
_USE: Final = re.compile(r"""(?<![\w$])(?<!function )(?<!function &)(\w{2,60}+)(?=\s{0,3}\()|["'](\w{2,60}+)["']""")
MAX_TEST: Final = 300
MAX_SUBJECT: Final = 100
MAX_INCLUDES: Final = 500
_VISIBLE: Final = re.compile(r"[^\r\n]")
_EXTENDS: Final = re.compile(
    r"\{%[-~+]?+\s*+extends\s++[\"']([^\"'\n]{1,200}+)[\"']|(?<![\w@])@extends\s*+\(\s*+[\"']([\w.:/-]{1,200}+)[\"']"
)
_ASSIGNED: Final = re.compile(r"(\$\w{1,60}+)\s{0,9}=(?!=)[^;\n]{0,200}?[\"']([\w.:-]{4,80})[\"']\s{0,9};")


class Test(NamedTuple):
    """A template's condition, as written, and whether it holds in the branch."""

    text: str
    holds: bool


class Span(NamedTuple):
    start: int
    end: int
    tests: tuple[Test, ...]


class Include(NamedTuple):
    """Another template that is part of the page at this place. The name is as written."""

    name: str
    offset: int


class Function(NamedTuple):
    """A function of the template's code, and the places outside of it that call it or name it in a string."""

    start: int
    end: int
    uses: tuple[int, ...]


@dataclass
class Template:
    """The page that a file writes. All offsets are those of `code`, except in `origin`."""

    original: str
    code: str
    variables: Variables
    conditions: list[Span] = field(default_factory=list)
    includes: list[Include] = field(default_factory=list)
    # Scripts outside of the page, which are TypeScript: (start, end).
    scripts: list[tuple[int, int]] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    # Starts of the parts of `code`, and where each comes from. A fixed part comes from one place as a whole.
    _parts: list[tuple[int, int, bool]] = field(default_factory=list)

    def origin(self, offset: int) -> int:
        """Returns the offset in the file that a character of `code` comes from."""
        if not self._parts:
            return offset
        start, origin, fixed = self._parts[max(bisect_right(self._part_starts, offset) - 1, 0)]
        return origin if fixed else min(origin + offset - start, len(self.original))

    @cached_property
    def layout(self) -> str:
        """The template that this one extends, as written. Empty if it extends none."""
        found = _EXTENDS.search(self.original)
        return found[1] or found[2] if found else ""

    @cached_property
    def assigned(self) -> dict[str, str]:
        """The texts at the end of assignments to variables of PHP, by variable: `$name = $prefix . 'consent';`."""
        return {found[1]: found[2] for found in _ASSIGNED.finditer(self.original)}

    @cached_property
    def _part_starts(self) -> list[int]:
        return [start for start, _, _ in self._parts]

    def tests_at(self, offset: int) -> list[Test]:
        """Returns the conditions of the template under which a character reaches the page, innermost first."""
        found: list[Test] = []
        index = bisect_right(self._span_starts, offset) - 1
        while index >= 0:
            span, index = self._spans[index]
            if offset < span.end:
                found.extend(span.tests)
        return found

    def function_at(self, offset: int) -> Function | None:
        """Returns the innermost function around a character, or None."""
        around = [it for it in self.functions if it.start <= offset < it.end]
        return max(around, default=None)

    @cached_property
    def _spans(self) -> list[tuple[Span, int]]:
        """The conditions by start, each with the index of the one around it, or -1."""
        found: list[tuple[Span, int]] = []
        around: list[int] = []
        for span in sorted(self.conditions, key=lambda it: (it.start, -it.end)):
            while around and found[around[-1]][0].end <= span.start:
                around.pop()
            found.append((span, around[-1] if around else -1))
            around.append(len(found) - 1)
            if len(around) > 4 * _MAX_DEPTH:
                del around[1]
        return found

    @cached_property
    def _span_starts(self) -> list[int]:
        return [span.start for span, _ in self._spans]


@dataclass
class _Frame:
    """An open block. Only a condition has tests."""

    name: str
    start: int
    # Offset of the block's beginning in the file.
    begins: int = 0
    tests: list[Test] = field(default_factory=list)
    test: Test | None = None
    # True if it ends the function or the page.
    leaves: bool = False
    # The expression that the block's branches compare with values.
    subject: str = ""
    # The name of the function whose body the block is.
    function: str = ""


class Markup:
    """Collects the output of a template, from the beginning of the file to its end."""

    def __init__(self, text: str, given: Mapping[str, str] = MappingProxyType({})) -> None:
        """given: addresses that other files of the project give variables, by variable."""
        self.text: Final = text
        self.variables: Final = Variables(text, given)
        # Everything before it has been taken.
        self.at = 0
        self._pieces: list[str] = []
        self._length = 0
        self._parts: list[tuple[int, int, bool]] = [(0, 0, False)]
        self._frames: list[_Frame] = []
        self._deeper = 0
        self._spans: list[Span] = []
        self._includes: list[Include] = []
        self._scripts: list[tuple[int, int]] = []
        # By name: where the bodies of functions begin and end.
        self._functions: dict[str, tuple[int, int]] = {}
        # The block closed last, for an `else` after it.
        self.closed: _Frame | None = None

    # The kind of text that the file writes.

    def copy(self, until: int) -> None:
        """Takes text as it is."""
        self._add(self.text[self.at : until])
        self.at = max(until, self.at)

    def blank(self, until: int) -> None:
        """Takes text that isn't part of the page."""
        self._add(_covered(self.text[self.at : until], " "))
        self.at = max(until, self.at)

    def fill(self, until: int) -> None:
        """Takes an expression whose value isn't known. It becomes a name of the same length."""
        self._add(_covered(self.text[self.at : until], "_"))
        self.at = max(until, self.at)

    def write(self, code: str) -> None:
        """Takes text as other code of the same length."""
        self._add(code)
        self.at += len(code)

    def insert(self, code: str, origin: int | None = None) -> None:
        """Adds code that isn't in the file, but that this place of the file adds to the page."""
        self._parts.append((self._length, self.at if origin is None else origin, True))
        self._add(code)
        self._parts.append((self._length, self.at, False))

    def skip(self, until: int) -> None:
        """Leaves text out."""
        if until > self.at:
            self.at = until
            self._parts.append((self._length, self.at, False))

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    # Under which conditions. All offsets are those of the file.

    def open(
        self, name: str, text: str | None, start: int, *, holds: bool = True, subject: str = "", function: str = ""
    ) -> None:
        """Begins a block: a condition, or any other block if there is no text."""
        if len(self._frames) >= _MAX_DEPTH:
            self._deeper += 1
            return
        test = Test(text.strip()[:MAX_TEST], holds) if text is not None else None
        self._frames.append(
            _Frame(name, start, start, [], test, subject=subject[:MAX_SUBJECT], function=function[:MAX_SUBJECT])
        )

    @property
    def subject(self) -> str:
        """Returns the subject of the innermost block, which its branches compare with values, or an empty string."""
        return self._frames[-1].subject if self._frames and not self._deeper else ""

    def turn(self, text: str | None, end: int, start: int) -> None:
        """Begins the next branch of the innermost block, or the last one if it has no condition."""
        if self._deeper or not self._frames:
            return
        frame = self._frames[-1]
        self._end_branch(frame, end)
        if frame.test is not None:
            frame.tests = [*frame.tests, Test(frame.test.text, not frame.test.holds)][-_MAX_BRANCHES:]
        frame.test = Test(text.strip()[:MAX_TEST], True) if text is not None else None
        frame.start = start

    def close(self, end: int, name: str | None = None) -> None:
        """Ends the innermost block, or the innermost one with the name and all blocks inside it."""
        self.closed = None
        if name is not None and all(frame.name != name for frame in self._frames):
            return
        if self._deeper and name is None:
            self._deeper -= 1
            return
        while self._frames:
            frame = self._frames.pop()
            self._end_branch(frame, end)
            if frame.function and len(self._functions) < _MAX_FUNCTIONS:
                self._functions[frame.function] = frame.begins, end
            if name is None or frame.name == name:
                self.closed = frame
                return

    def leaves(self) -> None:
        """Notes that the innermost block ends the function or the page."""
        if self._frames:
            self._frames[-1].leaves = True

    def reopen(self, text: str | None, start: int, name: str = "{") -> None:
        """Begins the next branch of the block that was closed just before."""
        frame, self.closed = self.closed, None
        if frame is None:
            self.open(name, text, start)
            return
        if len(self._frames) < _MAX_DEPTH:
            frame.name = name
            self._frames.append(frame)
            frame.start = start
            if frame.test is not None:
                frame.tests = [*frame.tests, Test(frame.test.text, not frame.test.holds)][-_MAX_BRANCHES:]
            frame.test = Test(text.strip()[:MAX_TEST], True) if text is not None else None

    def leave(self, frame: _Frame, start: int) -> None:
        """Notes that a condition ended the page or the function: later code runs only if it doesn't hold."""
        if frame.test is None:
            return
        around = self._frames[-1] if self._frames else None
        test = Test(frame.test.text, not frame.test.holds)
        if around is None:
            self._spans.append(Span(start, len(self.text), (test,)))
        else:
            self._end_branch(around, start)
            around.tests = [*around.tests, test][-_MAX_BRANCHES:]
            around.start = start

    @property
    def inside(self) -> str:
        """The name of the innermost block, or an empty string."""
        return self._frames[-1].name if self._frames else ""

    def _end_branch(self, frame: _Frame, end: int) -> None:
        tests = (*frame.tests, frame.test) if frame.test is not None else tuple(frame.tests)
        if tests and end > frame.start:
            self._spans.append(Span(frame.start, end, tests))

    def condition(self, start: int, end: int, *tests: Test) -> None:
        """Notes a condition whose place is known."""
        self._spans.append(Span(start, end, tests))

    def include(self, name: str, offset: int) -> None:
        if len(self._includes) < MAX_INCLUDES:
            self._includes.append(Include(name[:200], offset))

    @property
    def contains_templates(self) -> bool:
        return bool(self._includes)

    def script(self, start: int, end: int) -> None:
        self._scripts.append((start, end))

    def template(self) -> Template:
        self.copy(len(self.text))
        while self._frames:
            self.close(len(self.text))
        code = "".join(self._pieces)
        parts = self._parts if len(self._parts) > 1 else []
        places = _Places(parts)
        return Template(
            self.text,
            code,
            self.variables,
            [Span(places.of(start), places.of(end), tests) for start, end, tests in self._spans],
            [Include(name, places.of(offset)) for name, offset in self._includes],
            [(places.of(start), places.of(end)) for start, end in self._scripts],
            [
                Function(places.of(start), places.of(end), tuple(map(places.of, uses)))
                for (start, end), uses in self._uses()
            ],
            parts,
        )

    def _uses(self) -> Iterator[tuple[tuple[int, int], list[int]]]:
        """Yields the functions, each with the places that use it. Nothing follows from them without conditions."""
        if not self._functions or not self._spans:
            return
        found: dict[str, list[int]] = {name: [] for name in self._functions}
        for use in _USE.finditer(self.text):
            name = use[1] or use[2]
            if (uses := found.get(name)) is not None and len(uses) < _MAX_USES:
                start, end = self._functions[name]
                if not start <= use.start() < end:
                    uses.append(use.start())
        yield from ((self._functions[name], uses) for name, uses in found.items())


def _covered(text: str, mark: str) -> str:
    """Returns a text with a mark instead of each character, except for the ends of lines."""
    return _VISIBLE.sub(mark, text) if "\n" in text or "\r" in text else mark * len(text)


class _Places:
    """Finds the place in the code of an offset in the file."""

    def __init__(self, parts: list[tuple[int, int, bool]]) -> None:
        self._parts = [(origin, start) for start, origin, fixed in parts if not fixed]
        self._inserted = [(origin, start) for start, origin, fixed in parts if fixed]
        self._origins = [origin for origin, _ in self._parts]

    def of(self, offset: int) -> int:
        if not self._parts:
            return offset
        origin, start = self._parts[max(bisect_right(self._origins, offset) - 1, 0)]
        return start + offset - origin
