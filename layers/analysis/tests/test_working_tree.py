"""Scans of folders on this machine: which files are read, what is reported, and how a baseline is compared."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from openassent_analysis import git
from openassent_analysis.working_tree import InvalidBaseline, WorkingTreeScan, compare, list_files, read_baseline, scan

TRACKER = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
COOKIE = "document.cookie = 'visitor_id=1; max-age=99';\n"
BANNER = '<div id="cookie-banner"><button>Accept</button></div>\n'


def write(root: Path, files: Mapping[str, str]) -> Path:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return root


def run_git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    with warm_sandboxes("openassent_analysis.working_tree.Sandbox"):
        yield


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "-q")
    return tmp_path


def listed(root: Path) -> dict[str, str | None]:
    return {path: reason for path, _, reason in list_files(root)}


def places(result: WorkingTreeScan) -> set[str]:
    return {it.finding.location.path for it in result.findings}


def test_this_repository_has_no_findings():
    assert places(scan(Path(__file__).parents[3])) == set()


class TestFiles:
    def test_ignored_files_are_left_out_and_new_ones_are_listed(self, repository):
        write(repository, {".gitignore": "out.js\n", "out.js": COOKIE, "tracked.js": COOKIE})
        run_git(repository, "add", ".")
        write(repository, {"new ümlaut.js": COOKIE, "below/new.js": COOKIE})
        assert listed(repository).keys() == {".gitignore", "tracked.js", "new ümlaut.js", "below/new.js"}
        assert listed(repository / "below") == {"new.js": None}

    def test_deleted_files_and_other_repositories_are_left_out_and_links_arent_followed(self, repository):
        write(repository, {"gone.js": COOKIE, "a.js": COOKIE, "other/b.js": COOKIE})
        run_git(repository / "other", "init", "-q")
        (repository / "link.js").symlink_to("a.js")
        run_git(repository, "add", "gone.js", "a.js", "link.js")
        (repository / "gone.js").unlink()
        assert listed(repository) == {"a.js": None, "link.js": "link"}

    def test_a_folder_that_git_ignores_is_read_as_if_there_were_no_git(self, repository):
        write(repository, {".gitignore": "build-1/\n", "build-1/a.js": COOKIE})
        assert listed(repository / "build-1") == {"a.js": None}

    def test_a_folder_without_git_is_read_except_for_dependencies(self, tmp_path):
        write(tmp_path, {"a.js": COOKIE, "node_modules/b/b.js": COOKIE})
        assert listed(tmp_path) == {"a.js": None, "node_modules/": "vendored"}

    def test_without_the_program_git_the_folder_is_read(self, repository, monkeypatch):
        write(repository, {".gitignore": "a.js\n", "a.js": COOKIE})
        monkeypatch.setenv("PATH", "")
        assert "a.js" in listed(repository)

    def test_gits_own_variables_dont_lead_to_another_repository(self, repository, monkeypatch):
        write(repository, {"a.js": COOKIE})
        monkeypatch.setenv("GIT_DIR", "elsewhere")
        assert git.list_files(repository) == ["a.js"]

    def test_no_program_of_the_repositorys_configuration_runs(self, repository):
        program = repository / "monitor"
        write(repository, {"a.js": COOKIE, "monitor": "#!/bin/sh\ntouch ran\n"})
        program.chmod(0o755)
        run_git(repository, "config", "core.fsmonitor", str(program))
        git.list_files(repository)
        assert not (repository / "ran").exists()

    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("https://github.com/acme/shop.git", "acme/shop"),
            ("git@github.com:acme/shop.js.git", "acme/shop.js"),
            ("ssh://git@host:22/acme/shop/", "acme/shop"),
            ("https://host/", ""),
            ("", ""),
        ],
    )
    def test_a_repositorys_name_is_that_of_its_remote(self, address, name, repository):
        if address:
            run_git(repository, "remote", "add", "origin", address)
        assert git.repository_of(repository) == name


class TestScan:
    def test_a_finding_is_ready_for_a_report(self, tmp_path):
        write(tmp_path, {"index.html": TRACKER + BANNER})
        result = scan(tmp_path)
        [reported] = result.findings
        assert reported.vendors == (("hotjar", "Hotjar", "hotjar.com"),)
        assert reported.fix is not None
        written = reported.as_dict()
        assert written["vendors"] == [{"id": "hotjar", "name": "Hotjar", "domain": "hotjar.com"}]
        assert written["fix"]["code"] == reported.fix.code
        assert (written["location"]["path"], written["location"]["startLine"]) == ("index.html", 1)
        assert (result.analysis.files_analyzed, result.inventory.files) == (1, 1)

    def test_a_fix_fits_the_packages_of_the_project(self, tmp_path):
        write(tmp_path, {
            "package.json": '{"dependencies": {"next": "15.0.0", "react": "19.0.0"}}',
            "package-lock.json": "{}",
            "app/layout.tsx": "export default () => <Script src='https://static.hotjar.com/c/hotjar-1.js' />;\n",
        })  # fmt: skip
        fixes = [it.fix for it in scan(tmp_path).findings if it.finding.category == "trackers"]
        assert fixes[0] is not None
        assert fixes[0].packages[0].startswith("@c15t/nextjs@")

    def test_only_findings_of_the_wanted_files_are_reported_but_all_files_are_read(self, tmp_path):
        write(tmp_path, {"a.js": COOKIE, "b.js": COOKIE, "index.html": TRACKER, "banner.html": BANNER})
        everything, result = scan(tmp_path), scan(tmp_path, only={"b.js", "index.html"})
        assert places(everything) == {"a.js", "b.js", "index.html"}
        assert places(result) == {"b.js", "index.html"}
        assert {it.finding.rule_id for it in result.findings} == {"tracking-cookie-written", "session-replay-loaded"}
        assert result.analysis.files_analyzed == 4

    def test_progress_counts_each_file_once_and_ends_at_the_total(self, tmp_path):
        seen: list[tuple[int, int]] = []
        write(tmp_path, {f"{number}.js": COOKIE for number in range(40)} | {"empty.js": "", "data.csv": "1"})
        scan(tmp_path, on_progress=lambda done, total: seen.append((done, total)), workers=1)
        assert seen == [*((number, 41) for number in range(1, 42)), (41, 41)]

    def test_a_path_that_isnt_a_folder_is_refused(self, tmp_path):
        with pytest.raises(NotADirectoryError):
            scan(tmp_path / "nothing")


class TestBaseline:
    def baseline_of(self, root: Path) -> list[dict]:
        return [it.as_dict() for it in scan(root).findings]

    def test_a_finding_is_new_or_known_also_in_a_renamed_file_or_fixed_if_its_file_was_analyzed(self, tmp_path):
        write(tmp_path, {"same.js": COOKIE, "fixed.js": COOKIE, "large.js": COOKIE, "old.html": TRACKER + BANNER})
        baseline = read_baseline(self.baseline_of(tmp_path))
        (tmp_path / "old.html").rename(tmp_path / "renamed.html")
        added = "localStorage.setItem('visitor_id', crypto.randomUUID());\n"
        write(tmp_path, {"new.js": added, "fixed.js": "const fixed = 1;\n", "large.js": "a" * 600_000})
        found = compare(scan(tmp_path), baseline)
        assert [it.finding.location.path for it in found.new] == ["new.js"]
        assert {it.finding.location.path for it in found.known} == {"same.js", "renamed.html"}
        assert [it.path for it in found.fixed] == ["fixed.js"]

    def test_a_scan_of_some_files_compares_all_of_them(self, tmp_path):
        write(tmp_path, {"a.js": COOKIE, "b.js": COOKIE})
        baseline = read_baseline(self.baseline_of(tmp_path))
        found = compare(scan(tmp_path, only={"a.js"}), baseline)
        assert [it.finding.location.path for it in found.known] == ["a.js"]
        assert found.fixed == ()

    @pytest.mark.parametrize("finding", [{}, {"fingerprint": "a"}, [], {"location": 1}])
    def test_other_documents_are_refused(self, finding):
        with pytest.raises(InvalidBaseline):
            read_baseline([finding])

    def test_values_of_other_types_are_refused(self, tmp_path):
        write(tmp_path, {"a.js": COOKIE})
        [finding] = self.baseline_of(tmp_path)
        for wrong in ({"ordinal": "0"}, {"content": None}, {"location": {"path": 1}}):
            with pytest.raises(InvalidBaseline):
                read_baseline([{**finding, **wrong}])
