"""Unpacking untrusted archives: only regular files, only inside the folder, and only within the limits."""

import gzip
import io
import random
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scan_execution import workspace
from scan_execution.workspace import DEFAULT_LIMITS, ArchiveInvalid, ArchiveTooLarge, Cut, Limits, Unpacked
from tests.support.code_host import archive
from tests.support.each import each

TOP = "acme-shop-1f0c2b9"


def pieces(content: bytes, size: int = 777) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def stored(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, len(content), link
    return made


def image(path: str, size: int) -> str | None:
    return "image" if path.endswith("png") else None


def unpack(pieces: Iterator[bytes], folder: Path, **options: Any) -> Unpacked:
    """Unpacks every file, unless the options say otherwise."""
    return workspace.unpack(
        pieces, folder, **{"reason_to_skip": lambda *_: None, "leave_out": lambda *_: None} | options
    )


def skipped_alone(content: bytes, folder: Path, reason: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Checks that the archive's one dangerous entry is skipped and that the good file after it is extracted."""
    result = unpack(pieces(content), folder, limits=limits)
    assert result.skipped == {reason: 1}
    assert stored(folder) == {"good.js": b"1"}


GOOD = (member(f"{TOP}/good.js", content=b"1"), b"1")


OTHERS = {f"apps/{number}.js": "1" * 9_000 for number in range(50)}
DEEP = {f"{number}/" + "d/" * 30 + "a.js": "1" for number in range(100)}
# Files, options, what was unpacked, and the number of files that are stored.
ARCHIVES: dict[str, tuple[dict[str, str | bytes], dict[str, Any], Unpacked, int]] = {
    "all": ({"a.js": "1", "src/b.ts": "22", "src/deep/ä b.tsx": b"\x00\xff", "empty.js": ""}, {}, Unpacked(4, {}), 4),
    "the root directory": (
        {"a.js": "1", "apps/web/b.js": "2", "apps/website/c.js": "3"}, {"root_directory": "apps/web"},
        Unpacked(1, {}), 1,
    ),
    "irrelevant files": (
        {"a.js": "1", "b.png": "2", "c.png": "3"}, {"reason_to_skip": image}, Unpacked(3, {"image": 2}), 1,
    ),
    "a smaller file can still fit": (
        {"a.js": "1", "b.js": "2" * 9_000, "c.js": "3"}, {"limits": Limits(stored_bytes=2 * 4_096)},
        Unpacked(3, {"too many bytes": 1}), 2,
    ),
    "folders count as they take room on the disk": (
        {**DEEP}, {"limits": Limits(stored_bytes=10 * 32 * 4_096)}, Unpacked(100, {"too many bytes": 90}), 10,
    ),
    "files outside of the root directory count for nothing": (
        {**OTHERS, **{f"web/{number}.js": "1" for number in range(3)}, "z.js": "1"},
        {"limits": Limits(listed_files=3, stored_files=3, stored_bytes=5 * 4_096), "root_directory": "web"},
        Unpacked(3, {}), 3,
    ),
    "files after the limit of listed ones": (
        {f"{number:03}.js": "1" for number in range(20)}, {"limits": Limits(listed_files=7)},
        Unpacked(7, {}, Cut("listed_files", "006.js")), 7,
    ),
}  # fmt: skip


class TestGoodArchives:
    @each("name", ARCHIVES)
    def test_the_files_that_are_wanted_and_fit_are_unpacked_to_their_paths(self, name, tmp_path_factory):
        files, options, expected, count = ARCHIVES[name]
        folder = tmp_path_factory.mktemp("unpacked")
        assert unpack(pieces(archive(files)), folder, **options) == expected
        found = stored(folder)
        assert len(found) == count
        assert found == {path: it.encode() if isinstance(it := files[path], str) else it for path in found}

    @pytest.mark.parametrize("format_", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    @pytest.mark.parametrize("size", [1, 511, 512, 513, 65_536, 1_000_000])
    def test_every_format_is_unpacked_however_it_arrives(self, format_, size, tmp_path):
        name = f"{TOP}/" + "d" * 90 + "/" + "f" * 90 + ".js"
        buffer = io.BytesIO()
        content = bytes(range(256)) * 9
        with tarfile.open(fileobj=buffer, mode="w:gz", format=format_) as tar:
            tar.addfile(member(name, content=content), io.BytesIO(content))
        unpack(pieces(buffer.getvalue(), size), tmp_path)
        assert stored(tmp_path) == {name.removeprefix(f"{TOP}/"): content}


ELSEWHERE = (
    f"{TOP}/../../evil.js", f"{TOP}/a/../../../evil.js", "/etc/cron.d/evil.js", f"/{TOP}/evil.js", f"{TOP}/a\nb.js",
    f"{TOP}/a\x1bb.js", "evil.js", "../evil.js",
)  # fmt: skip
TOO_LONG = ("d/" * 100 + "a.js", "x" * 300 + ".js", ("y" * 200 + "/") * 8 + "a.js")
LINKS = ("/etc/passwd", "../../../etc/passwd", "good.js", ".")
SKIPPED = [
    *((member(f"{TOP}/link.js", kind, link=target), "link") for kind in (b"2", b"1") for target in LINKS),
    *((member(f"{TOP}/device.js", kind), "special file") for kind in (b"3", b"4", b"6")),
    *((member(name), "unsafe path") for name in ELSEWHERE),
    *((member(f"{TOP}/{name}"), "path too long") for name in TOO_LONG),
    (member(f"{TOP}/big.js", content=bytes(100_000)), "too large"),
]


class TestHostileEntries:
    @each(("entry", "reason"), SKIPPED, ids=lambda it: getattr(it, "name", it))
    def test_links_devices_and_other_paths_are_skipped(self, entry, reason, tmp_path_factory):
        folder = tmp_path_factory.mktemp("outside") / "inside"
        folder.mkdir()
        skipped_alone(packed((entry, bytes(entry.size)), GOOD), folder, reason, Limits(file_bytes=50_000))
        assert [path.name for path in folder.parent.iterdir()] == ["inside"]

    @each(("path_bytes", "skipped"), [(15, {}), (14, {"path too long": 1})])
    def test_a_path_can_be_as_long_as_its_limit_which_counts_separators(self, path_bytes, skipped, tmp_path_factory):
        content = packed((member(f"{TOP}/d/d/d/d/d/a.js"), b""), GOOD)
        limits = Limits(path_bytes=path_bytes)
        assert unpack(pieces(content), tmp_path_factory.mktemp("files"), limits=limits).skipped == skipped

    def test_names_that_arent_utf_8_are_skipped(self, tmp_path):
        evil = member(f"{TOP}/\udcff.js", content=b"x")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            tar.addfile(evil, io.BytesIO(b"x"))
            tar.addfile(GOOD[0], io.BytesIO(b"1"))
        skipped_alone(buffer.getvalue(), tmp_path, "unsafe path")

    def test_files_that_exist_but_were_not_written_are_named(self, tmp_path):
        big = b"x" * 100_000
        content = packed(
            (member(f"{TOP}/src/big.js", content=big), big),
            (member(f"{TOP}/src/link.js", tarfile.SYMTYPE, link="big.js"), b""),
            (member(f"{TOP}/{'y' * 2_000}.js", tarfile.SYMTYPE, link="big.js"), b""),
            (member(f"{TOP}/big.png", content=big), big),
            GOOD,
        )
        named: list[tuple[str, str]] = []
        limits = Limits(file_bytes=50_000)
        unpack(pieces(content), tmp_path, limits=limits, reason_to_skip=image, leave_out=lambda *it: named.append(it))
        assert named == [("src/big.js", "too large"), ("src/link.js", "link")]

    @pytest.mark.parametrize("second", [f"{TOP}/a.js", f"{TOP}/a.js/b.js"])
    def test_of_two_entries_for_one_path_the_first_remains(self, second, tmp_path):
        content = packed((member(f"{TOP}/a.js", content=b"1"), b"1"), (member(second, content=b"22"), b"22"))
        assert unpack(pieces(content), tmp_path).skipped == {"duplicate": 1}
        assert stored(tmp_path) == {"a.js": b"1"}

    def test_a_file_below_a_link_is_written_below_a_folder(self, tmp_path):
        folder = tmp_path / "inside"
        folder.mkdir()
        content = packed(
            (member(f"{TOP}/out", tarfile.SYMTYPE, link=str(tmp_path)), b""),
            (member(f"{TOP}/out/evil.js", content=b"x"), b"x"),
        )
        unpack(pieces(content), folder)
        assert not (tmp_path / "evil.js").exists()
        assert stored(folder) == {"out/evil.js": b"x"}


def cut_off(content: bytes, after: int) -> Iterator[bytes]:
    """Yields the first bytes of an archive that is larger than it may be."""
    yield from pieces(content[:after])
    raise ArchiveTooLarge("archive_bytes")


def incompressible(files: int, size: int = 4_000) -> dict[str, str | bytes]:
    return {f"apps/{number:03}.js": random.Random(number).randbytes(size) for number in range(files)}


class TestLargeArchives:
    @pytest.mark.parametrize(
        ("limits", "reason"),
        [(Limits(stored_files=3), "too many files"), (Limits(stored_bytes=3 * 4_096), "too many bytes")],
    )
    def test_files_that_do_not_fit_are_left_out_and_named(self, limits, reason, tmp_path):
        named: list[tuple[str, str]] = []
        content = archive({f"{number}.js": "1" for number in range(5)})
        result = unpack(pieces(content), tmp_path, limits=limits, leave_out=lambda *it: named.append(it))
        assert result == Unpacked(5, {reason: 2})
        assert named == [("3.js", reason), ("4.js", reason)]
        assert stored(tmp_path).keys() == {"0.js", "1.js", "2.js"}

    def test_reading_stops_at_the_limit_of_archive_bytes(self, tmp_path):
        content = archive(incompressible(20))
        result = unpack(cut_off(content, len(content) // 2), tmp_path)
        assert result.cut == Cut("archive_bytes", f"apps/{result.files - 1:03}.js")
        assert 5 < result.files < 15
        # The file that the limit cut in two isn't there.
        assert {len(file) for file in stored(tmp_path).values()} == {4_000}
        assert len(stored(tmp_path)) == result.files

    def test_reading_stops_at_the_limit_of_unpacked_bytes(self, tmp_path):
        result = unpack(pieces(archive(incompressible(20))), tmp_path, limits=Limits(unpacked_bytes=50_000))
        assert result.cut == Cut("unpacked_bytes", f"apps/{result.files - 1:03}.js")
        assert len(stored(tmp_path)) == result.files < 15

    def test_the_root_directory_is_complete_if_the_limit_is_after_it(self, tmp_path):
        content = archive({"a/1.js": "1", "a/2.js": "2", **incompressible(9)})
        result = unpack(cut_off(content, len(content) - 9_000), tmp_path, root_directory="a")
        assert result == Unpacked(2, {})

    @pytest.mark.parametrize(("root_directory", "after"), [("a", 16_000), ("web", 36_000)])
    def test_an_archive_without_a_file_to_analyze_before_its_limit_is_refused(self, root_directory, after, tmp_path):
        images = {f"a/{number}.png": random.Random(number).randbytes(9_000) for number in range(5)}
        content = archive({**images, "web/a.js": "1"})
        with pytest.raises(ArchiveTooLarge) as refusal:
            unpack(cut_off(content, after), tmp_path, root_directory=root_directory, reason_to_skip=image)
        assert refusal.value.limit == "archive_bytes"


class TestHostileArchives:
    def test_an_archive_bomb_uses_no_memory_and_ends_at_the_limit(self, tmp_path):
        header = member(f"{TOP}/bomb.js")
        header.size = 10 * 1024**3
        bomb = gzip.compress(header.tobuf() + bytes(64 * 1024**2), compresslevel=1)
        tracemalloc.start()
        try:
            with pytest.raises(ArchiveTooLarge) as refusal:
                unpack(pieces(bomb), tmp_path, limits=Limits(unpacked_bytes=32 * 1024**2))
            assert refusal.value.limit == "ratio"
            assert tracemalloc.get_traced_memory()[1] < 2 * 1024**2
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
    def test_a_header_of_a_gigabyte_is_not_read(self, kind, tmp_path):
        header = member(f"{TOP}/long", kind)
        header.size = 1024**3
        with pytest.raises(ArchiveInvalid):
            unpack(pieces(gzip.compress(header.tobuf())), tmp_path)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"not gzip",
            gzip.compress(b""),
            gzip.compress(b"not a tar" * 100),
            archive({"a.js": "1" * 5_000})[:-40],
            gzip.compress(gzip.decompress(archive({"a.js": "1" * 5_000}))[:3_000]),
            gzip.compress(b"\xff" * 2_048),
        ],
        ids=["nothing", "not gzip", "empty", "not tar", "cut gzip", "cut tar", "bytes"],
    )
    def test_a_truncated_archive_is_refused(self, content, tmp_path):
        with pytest.raises(ArchiveInvalid):
            unpack(pieces(content), tmp_path)

    def test_a_negative_size_is_refused(self, tmp_path):
        """Sums of sizes would stay below their limits."""
        header = member(f"{TOP}/a.js")
        header.size = -(1024**3)
        with pytest.raises(ArchiveInvalid):
            unpack(pieces(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1_024))), tmp_path)

    @pytest.mark.parametrize(
        "records",
        [b"11 path=a", b"xx path=ab\n", b"9999999 path=a\n", b"12 size=-12\n", b"0 a=b\n", b"20 size=" + b"9" * 11],
    )
    def test_a_damaged_extended_header_is_refused(self, records, tmp_path):
        header = member(f"{TOP}/pax", tarfile.XHDTYPE, records)
        content = gzip.compress(header.tobuf() + records.ljust(512, b"\0") + GOOD[0].tobuf() + b"1".ljust(512, b"\0"))
        with pytest.raises((ArchiveInvalid, ArchiveTooLarge)):
            unpack(pieces(content), tmp_path)
