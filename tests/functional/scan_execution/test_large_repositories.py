"""Repositories that are larger than a scan reads: what fits is analyzed, and nothing else is taken for fixed."""

import random

import pytest

import openassent_analysis
from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import ExecuteScan
from controlplane.scans import reads
from controlplane.scans.items import CoveredKind, ScanItem
from tests.functional.scan_execution.repeated_scans import CONSENT, GA, HOTJAR, Audit, Files, page
from tests.support.code_host import archive


def noise(folder: str, files: int, size: int = 300_000) -> dict[str, str | bytes]:
    """Returns images, which can't be compressed: four of them take more than 1 MB."""
    return {f"{folder}/{number}.png": random.Random(number).randbytes(size) for number in range(files)}


def code(folder: str, files: int) -> dict[str, str | bytes]:
    return {f"{folder}/{number:03}.js": f"let a = {number}\n" for number in range(files)}


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch):
    def change(**limits: int) -> None:
        for name, value in limits.items():
            monkeypatch.setitem(settings.__dict__, f"scan_{name}", value)

    return change


def link_folder(audit: Audit, folder: str) -> None:
    (link,) = repositories.get_repository(audit.repository.repository_id).links
    repositories.link_project(audit.repository.repository_id, Link(link.project_id, None, folder, False))


def failed(audit: Audit, files: Files) -> ScanItem:
    scan = audit.start()
    audit._host.archives = {scan.head_commit_sha: archive(files)}
    audit.deliver(ExecuteScan(scan_id=scan.scan_id))
    return reads.get_scan(scan.scan_id)


MONOREPO: Files = {
    **code("apps/admin", 30), "apps/web/a.html": page(GA), **code("apps/web", 3), **code("packages", 30),
}  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "others"),
    [
        ({"stored_files": 5}, {}),
        ({"stored_bytes": 8 * 4_096}, {}),
        ({"archive_megabytes": 1}, noise("media", 5)),
    ],
    ids=["files", "bytes on the disk", "more after it"],
)
def test_a_linked_folder_that_fits_is_covered_completely(limits, others, audit, limit):
    limit(**limits)
    link_folder(audit, "apps/web")
    coverage = audit.scan({**MONOREPO, **others}).coverage
    assert (coverage.files, coverage.analyzed_files, coverage.skipped, coverage.incomplete) == (4, 4, {}, None)
    audit.scan({**noise("apps/admin", 2), "apps/web/b.html": page(), **others})
    assert audit.item().status == "resolved"


class TestOneThatDoesNotFit:
    @pytest.mark.parametrize(
        ("limited", "number", "fits", "reason", "said"),
        [
            ("stored_files", 5, 5, "too many files", "The scanned folder has more than 5 files to analyze"),
            # 4 KB each, and two folders.
            ("stored_bytes", 1024**2, 254, "too many bytes", "The files to analyze take more than 1 MB"),
        ],
    )
    def test_is_analyzed_partly_and_says_what_was_left_out(
        self, *, limited, number, fits, reason, said, audit, api, company, limit
    ):
        limit(**{limited: number})
        scan = audit.scan({"a.html": page(GA), **code("web", 260)})
        left_out = 262 - fits
        first = f"web/{fits - 2:03}.js"
        assert scan.coverage is not None
        assert (scan.coverage.files, scan.coverage.analyzed_files) == (262, fits)
        assert scan.coverage.skipped == {reason: left_out}
        assert CoveredKind("JavaScript and TypeScript", fits - 1, left_out) in scan.coverage.kinds
        incomplete = f"{said}: {left_out} files weren't analyzed, beginning with {first}."
        assert scan.coverage.incomplete == incomplete
        shown = api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data["coverage"]
        assert (shown["skipped"], shown["incomplete"]) == ({reason: left_out}, incomplete)
        assert "Google Analytics" in audit.item().title

    def test_is_read_up_to_the_limit_of_the_archive(self, audit, limit):
        limit(archive_megabytes=1)
        scan = audit.scan({"a.html": page(GA), **noise("media", 5), "z.html": page(HOTJAR)})
        assert scan.coverage.incomplete == (
            "The repository's archive has more than 1 MB: files after media/2.png weren't read."
        )
        assert audit.statuses() == {"Google Analytics": "open"}

    def test_with_a_manifest_that_was_left_out_has_a_truncated_inventory(self, audit, api, company, limit):
        limit(stored_files=2)
        scan = audit.scan({"a.html": page(GA), "web/package.json": '{"dependencies": {"next": "1"}}'})
        assert api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data["inventory"]["truncated"]

    def test_that_the_analysis_has_no_time_for_says_so(self, audit, monkeypatch):
        limits = openassent_analysis.Limits(max_seconds=-1)
        monkeypatch.setattr("scan_execution.service._analysis_limits", lambda: limits)
        coverage = audit.scan({"a.html": page(GA)}).coverage
        assert coverage.incomplete == "The analysis took too long: 2 files weren't analyzed, beginning with a.html."


