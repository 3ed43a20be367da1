"""Unpacks a repository's untrusted archive into an empty folder.

The archive is read as a stream and written file by file, so memory use is constant. Only regular files are written,
only below the folder, and only within the limits. A file that exceeds a limit is skipped and counted. An archive that
is too large to be read as a whole is read up to there.
"""

import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

_BLOCK = 512
_PIECE = 64 * 1024
# An extended header holds a path or git's comment. A repository's archive has no larger ones.
_MAX_HEADER_BYTES = 64 * 1024
_MAX_NAME_BYTES = 255

_REGULAR = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE})
# Reasons for which a file isn't written although the analysis would read it.
_UNREAD = frozenset({"link", "special file", "too large", "duplicate", "too many files", "too many bytes"})
# Reasons for which a path isn't shown.
_UNSAFE = frozenset({"unsafe path", "path too long"})
_LINKS = frozenset({tarfile.SYMTYPE, tarfile.LNKTYPE})


# The blocks of the file system in which files and folders are stored.
_DISK_BLOCK = 4_096
# An archive that exceeds its limit and shrinks more than this was made to exceed it. Ordinary code shrinks to a fifth.
_MOST_RATIO = 100


class Limits(NamedTuple):
    """Limits for one archive. All but `unpacked_bytes` count only files below the root directory.

    listed_files: files, links, and everything else but folders. stored_bytes: what the files and folders take on disk.
    """

    listed_files: int = 500_000
    unpacked_bytes: int = 2 * 1024**3
    stored_files: int = 40_000
    stored_bytes: int = 384 * 1024**2
    file_bytes: int = 2 * 1024**2
    path_bytes: int = 1_024
    depth: int = 64


DEFAULT_LIMITS = Limits()


class ArchiveTooLarge(Exception):
    """The archive as a whole exceeds a limit, which `limit` names: one of `Limits`, `ratio`, or one of the pieces."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class ArchiveInvalid(Exception):
    """The archive isn't a gzipped tar, or is truncated."""


class Cut(NamedTuple):
    """The limit at which the rest of an archive wasn't read, and the last file before."""

    limit: str
    last_path: str


class Unpacked(NamedTuple):
    """The number of files in the archive's scanned folder, and the number of skipped ones by reason.

    cut: None if all of the folder was read.
    """

    files: int
    skipped: Counter[str]
    cut: Cut | None = None


def unpack(
    pieces: Iterator[bytes],
    folder: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    root_directory: str | None = None,
    root_file: str | None = None,
    reason_to_skip: Callable[[str, int], str | None],
    leave_out: Callable[[str, str], None],
) -> Unpacked:
    """Writes the archive's files below `folder`, without the top-level folder that a code host adds.

    root_directory: writes only files below it, and `root_file`; paths stay relative to the repository. reason_to_skip:
    gets each file's path and size, and returns why to skip it, or None. leave_out: gets the path of each file that
    exists but isn't written, and the reason, if it isn't from `reason_to_skip`.

    The pieces can end with ArchiveTooLarge. Raises that if it was made to be too large, or if no file was written
    before its limit; ArchiveInvalid; and any other error from reading the pieces.
    """
    stream = _Stream(pieces, limits.unpacked_bytes)
    root = PurePosixPath(root_directory).parts if root_directory else ()
    unpacking = _Unpacking(stream, folder, limits, root, root_file, reason_to_skip, leave_out)
    cut = unpacking.run()
    return Unpacked(unpacking.files, unpacking.skipped, cut)


