"""Applies the edits of fixes to the files of a scanned folder, as a unified diff or in place.

A fix is applied as a whole or not at all. Of fixes that overlap, the first one is applied. Nothing is written through
links or outside of the folder. Everything but the edited lines stays as it is: line breaks, encoding, and bytes that
aren't text.
"""

import codecs
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path, PurePosixPath

from openassent_analysis.files import Skipped, read
from openassent_analysis.fixes import Edit, Fix
from openassent_analysis.working_tree import ReportedFinding
from openassent_cli.local import LocalReport
from openassent_cli.problems import Exit, Problem

_MAX_BYTES = 8 * 1024**2
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_BOM = "\ufeff"
# Names that git writes in quotes.
_UNUSUAL = re.compile(r'[\x00-\x1f"\\\x7f]')


class Refused(Problem):
    """A fix isn't applied; the message says why."""


class Changed(Refused):
    """A file isn't as it was when it was scanned."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed since the scan", code=Exit.CONFLICT)


@dataclass
class EditedFile:
    """A file of the folder, and its edits. content: None if the file doesn't exist. place: where it is."""

    path: str
    place: Path
    content: bytes | None
    lines: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.content is not None:
            self.lines = self.content.decode(self._encoding, self._errors).split("\n")

    @property
    def is_text_for_git(self) -> bool:
        return self._encoding == "utf-8"

    def check(self, edit: Edit) -> None:
        """Raises Refused unless the file has the lines that the edit replaces, and no other edit changes them."""
        before = _lines(edit.before)
        found = self.lines[max(0, edit.start_line - 1) : _end(edit)] if self.content is not None else []
        if [line.removeprefix(_BOM).removesuffix("\r") for line in found] != before:
            raise Changed(self.path)
        if any(edit.start_line <= _end(it) and it.start_line <= _end(edit) for it in self.edits):
            raise Refused(f"it overlaps another fix in {self.path}")

    def edited(self) -> str:
        """Returns the text with the edits."""
        lines = [*self.lines]
        for edit in sorted(self.edits, reverse=True):
            after = _lines(edit.after)
            if self.content is None:
                lines = [*after, ""]
                continue
            first, end = edit.start_line - 1, _end(edit)
            # Only the file's last line can have no line break.
            ends = ["\r" if self.lines[0].endswith("\r") else ""] * len(after)
            if end == len(lines):
                ends[-1:], after = [""], after or [""]
            bom = _BOM if lines[first].startswith(_BOM) else ""
            lines[first:end] = [line + ending for line, ending in zip(after, ends, strict=True)]
            lines[first] = bom + lines[first]
        return "\n".join(lines)

    def diff(self, path: str) -> Iterator[str]:
        """Yields the lines of a diff that `git apply` reads. path: relative to the root of the repository."""
        old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
        yield f"diff --git {old} {new}\n"
        if self.content is None:
            yield "new file mode 100644\n"
        # A tab ends a name with spaces.
        tab = "\t" if " " in path else ""
        before, after = _with_breaks("\n".join(self.lines)), _with_breaks(self.edited())
        names = "/dev/null" if self.content is None else f"{old}{tab}", f"{new}{tab}"
        for line in unified_diff(before, after, *names):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

    def write(self) -> None:
        """Replaces the file in one step. Raises Changed."""
        if _read(self.place, self.path) != self.content:
            raise Changed(self.path)
        self.place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.place.parent, prefix=".assent-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.edited().encode(self._encoding, self._errors))
            if self.content is None:
                Path(name).chmod(0o644)
            else:
                shutil.copymode(self.place, name)
            Path(name).replace(self.place)
        except BaseException:
            Path(name).unlink()
            raise

    @property
    def _encoding(self) -> str:
        return _UTF_16.get((self.content or b"")[:2], "utf-8")

    @property
    def _errors(self) -> str:
        """Bytes that aren't UTF-8 become surrogates, and the same bytes again when they are written."""
        return "surrogateescape" if self._encoding == "utf-8" else "surrogatepass"


class EditedFolder:
    """The files of a scanned folder with the edits of fixes.

    fixed, refused, by_hand: the findings whose edits are added, aren't possible, or don't exist.
    """

    def __init__(self, report: LocalReport) -> None:
        self.fixed: list[ReportedFinding] = []
        self.refused: list[tuple[ReportedFinding, Refused]] = []
        self.by_hand: list[ReportedFinding] = []
        self._report = report
        self._files: dict[str, EditedFile] = {}

    @property
    def files(self) -> list[EditedFile]:
        """The files that fixes change, in the order of their paths."""
        return sorted((file for file in self._files.values() if file.edits), key=lambda file: file.path)

    def fix_all(self) -> None:
        """Adds the edits of all findings, the most urgent first."""
        for reported in self._report.findings:
            if reported.fix is None or not reported.fix.edits:
                self.by_hand.append(reported)
                continue
            try:
                self.add(reported.fix)
                self.fixed.append(reported)
            except Refused as reason:
                self.refused.append((reported, reason))

    def add(self, fix: Fix) -> None:
        """Adds the edits of a fix. Raises Refused if one of them isn't possible, and adds none then."""
        new = [(file, edit) for edit in fix.edits if edit not in (file := self._file(edit.path)).edits]
        for file, edit in new:
            file.check(edit)
        for file, edit in new:
            file.edits.append(edit)

    def diff(self) -> str:
        """Returns a diff of all files that git has as text. Bytes that aren't UTF-8 are surrogates."""
        files = (file for file in self.files if file.is_text_for_git)
        return "".join(line for file in files for line in file.diff(self._report.path_in_tree(file.path)))

    def _file(self, path: str) -> EditedFile:
        if path not in self._files:
            place = self._report.folder.joinpath(path)
            is_below = ".." not in PurePosixPath(path).parts and place.is_relative_to(self._report.folder)
            if not is_below or place.resolve() != place:
                raise Refused(f"{path} is outside of the folder, or behind a link")
            content = _read(place, path)
            if content is not None and place.stat().st_mtime_ns > self._report.scanned_at:
                raise Changed(path)
            self._files[path] = EditedFile(path, place, content)
        return self._files[path]


def _read(place: Path, path: str) -> bytes | None:
    """Returns the content, or None if there is no file. Doesn't follow links. Raises Refused."""
    if not os.path.lexists(place):
        return None
    try:
        return read(place, _MAX_BYTES)
    except Skipped as skipped:
        raise Refused(f"{path} can't be read: {skipped}") from None


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")] if text else []


def _with_breaks(text: str) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _end(edit: Edit) -> int:
    """Returns the last line that the edit replaces."""
    return edit.start_line + max(0, edit.before.count("\n"))


def _quoted(name: str) -> str:
    """Returns a name as git writes it."""
    if not _UNUSUAL.search(name):
        return name
    return '"' + _UNUSUAL.sub(lambda it: f"\\{it[0]}" if it[0] in '"\\' else f"\\{ord(it[0]):03o}", name) + '"'
