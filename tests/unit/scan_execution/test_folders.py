"""A scan's folder: empty at first, removed at the end, and cleaned of files that killed scans left."""

import multiprocessing
import signal
import tempfile
from pathlib import Path

import pytest

from scan_execution import folders
from scan_execution.folders import scan_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _be_killed(temporary: str) -> None:
    tempfile.tempdir = temporary
    with scan_folder() as folder:
        (folder / "source.js").write_text("a tenant's")
        signal.raise_signal(signal.SIGKILL)


class TestScanFolder:
    def test_a_scan_folder_is_empty_and_deleted_afterward(self, temporary):
        with scan_folder() as folder:
            assert folder.parent == temporary
            assert list(folder.iterdir()) == []
            (folder / "a.js").write_text("1")
        assert list(temporary.iterdir()) == []

    def test_a_scan_folder_is_deleted_after_a_failure(self, temporary):
        with pytest.raises(LookupError), scan_folder():
            raise LookupError
        assert list(temporary.iterdir()) == []

    def test_a_killed_scans_folder_is_deleted(self, temporary):
        process = multiprocessing.get_context("spawn").Process(target=_be_killed, args=(str(temporary),))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        [left] = temporary.iterdir()
        assert (left / "source.js").exists()
        with scan_folder() as folder:
            assert list(temporary.iterdir()) == [folder]

    def test_a_running_scans_folder_is_kept(self, temporary):
        with scan_folder() as first:
            (first / "a.js").write_text("1")
            with scan_folder() as second:
                assert (first / "a.js").exists()
                assert {first, second} == set(temporary.iterdir())

    def test_other_folders_are_kept(self, temporary):
        outside = temporary / "outside"
        outside.mkdir()
        (outside / "kept").write_text("1")
        (temporary / "scan-results").mkdir()
        (temporary / "scan-source-file1234").write_text("1")
        (temporary / "scan-source-link1234").symlink_to(outside)
        before = set(temporary.iterdir())
        with scan_folder():
            assert before < set(temporary.iterdir())
        assert (outside / "kept").exists()

    def test_tries_again_if_another_scan_took_the_folder_for_a_leftover(self, temporary, monkeypatch):
        ordinary, made = folders._lock, []

        def lock(folder: Path):
            made.append(folder)
            if len(made) == 1:
                folder.rmdir()
            return ordinary(folder)

        monkeypatch.setattr(folders, "_lock", lock)
        with scan_folder() as folder:
            assert folder.is_dir()
        assert len(made) == 2
