"""Unpacking untrusted archives: only regular files, only inside the folder, and only within the limits."""

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from scan_execution.workspace import DEFAULT_LIMITS, ArchiveInvalid, ArchiveTooLarge, Limits, Unpacked, unpack
from tests.support.code_host import archive

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


def skipped_alone(content: bytes, folder: Path, reason: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Checks that the archive's one dangerous entry is skipped and that the good file after it is extracted."""
    result = unpack(pieces(content), folder, limits=limits)
    assert result.skipped == {reason: 1}
    assert stored(folder) == {"good.js": b"1"}


GOOD = (member(f"{TOP}/good.js", content=b"1"), b"1")


class TestGoodArchives:
    def test_files_are_unpacked_to_their_paths_in_the_repository(self, tmp_path: Path):
        files: dict[str, str | bytes] = {"a.js": "1", "src/b.ts": "22", "src/deep/ä b.tsx": b"\x00\xff", "empty.js": ""}
        result = unpack(pieces(archive(files)), tmp_path)
        assert result == Unpacked(4, {})
        assert stored(tmp_path) == {
            "a.js": b"1", "src/b.ts": b"22", "src/deep/ä b.tsx": b"\x00\xff", "empty.js": b"",
        }  # fmt: skip

    @pytest.mark.parametrize("format_", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    @pytest.mark.parametrize("size", [1, 511, 512, 513, 65_536, 1_000_000])
    def test_every_format_is_unpacked_however_it_arrives(self, format_: int, size: int, tmp_path: Path):
        name = f"{TOP}/" + "d" * 90 + "/" + "f" * 90 + ".js"
        buffer = io.BytesIO()
        content = bytes(range(256)) * 9
        with tarfile.open(fileobj=buffer, mode="w:gz", format=format_) as tar:
            tar.addfile(member(name, content=content), io.BytesIO(content))
        unpack(pieces(buffer.getvalue(), size), tmp_path)
        assert stored(tmp_path) == {name.removeprefix(f"{TOP}/"): content}

    def test_only_the_root_directory_is_unpacked(self, tmp_path: Path):
        files: dict[str, str | bytes] = {"a.js": "1", "apps/web/b.js": "2", "apps/website/c.js": "3"}
        result = unpack(pieces(archive(files)), tmp_path, root_directory="apps/web")
        assert result.files == 1
        assert stored(tmp_path) == {"apps/web/b.js": b"2"}

    def test_irrelevant_files_are_counted_but_not_written(self, tmp_path: Path):
        files: dict[str, str | bytes] = {"a.js": "1", "b.png": "2", "c.png": "3"}
        result = unpack(
            pieces(archive(files)), tmp_path, reason_to_skip=lambda path, _: "image" if path.endswith("png") else None
        )
        assert result == Unpacked(3, {"image": 2})
        assert stored(tmp_path) == {"a.js": b"1"}


class TestHostileEntries:
    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
    @pytest.mark.parametrize("target", ["/etc/passwd", "../../../etc/passwd", "good.js", "."])
    def test_links_are_skipped(self, kind: bytes, target: str, tmp_path: Path):
        skipped_alone(packed((member(f"{TOP}/link.js", kind, link=target), b""), GOOD), tmp_path, "link")

    @pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
    def test_devices_are_skipped(self, kind: bytes, tmp_path: Path):
        skipped_alone(packed((member(f"{TOP}/device.js", kind), b""), GOOD), tmp_path, "special file")

    @pytest.mark.parametrize(
        "name",
        [
            f"{TOP}/../../evil.js",
            f"{TOP}/a/../../../evil.js",
            "/etc/cron.d/evil.js",
            f"/{TOP}/evil.js",
            f"{TOP}/a\nb.js",
            f"{TOP}/a\x1bb.js",
            "evil.js",
            "../evil.js",
        ],
    )
    def test_paths_that_lead_elsewhere_are_skipped(self, name: str, tmp_path: Path):
        folder = tmp_path / "inside"
        folder.mkdir()
        skipped_alone(packed((member(name, content=b"x"), b"x"), GOOD), folder, "unsafe path")
        assert [path.name for path in tmp_path.iterdir()] == ["inside"]

    def test_names_that_arent_utf_8_are_skipped(self, tmp_path: Path):
        evil = member(f"{TOP}/\udcff.js", content=b"x")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            tar.addfile(evil, io.BytesIO(b"x"))
            tar.addfile(GOOD[0], io.BytesIO(b"1"))
        skipped_alone(buffer.getvalue(), tmp_path, "unsafe path")

    @pytest.mark.parametrize("name", ["d/" * 100 + "a.js", "x" * 300 + ".js", ("y" * 200 + "/") * 8 + "a.js"])
    def test_paths_that_are_too_deep_or_too_long_are_skipped(self, name: str, tmp_path: Path):
        skipped_alone(packed((member(f"{TOP}/{name}", content=b"x"), b"x"), GOOD), tmp_path, "path too long")

    def test_a_file_that_is_too_large_is_skipped_and_the_next_is_read(self, tmp_path: Path):
        big = b"x" * 100_000
        content = packed((member(f"{TOP}/big.js", content=big), big), GOOD)
        skipped_alone(content, tmp_path, "too large", Limits(file_bytes=50_000))

    def test_files_that_exist_but_were_not_written_are_named(self, tmp_path: Path):
        big = b"x" * 100_000
        content = packed(
            (member(f"{TOP}/src/big.js", content=big), big),
            (member(f"{TOP}/src/link.js", tarfile.SYMTYPE, link="big.js"), b""),
            (member(f"{TOP}/{'y' * 2_000}.js", tarfile.SYMTYPE, link="big.js"), b""),
            (member(f"{TOP}/big.png", content=big), big),
            GOOD,
        )

        def image(path: str, size: int) -> str | None:
            return "image" if path.endswith("png") else None

        unpacked = unpack(pieces(content), tmp_path, limits=Limits(file_bytes=50_000), reason_to_skip=image)
        assert unpacked.unread == {"src/big.js", "src/link.js"}

    @pytest.mark.parametrize("second", [f"{TOP}/a.js", f"{TOP}/a.js/b.js"])
    def test_of_two_entries_for_one_path_the_first_remains(self, second: str, tmp_path: Path):
        content = packed((member(f"{TOP}/a.js", content=b"1"), b"1"), (member(second, content=b"22"), b"22"))
        assert unpack(pieces(content), tmp_path).skipped == {"duplicate": 1}
        assert stored(tmp_path) == {"a.js": b"1"}

    def test_a_file_below_a_link_is_written_below_a_folder(self, tmp_path: Path):
        folder = tmp_path / "inside"
        folder.mkdir()
        content = packed(
            (member(f"{TOP}/out", tarfile.SYMTYPE, link=str(tmp_path)), b""),
            (member(f"{TOP}/out/evil.js", content=b"x"), b"x"),
        )
        unpack(pieces(content), folder)
        assert not (tmp_path / "evil.js").exists()
        assert stored(folder) == {"out/evil.js": b"x"}


class TestHostileArchives:
    @pytest.mark.parametrize(
        ("limits", "limit"),
        [
            (Limits(entries=3), "entries"),
            (Limits(stored_files=3), "stored_files"),
            (Limits(stored_bytes=3), "stored_bytes"),
            (Limits(unpacked_bytes=2_048), "unpacked_bytes"),
        ],
    )
    def test_an_archive_that_is_too_large_in_total_is_refused(self, limits: Limits, limit: str, tmp_path: Path):
        with pytest.raises(ArchiveTooLarge) as refusal:
            unpack(pieces(archive({f"{number}.js": "1" for number in range(5)})), tmp_path, limits=limits)
        assert refusal.value.limit == limit

    def test_an_archive_bomb_uses_no_memory_and_ends_at_the_limit(self, tmp_path: Path):
        header = member(f"{TOP}/bomb.js")
        header.size = 10 * 1024**3
        bomb = gzip.compress(header.tobuf() + bytes(64 * 1024**2), compresslevel=1)
        tracemalloc.start()
        try:
            with pytest.raises(ArchiveTooLarge):
                unpack(pieces(bomb), tmp_path, limits=Limits(unpacked_bytes=32 * 1024**2))
            assert tracemalloc.get_traced_memory()[1] < 2 * 1024**2
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
    def test_a_header_of_a_gigabyte_is_not_read(self, kind: bytes, tmp_path: Path):
        header = member(f"{TOP}/long", kind)
        header.size = 1024**3
        with pytest.raises(ArchiveTooLarge) as refusal:
            unpack(pieces(gzip.compress(header.tobuf())), tmp_path)
        assert refusal.value.limit == "header_bytes"

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
    def test_a_truncated_archive_is_refused(self, content: bytes, tmp_path: Path):
        with pytest.raises(ArchiveInvalid):
            unpack(pieces(content), tmp_path)

    def test_a_negative_size_is_refused(self, tmp_path: Path):
        """Sums of sizes would stay below their limits."""
        header = member(f"{TOP}/a.js")
        header.size = -(1024**3)
        with pytest.raises(ArchiveInvalid):
            unpack(pieces(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1_024))), tmp_path)

    @pytest.mark.parametrize(
        "records",
        [b"11 path=a", b"xx path=ab\n", b"9999999 path=a\n", b"12 size=-12\n", b"0 a=b\n", b"20 size=" + b"9" * 11],
    )
    def test_a_damaged_extended_header_is_refused(self, records: bytes, tmp_path: Path):
        header = member(f"{TOP}/pax", tarfile.XHDTYPE, records)
        content = gzip.compress(header.tobuf() + records.ljust(512, b"\0") + GOOD[0].tobuf() + b"1".ljust(512, b"\0"))
        with pytest.raises((ArchiveInvalid, ArchiveTooLarge)):
            unpack(pieces(content), tmp_path)