class _Stream:
    """Reads the decompressed tar sequentially, in bounded pieces."""

    def __init__(self, pieces: Iterator[bytes], limit: int) -> None:
        self._pieces = pieces
        self._inflater = zlib.decompressobj(wbits=31)
        self._ready = b""
        self._limit = limit
        self._bytes_in = self._bytes_out = 0

    def read(self, size: int) -> bytes:
        """Returns exactly `size` bytes; use it for small sizes only. Raises ArchiveInvalid, ArchiveTooLarge."""
        return b"".join(self.iterate(size))

    def iterate(self, size: int) -> Iterator[bytes]:
        """Yields exactly `size` bytes, in pieces."""
        while size > 0:
            if not self._ready:
                self._ready = self._inflate()
            piece, self._ready = self._ready[:size], self._ready[size:]
            size -= len(piece)
            yield piece

    def skip(self, size: int) -> None:
        for _ in self.iterate(size):
            pass

    def _inflate(self) -> bytes:
        """Returns the next bytes, at most one piece. Raises ArchiveInvalid at the end, and ArchiveTooLarge."""
        while True:
            source = self._inflater.unconsumed_tail
            if not source:
                source = next(self._pieces, b"")
                self._bytes_in += len(source)
            try:
                # At the end of the input, an empty source returns the output that the inflater still buffers.
                out = self._inflater.decompress(source, _PIECE)
            except zlib.error:
                raise ArchiveInvalid("it is not gzip") from None
            if out:
                self._bytes_out += len(out)
                if self._bytes_out > self._limit:
                    is_bomb = self._bytes_out > _MOST_RATIO * self._bytes_in
                    raise ArchiveTooLarge("ratio" if is_bomb else "unpacked_bytes")
                return out
            if not source or self._inflater.eof:
                raise ArchiveInvalid("it ends in the middle")