class TestEarlierFindings:
    @pytest.mark.parametrize(
        ("limits", "files", "left"),
        [
            ({"stored_files": 2}, {"a.html": page(), "z.html": page()}, "Hotjar"),
            ({"archive_megabytes": 1}, {"a.html": page(), **noise("media", 5)}, "Hotjar"),
            # Deleted, and every file was listed.
            ({"stored_files": 2}, {"a.html": page(GA), **code("web", 9)}, "Google Analytics"),
        ],
        ids=["too many files", "a large archive", "deleted"],
    )
    def test_stay_open_in_files_that_were_left_out(self, limits, files, left, audit, limit):
        audit.scan({"a.html": page(GA), "z.html": page(HOTJAR)})
        limit(**limits)
        scan = audit.scan(files)
        assert {title for title, status in audit.statuses().items() if status == "open"} == {left}
        assert scan.comparison.fixed_count == 1
        audit.scan({"a.html": page()})
        assert {*audit.statuses().values()} == {"resolved"}

    def test_in_files_that_were_deleted_stay_open_if_there_are_more_than_can_be_named(self, audit, limit, monkeypatch):
        audit.scan({"a.html": page(GA), "m.html": page(HOTJAR), "z.html": page(HOTJAR)})
        limit(stored_files=2)
        monkeypatch.setattr("openassent_analysis.inventory.listing.MAX_UNREAD_CHARACTERS", 50)
        audit.scan({"a.html": page(), **code("web", 9)})
        assert audit.item().status == "resolved"
        assert [item.status for item in audit.items() if "Hotjar" in item.title] == ["open", "open"]

    def test_about_the_whole_project_are_neither_made_nor_resolved(self, audit, limit):
        """The files that ask for consent may be among those that weren't read."""
        files: Files = {"a.html": page(GA), "src/consent.js": "1"}
        limit(archive_megabytes=1)
        audit.scan({**files, **noise("media", 5)})
        assert audit.statuses() == {"Google Analytics": "open"}
        audit.scan(files)
        assert audit.item("never asks").status == "open"
        audit.scan({**files, "a.html": page(), **noise("media", 5)})
        assert audit.item("never asks").status == "open"
        limit(stored_files=1)
        audit.scan({"src/consent.js": "1", "a.html": page(), "z.js": CONSENT["src/consent.js"]})
        assert audit.item("never asks").status == "open"


@pytest.mark.parametrize(("folder", "told"), [(None, "no code"), ("apps/web", "no file of apps/web")])
def test_a_scan_with_nothing_to_analyze_fails_and_says_what_to_do(folder, told, audit, limit):
    limit(archive_megabytes=1)
    if folder:
        link_folder(audit, folder)
    failure = failed(audit, {**noise("apps/media", 5), "apps/web/a.html": page(GA)}).failure
    assert failure.code == "ARCHIVE_TOO_LARGE"
    assert failure.message == (
        f"The repository's archive has more than 1 MB, and {told} is in what was read. Leave large folders out of "
        "the archive with export-ignore in .gitattributes, or scan a checkout with `assent scan local`."
    )


def test_an_archive_that_was_made_to_fill_the_disk_fails(audit, limit):
    limit(archive_megabytes=1)
    failure = failed(audit, {"a.html": page(GA), "bomb.bin": bytes(9 * 1024**2)}).failure
    assert failure.code == "REPOSITORY_TOO_LARGE"
    assert failure.message.startswith(
        "The repository has more than 8 MB, and it has more than 100 times its archive's size. Leave large folders"
    )
