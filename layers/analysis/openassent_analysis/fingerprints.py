"""Fingerprints, which identify a finding across scans, and digests that recognize it in a renamed file.

A fingerprint is made of rule, path, and the code as a sequence of words: without whitespace, comments, quote style, and
the punctuation that formatters add and remove (semicolons, commas, parentheses, and braces). Lines and columns aren't
part of it. Equal code in one file is distinguished by its ordinal. The content is the digest of the same parts without
path and ordinal: a finding that moves to another file keeps its content. The shape is the digest of what stays the same
when the code is edited: the vendor that it loads, or the beginning of the code without identifiers such as G-ABC123.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # the process that stores the findings loads no parser
    from ast_grep_py import SgNode

_DROPPED: Final = frozenset({";", ",", "(", ")", "{", "}", "/>", ">"})
_QUOTED: Final = frozenset({"string", "quoted_attribute_value", "concatenated_string"})
_UNESCAPED: Final = re.compile(r"\\([\"'`])")
_SPACE: Final = re.compile(r"\s+")
_PYTHON_STRING: Final = re.compile(r"([a-zA-Z]*)(\"\"\"|'''|\"|')(.*)\2", re.DOTALL)
_MAX_WORDS: Final = 2_000
# The callee and its first argument.
_SHAPE_WORDS: Final = 4
_NAME: Final = re.compile(r"[\w-]++")


def words(node: SgNode) -> list[str]:
    """Returns the normalized code of a node, as words."""
    found: list[str] = []
    pending = [node]
    while pending and len(found) < _MAX_WORDS:
        current = pending.pop()
        kind = current.kind()
        if kind in {"comment", "line_continuation"}:
            continue
        if kind in _QUOTED or (kind == "template_string" and "${" not in current.text()):
            found.append(_string(current.text()))
            continue
        children = current.children()
        if children:
            pending.extend(reversed(children))
        elif (word := _word(kind, current.text())) not in _DROPPED:
            found.append(word)
    return [word for word in found if word]


def _word(kind: str, text: str) -> str:
    if kind == "attribute_value":  # HTML, without quotes
        return f'"{text}"'
    if kind in {"tag_name", "attribute_name"}:
        return text.lower()
    return _SPACE.sub(" ", text).strip()


def _string(text: str) -> str:
    match = _PYTHON_STRING.fullmatch(text)
    prefix, body = (match[1], match[3]) if match else ("", text[1:-1])
    unescaped = _UNESCAPED.sub(r"\1", body)
    return f'{prefix}"{unescaped}"'


class Identity(NamedTuple):
    """Identifies a finding. `ordinal` counts the findings with the same content in the file from 0.

    shape: empty if edited code is another finding.
    """

    fingerprint: str
    content: str
    ordinal: int
    shape: str


class Fingerprints:
    """Generates the fingerprints of one file, in the order of its findings."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: Counter[tuple[str, str]] = Counter()

    def take(self, rule_id: str, code: str, shape: tuple[str, ...] = ()) -> Identity:
        ordinal = self._seen[rule_id, code]
        self._seen[rule_id, code] += 1
        return Identity(
            _digest(rule_id, self._path, code, str(ordinal)),
            _digest(rule_id, code),
            ordinal,
            _digest(*shape) if shape else "",
        )


def shape_of(rule_id: str, category: str, vendor_id: str | None, code: Sequence[str]) -> tuple[str, ...]:
    """Returns the parts of a finding that stay when its code is edited."""
    if category == "trackers" and vendor_id:
        return (category, vendor_id)
    return (rule_id, vendor_id or "", *(_NAME.sub(_unnumbered, word) for word in code[:_SHAPE_WORDS]))


def _unnumbered(name: re.Match[str]) -> str:
    """Returns the name, or a placeholder for measurement ids, account numbers, and versions."""
    return "#" if any(map(str.isdigit, name[0])) else name[0]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