@dataclass
class _Unpacking:
    """One pass over the entries of a tar."""

    _stream: _Stream
    _folder: Path
    _limits: Limits
    _root: tuple[str, ...]
    _root_file: str | None
    _reason_to_skip: Callable[[str, int], str | None]
    _leave_out: Callable[[str, str], None]
    files: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    _stored_bytes: int = 0
    _stored_files: int = 0
    # Values from extended headers for the next entry.
    _next_path: str | None = None
    _next_size: int | None = None
    _next_is_sparse: bool = False
    _last_path: str = ""
    _is_past_root: bool = False

    def run(self) -> Cut | None:
        """Reads the archive. Returns where the rest wasn't read, unless none of it is below the root directory."""
        try:
            self._read_entries()
        except ArchiveTooLarge as error:
            if error.limit == "ratio":
                raise
            if self._is_past_root:  # git writes the files of a folder one after another
                return None
            if not self._stored_files:
                raise
            return Cut(error.limit, self._last_path)
        return None

    def _read_entries(self) -> None:
        while True:
            block = self._stream.read(_BLOCK)
            if not block.strip(b"\0"):
                return
            try:
                header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError:
                raise ArchiveInvalid("a header is damaged") from None
            if header.size < 0:
                raise ArchiveInvalid("a size is negative")
            self._take(header)

    def _take(self, header: tarfile.TarInfo) -> None:
        if header.type == tarfile.XHDTYPE:
            self._read_extended(self._read_header(header.size))
        elif header.type == tarfile.GNUTYPE_LONGNAME:
            self._next_path = self._read_header(header.size).rstrip(b"\0").decode("utf-8", "surrogateescape")
        elif header.type in {tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK}:
            self._skip_padded(header.size)
        else:
            size = header.size if self._next_size is None else self._next_size
            self._take_entry(header.type, self._next_path or header.name, size)
            self._next_path, self._next_size, self._next_is_sparse = None, None, False

    def _read_header(self, size: int) -> bytes:
        if size > _MAX_HEADER_BYTES:
            raise ArchiveInvalid("a header is too long")
        content = self._stream.read(size)
        self._stream.skip(-size % _BLOCK)
        return content

    def _read_extended(self, content: bytes) -> None:
        """Reads pax records: `<length> <keyword>=<value>\\n`, one after another (POSIX.1-2001)."""
        start = 0
        while start < len(content):
            # Six digits exceed any valid length. The slice avoids copying the rest: there may be thousands of records.
            digits = content[start : start + 7].partition(b" ")[0]
            if not digits.isdigit() or len(digits) > 6 or not len(digits) + 1 < int(digits) <= len(content) - start:
                raise ArchiveInvalid("an extended header is damaged")
            record = content[start + len(digits) + 1 : start + int(digits)]
            start += int(digits)
            keyword, _, value = record.rstrip(b"\n").partition(b"=")
            if keyword == b"path":
                self._next_path = value.decode("utf-8", "surrogateescape")
            elif keyword == b"size":
                if not value.isdigit() or len(value) > 18:
                    raise ArchiveInvalid("a size is no number")
                self._next_size = int(value)
            elif keyword.startswith(b"GNU.sparse"):
                self._next_is_sparse = True

    def _take_entry(self, kind: bytes, name: str, size: int) -> None:
        if kind == tarfile.DIRTYPE:
            self._skip_padded(size)
            return
        parts = PurePosixPath(name).parts[1:]
        if parts[: len(self._root)] != self._root and parts != (self._root_file,):
            self._is_past_root = self.files > 0
            self._skip_padded(size)
            return
        self._is_past_root = False
        if self.files == self._limits.listed_files:
            raise ArchiveTooLarge("listed_files")
        path = "/".join(parts)
        reason = self._refusal(kind, name, parts, size)
        if reason is None:
            reason = self._store(parts, size)
        else:
            self._skip_padded(size)
        self.files += 1
        if reason is not None:
            self.skipped[reason] += 1
            # A longer path has never been analyzed, and would use memory.
            if reason in _UNREAD and len(path) <= self._limits.path_bytes:
                self._leave_out(path, reason)
        if reason not in _UNSAFE:
            self._last_path = path

    def _refusal(self, kind: bytes, name: str, parts: tuple[str, ...], size: int) -> str | None:
        """Returns why the file is skipped, or None."""
        if kind in _LINKS:
            return "link"
        if kind not in _REGULAR or self._next_is_sparse:
            return "special file"
        if not parts or name.startswith("/") or ".." in PurePosixPath(name).parts or not name.isprintable():
            return "unsafe path"  # surrogates, which stand for bytes that aren't UTF-8, aren't printable either
        names = [part.encode() for part in parts]
        if (
            len(parts) > self._limits.depth
            or sum(map(len, names)) + len(names) > self._limits.path_bytes
            or max(map(len, names)) > _MAX_NAME_BYTES
        ):
            return "path too long"
        reason = self._reason_to_skip("/".join(parts), size)
        if reason is None and size > self._limits.file_bytes:
            return "too large"
        return reason

    def _store(self, parts: tuple[str, ...], size: int) -> str | None:
        """Writes the file. Returns why it was skipped if it has no room, or another entry has its path, or None."""
        place = self._folder.joinpath(*parts)
        stored_bytes = self._stored_bytes + _on_disk(place, size)
        reason = None
        if self._stored_files == self._limits.stored_files:
            reason = "too many files"
        elif stored_bytes > self._limits.stored_bytes:
            reason = "too many bytes"
        if reason is not None:
            self._skip_padded(size)
            return reason
        try:
            # The folder was empty, and only folders and files are ever created in it, so no link leads out.
            place.parent.mkdir(parents=True, exist_ok=True)
            file = place.open("xb")
        except (FileExistsError, NotADirectoryError):
            self._skip_padded(size)
            return "duplicate"
        try:
            with file:
                self._copy(size, file)
        except ArchiveTooLarge:
            place.unlink()  # the rest of the file wasn't read
            raise
        self._stored_bytes = stored_bytes
        self._stored_files += 1
        return None

    def _copy(self, size: int, file: IO[bytes]) -> None:
        for piece in self._stream.iterate(size):
            file.write(piece)
        self._stream.skip(-size % _BLOCK)

    def _skip_padded(self, size: int) -> None:
        self._stream.skip(size + -size % _BLOCK)


def _on_disk(place: Path, size: int) -> int:
    """Returns the bytes that a file and its new folders take on disk."""
    blocks = -(-size // _DISK_BLOCK)
    folder = place.parent
    while not folder.exists():
        blocks += 1
        folder = folder.parent
    return blocks * _DISK_BLOCK
