"""Makes edits of a project's files from the places that an analysis reported. Nothing else in the lines changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from openassent_analysis.places import MAX_TEXT, TAG, Place

# Types of scripts that browsers run as they are written.
_PLAIN: Final = frozenset({"", "text/javascript", "application/javascript", "text/ecmascript"})
_QUOTED: Final = re.compile(r"""=\s*(["'])""")
_QUOTES: Final = frozenset("\"'")
_EMPTY: Final = re.compile(
    r"<!--.{0,200}?-->|</?(?:noscript|p|div)\b[^<>]{0,200}>|\{[\"' ]{0,9}\}|\s+", re.DOTALL | re.IGNORECASE
)


class Edit(NamedTuple):
    """A change of whole lines of a file.

    before: the lines from `start_line` as they are in the file, without the last line break. after: what replaces them.
    A new file has line 1 and an empty `before`.
    """

    path: str
    start_line: int
    before: str
    after: str

    def as_dict(self) -> dict[str, Any]:
        """Returns the edit for JSON, with keys in camelCase."""
        return {"path": self.path, "startLine": self.start_line, "before": self.before, "after": self.after}


class Fix(NamedTuple):
    """A fix of a finding: what it does, the packages that it needs, and edits of the project's files.

    code: to paste where no edit is safe, in `language`. May be empty if there are edits.
    """

    summary: str
    language: str
    code: str
    packages: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the fix for JSON, with keys in camelCase."""
        return self._asdict() | {"edits": [edit.as_dict() for edit in self.edits]}


class Change(NamedTuple):
    """A change of the characters from `start` to `end` in a place's text."""

    place: Place
    start: int
    end: int
    text: str


class Unsafe(Exception):
    """No safe edit is possible."""


def edits_of(path: str, changes: Iterable[Change]) -> tuple[Edit, ...]:
    """Returns the edits that make changes to a file, one for lines that belong together. Raises Unsafe."""
    lines: dict[int, str] = {}
    wanted = set[tuple[int, int, int, int, str]]()
    for place, start, end, written in changes:
        text = written.replace("\n", "\r\n") if "\r\n" in place.text else written
        lines |= dict(enumerate(place.text.split("\n"), place.line))
        wanted.add((*_position(place, start), *_position(place, end), text))
    edits: list[Edit] = []
    group: list[tuple[int, int, int, int, str]] = []
    for change in sorted(wanted):
        if group and change[0] > max(it[2] for it in group):
            edits.append(_edit(path, lines, group))
            group = []
        group.append(change)
    edits += [_edit(path, lines, group)] if group else []
    if sum(len(edit.before) + len(edit.after) for edit in edits) > MAX_TEXT:
        raise Unsafe
    return tuple(edits)


def _position(place: Place, offset: int) -> tuple[int, int]:
    before = place.text[:offset]
    return place.line + before.count("\n"), offset - before.rfind("\n") - 1


def _edit(path: str, lines: dict[int, str], changes: Sequence[tuple[int, int, int, int, str]]) -> Edit:
    first, last = changes[0][0], max(it[2] for it in changes)
    kept = [lines[number] for number in range(first, last + 1)]
    starts = [sum(len(line) + 1 for line in kept[:index]) for index in range(len(kept))]
    before = after = "\n".join(kept)
    ends = len(before)
    for start, column, end, end_column, text in reversed(changes):
        begins, stops = starts[start - first] + column, starts[end - first] + end_column
        if stops > ends:
            raise Unsafe
        after, ends = after[:begins] + text + after[stops:], begins
    # The last line break isn't a part of either.
    return Edit(path, first, before.removesuffix("\r"), after.removesuffix("\r"))


def insertion(place: Place, at: int, code: str) -> Change:
    """Inserts lines of code before a position, with the indentation of its line."""
    start = place.text.rfind("\n", 0, at) + 1
    line = place.text[start:at]
    indent = line[: len(line) - len(line.lstrip())]
    return Change(place, at, at, code.replace("\n", f"\n{indent}") + f"\n{indent}")


def removal(place: Place, span: tuple[int, int] | None = None, text: str = "") -> Change:
    """Removes an element, with its lines if nothing else is in them, or replaces it."""
    start, end = span or place.parts.get("noscript", (place.start, place.end))
    first = place.text.rfind("\n", 0, start)
    last = place.text.find("\n", end)
    last = len(place.text) if last < 0 else last
    alone = not (place.text[first + 1 : start] + place.text[end:last]).strip()
    if alone and not text and first >= 0:
        return Change(place, first, last, "")
    return Change(place, start, end, text)


def removal_of_noscript(place: Place) -> Change:
    """Removes what is for browsers without scripts: nothing can make it wait for consent. Raises Unsafe."""
    start, end = place.parts["noscript"]
    if _EMPTY.sub("", place.text[start : place.start] + place.text[place.end : end]):
        raise Unsafe
    return removal(place)


def blocked_script(place: Place, library: Mapping[str, Any], purpose: str) -> list[Change]:
    """Keeps a script from running until a consent library activates it. Raises Unsafe.

    library: the attributes that it needs; `keeps`, the attribute for the original type, which some need `always`; and
    `source`, the attribute that takes the place of `src`.
    """
    attributes = {name: value.replace("{PURPOSE}", purpose) for name, value in library["script"].items()}
    if "type" in attributes:
        written = place.attribute("type").lower()
        if written not in _PLAIN and (written != "module" or "keeps" not in library):
            raise Unsafe
        if written == "module" or library.get("always"):
            attributes[library["keeps"]] = "module" if written == "module" else "application/javascript"
    return [*_with_attributes(place, attributes), *_renamed(place, library.get("source", ""))]


def blocked_frame(place: Place, library: Mapping[str, Any], purpose: str) -> list[Change]:
    """Keeps a frame or an image from loading until a consent library activates it. Raises Unsafe."""
    if "frame" not in library or "@src" not in place.parts:
        raise Unsafe
    attributes = {name: value.replace("{PURPOSE}", purpose) for name, value in library["frame"].items()}
    source = attributes.pop("source")
    return [*_with_attributes(place, attributes), *_renamed(place, source)]


def _renamed(place: Place, source: str) -> list[Change]:
    """Renames the `src` of an element, so that nothing is loaded from there. Raises Unsafe."""
    if not source or "@src" not in place.parts:
        return []
    if f"@{source}" in place.parts:
        raise Unsafe
    start, _ = place.parts["@src"]
    return [Change(place, start, start + len("src"), source)]


def _with_attributes(place: Place, attributes: Mapping[str, str]) -> Iterator[Change]:
    """Sets the type, adds to the class, and adds other attributes, in the quotes that the element uses."""
    start, end = place.parts["tag"]
    found = _QUOTED.search(place.text[start:end])
    quote = found[1] if found and place.kind == TAG else '"'
    added = ""
    for name, value in attributes.items():
        attribute = "className" if name == "class" and place.kind != TAG else name
        span = place.parts.get(f"@{attribute}")
        if span is None:
            added += f" {attribute}={quote}{value}{quote}"
        elif name == "type":
            yield Change(place, *span, f"type={quote}{value}{quote}")
        elif name == "class" and place.text[span[1] - 1] in _QUOTES:
            yield Change(place, span[1] - 1, span[1] - 1, f" {value}")
        else:
            raise Unsafe
    if added:
        at = place.parts["name"][1]
        yield Change(place, at, at, added)


def waiting_call(place: Place, before: Iterable[str], after: Iterable[str]) -> Change:
    """Puts a call, which is alone on its lines, between lines of code. Raises Unsafe."""
    start = place.text.rfind("\n", 0, place.start) + 1
    end = place.text.find("\n", place.end)
    indent, rest = place.text[start : place.start], place.text[place.end : len(place.text) if end < 0 else end]
    if indent.strip() or rest.strip(" ;"):
        raise Unsafe
    # A template string keeps its lines.
    call = place.code if "`" in place.code else place.code.replace("\n", "\n  ")
    code = f"\n{indent}".join((*before, f"  {call}", *after))
    return Change(place, place.start, place.end, code)
