import subprocess
from pathlib import Path

import pytest

from openassent_cli import git
from openassent_cli.problems import Problem


def run(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree on a branch, with one commit that `main` doesn't have, and one that the branch doesn't have."""
    run(tmp_path, "init", "-q")
    (tmp_path / "web").mkdir()
    for name in ("same.js", "changed.js", "gone.js", "web/page.js"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".gitignore").write_text("ignored.js\n")
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-qm", "first")
    run(tmp_path, "switch", "-qc", "topic")
    (tmp_path / "changed.js").write_text("2\n")
    (tmp_path / "gone.js").unlink()
    run(tmp_path, "commit", "-qam", "second")
    run(tmp_path, "switch", "-q", "main")
    (tmp_path / "same.js").write_text("2\n")
    run(tmp_path, "commit", "-qam", "elsewhere")
    run(tmp_path, "switch", "-q", "topic")
    return tmp_path


class TestChangedSince:
    def test_files_of_the_branch_are_listed_committed_or_not(self, tree: Path):
        (tree / "web" / "page.js").write_text("2\n")
        (tree / "new é.js").write_text("1\n")
        (tree / "ignored.js").write_text("1\n")
        assert git.changed_since(tree, "main") == {"changed.js", "web/page.js", "new é.js"}

    def test_paths_are_relative_to_the_folder(self, tree: Path):
        (tree / "web" / "page.js").write_text("2\n")
        assert git.changed_since(tree / "web", "main") == {"page.js"}

    def test_no_program_of_the_repositorys_configuration_runs(self, tree: Path):
        program = tree / "monitor"
        program.write_text("#!/bin/sh\ntouch ran\n")
        program.chmod(0o755)
        run(tree, "config", "core.fsmonitor", str(program))
        git.changed_since(tree, "main")
        assert not (tree / "ran").exists()

    @pytest.mark.parametrize("reference", ["nope", "--output=x"])
    def test_an_unknown_reference_is_refused(self, tree: Path, reference: str):
        with pytest.raises(Problem):
            git.changed_since(tree, reference)
        assert not (tree / "x").exists()


class TestWorkingTree:
    def test_a_folder_outside_of_one_has_no_root(self, tmp_path: Path):
        assert git.root(tmp_path) is None

    def test_the_base_is_checked_out_next_to_the_tree_and_removed(self, tree: Path):
        with git.checked_out(tree, "main") as base:
            assert (base / "same.js").read_text() == "1\n"
            assert (base / "gone.js").exists()
        assert not base.exists()
        assert run(tree, "worktree", "list").count("\n") == 0
        assert run(tree, "status", "--short") == ""

    def test_no_hook_of_the_repository_runs(self, tree: Path):
        hook = tree / ".git" / "hooks" / "post-checkout"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tree}/ran\n")
        hook.chmod(0o755)
        with git.checked_out(tree, "main"):
            assert not (tree / "ran").exists()

    @pytest.mark.parametrize(
        "url",
        [
            "https://github.com/octocat/hello.git",
            "git@github.com:octocat/hello.git",
            "ssh://git@github.com/octocat/hello",
            "https://github.com/octocat/hello/",
        ],
    )
    def test_the_remote_names_the_repository(self, tree: Path, url: str):
        run(tree, "remote", "add", "origin", url)
        assert git.remote_name(tree) == "octocat/hello"

    def test_the_tip_of_a_remote_branch_is_recognized(self, tree: Path):
        run(tree, "update-ref", "refs/remotes/origin/main", "main")
        assert git.is_tip(tree, run(tree, "rev-parse", "main"), "main")
        assert not git.is_tip(tree, git.commit(tree), "main")
        assert not git.is_tip(tree, git.commit(tree), "nope")
