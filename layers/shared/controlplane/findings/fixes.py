"""Fixes of findings: edits of the project's files, which are shown as a diff, or code to paste."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, Self


class Edit(NamedTuple):
    """A change of whole lines of a file.

    before: the lines from `start_line` as they are in the file, without the last line break. after: what replaces them.
    A new file has line 1 and an empty `before`.
    """

    path: str
    start_line: int
    before: str
    after: str

    @property
    def end_line(self) -> int:
        """The last of the lines that it replaces."""
        return self.start_line + max(0, len(_lines(self.before)) - 1)


class DiffLine(NamedTuple):
    """A line of a unified diff. kind: `file` and `place` are headers, and the text of a line begins with its sign."""

    kind: Literal["file", "place", "added", "removed", "kept"]
    text: str


class Fix(NamedTuple):
    """A fix of a finding: what it does, the packages that it needs, and edits of the project's files.

    code: to paste where no edit is safe, in `language`. May be empty if there are edits.
    """

    summary: str
    language: str
    code: str
    packages: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Any]) -> Self:
        """Returns the fix with the values of an analysis's fix, or of its JSON."""
        summary, language, code, packages, edits = found
        return cls(summary, language, code, tuple(packages), tuple(Edit(*it) for it in edits))

    @property
    def diff_lines(self) -> list[DiffLine]:
        """Returns the edits as a unified diff."""
        return [*_diff(self.edits)]

    @property
    def diff(self) -> str:
        """The edits as the text of a unified diff, without the last line break. Empty without edits."""
        return "\n".join(line.text for line in self.diff_lines)


_KINDS: dict[str, Literal["added", "removed", "kept"]] = {"+": "added", "-": "removed", " ": "kept"}


def _diff(edits: Iterable[Edit]) -> Iterator[DiffLine]:
    from difflib import unified_diff  # noqa: PLC0415 (most functions show no diff)

    for path, changes in groupby(sorted(edits), key=lambda edit: edit.path):
        moved_by = 0
        for number, edit in enumerate(changes):
            before, after = _lines(edit.before), _lines(edit.after)
            if number == 0:
                yield DiffLine("file", f"--- a/{path}" if before else "--- /dev/null")
                yield DiffLine("file", f"+++ b/{path}")
            old, new = _range(edit.start_line, before), _range(edit.start_line + moved_by, after)
            yield DiffLine("place", f"@@ -{old} +{new} @@")
            moved_by += len(after) - len(before)
            # All lines are context, so there is one hunk. Its three headers count lines from 1: those above replace it.
            hunk = [*unified_diff(before, after, n=len(before), lineterm="")][3:]
            yield from (DiffLine(_KINDS[line[0]], line) for line in hunk)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _range(start_line: int, lines: list[str]) -> str:
    """Returns the lines in the form of a hunk's header: an empty range names the line before it."""
    if len(lines) == 1:
        return str(start_line)
    return f"{start_line if lines else start_line - 1},{len(lines)}"
