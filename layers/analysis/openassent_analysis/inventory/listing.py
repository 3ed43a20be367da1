"""Lists the files of an archive while it is unpacked, in constant memory, by their names and not their contents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from openassent_analysis.files import NOT_ANALYZED, convention_of, language_of
from openassent_analysis.findings import ENDS
from openassent_analysis.inventory import manifests
from openassent_analysis.inventory.technologies import Sign, technologies
from openassent_analysis.kinds import NOT_ASSESSED, kind_of
from openassent_analysis.selection import EVERYTHING, PROJECT_FILE, Selection

MAX_MANIFESTS: Final = 500
MAX_MANIFEST_BYTES: Final = 512 * 1024
MAX_LOCK_FILE_BYTES: Final = 8 * 1024**2
# Paths are evidence: the inventory shows them. Ordinary ones are far shorter.
MAX_PATH: Final = 200
# Bounds the memory for names of files that no later stage reads: those of about 50,000 files.
MAX_UNREAD_CHARACTERS: Final = 4 * 1024**2
# Files that the project's people didn't write.
_FOREIGN: Final = frozenset({"vendored", "build output", "repository data", "minified", "generated", "excluded"})


@dataclass(slots=True)
class Count:
    files: int = 0
    bytes: int = 0


def nearness(path: str) -> tuple[int, str]:
    """Returns a sort key: files nearer to the repository's root come first."""
    return path.count("/"), path


class Listing:
    """The files of an archive: their counts, their signs of technologies, and the manifests to read."""

    def __init__(self, selection: Selection = EVERYTHING) -> None:
        # Of the files that are listed from now on.
        self.selection = selection
        self.languages: dict[str, Count] = {}
        # The file nearest to the root that shows each technology.
        self.signs: dict[Sign, str] = {}
        # Files of code that no rule reads, by kind.
        self.not_assessed: Counter[str] = Counter()
        # True if manifests were left out at a limit.
        self.truncated = False
        # Files that the analysis would read, but that aren't written to disk, and whether there are more of them.
        self.unread: set[str] = set()
        self.has_more_unread = False
        # The first file that was left out at each limit of the whole archive.
        self.left_out: dict[str, str] = {}
        # The first file that isn't written to disk for each other reason.
        self.skipped_examples: dict[str, str] = {}
        # Files that are kept for their manifest alone, and that the analysis doesn't read.
        self.only_manifests = 0
        self._unread_characters = 0
        self._manifests: list[str] = []
        self._technologies = technologies()

    def take(self, path: str, size: int) -> str | None:
        """Notes a file. Returns why it isn't written to disk, or None if a later stage reads it."""
        if path == PROJECT_FILE:
            self.only_manifests += 1
            return None
        reason = self._take(path, size)
        if reason is not None:
            self.skipped_examples.setdefault(reason, path[:MAX_PATH])
        return reason

    def _take(self, path: str, size: int) -> str | None:
        reason = self.selection.reason_to_skip(path)
        name = path.rpartition("/")[2]
        convention = reason or convention_of(path)
        if convention not in _FOREIGN and (language := self._technologies.language_of(name)):
            count = self.languages.setdefault(language, Count())
            count.files += 1
            count.bytes += size
        if reason is not None or (convention is not None and language_of(name) is None):
            return convention
        if convention is not None:  # the manifests next to it decide, which may follow in the archive
            return None
        is_manifest = len(path) <= MAX_PATH and self._take_signs(path, size)
        if language_of(name) is not None:
            return None
        if not is_manifest or self.only_manifests >= MAX_MANIFESTS:
            self.truncated |= is_manifest
            if kind := kind_of(path, None):
                self.not_assessed[kind] += 1
            return NOT_ANALYZED
        self.only_manifests += 1
        return None

    def leave_out(self, path: str, reason: str) -> None:
        """Notes a file that isn't written to disk for another reason than those of `take`."""
        if reason in NOT_ASSESSED:
            language = language_of(path.rpartition("/")[2])
            self.only_manifests -= language is None
            self.truncated |= manifests.is_manifest(path)
            if kind := kind_of(path, language):
                self.not_assessed[kind] += 1
        if reason in ENDS:
            self.left_out.setdefault(reason, path)
        if not self.selection.reads(path):
            return
        self._unread_characters += len(path)
        if self._unread_characters > MAX_UNREAD_CHARACTERS:
            self.has_more_unread = True
        else:
            self.unread.add(path)

    def _take_signs(self, path: str, size: int) -> bool:
        """Notes the signs in the file's path, and whether it is a manifest to read."""
        for sign in self._technologies.signs_of(path):
            if sign not in self.signs or nearness(path) < nearness(self.signs[sign]):
                self.signs[sign] = path
        if not manifests.is_manifest(path):
            return False
        if size > (MAX_LOCK_FILE_BYTES if manifests.is_lock_file(path) else MAX_MANIFEST_BYTES):
            self.truncated = True
            return False
        self._manifests.append(path)
        if len(self._manifests) >= 4 * MAX_MANIFESTS:
            self._keep_nearest()
        return True

    def _keep_nearest(self) -> None:
        self._manifests.sort(key=nearness)
        self.truncated |= len(self._manifests) > MAX_MANIFESTS
        del self._manifests[MAX_MANIFESTS:]

    def manifests(self) -> list[str]:
        """Returns the paths of the manifests to read, nearest to the root first."""
        self._keep_nearest()
        return self._manifests
