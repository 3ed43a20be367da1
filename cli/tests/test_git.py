from pathlib import Path

import pytest

from cli.tests.support.shell import run_git
from openassent_cli import git
from openassent_cli.problems import Exit, Problem


@pytest.fixture
def tree(tmp_path):
    """A working tree on a branch, with one commit that `main` doesn't have, and one that the branch doesn't have."""
    run_git(tmp_path, "init", "-q")
    (tmp_path / "web").mkdir()
    for name in ("same.js", "changed.js", "gone.js", "web/page.js"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".gitignore").write_text("ignored.js\n")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-qm", "first")
    run_git(tmp_path, "switch", "-qc", "topic")
    (tmp_path / "changed.js").write_text("2\n")
    (tmp_path / "gone.js").unlink()
    run_git(tmp_path, "commit", "-qam", "second")
    run_git(tmp_path, "switch", "-q", "main")
    (tmp_path / "same.js").write_text("2\n")
    run_git(tmp_path, "commit", "-qam", "elsewhere")
    run_git(tmp_path, "switch", "-q", "topic")
    return tmp_path


class TestChangedSince:
    def test_files_of_the_branch_are_listed_committed_or_not(self, tree):
        (tree / "web" / "page.js").write_text("2\n")
        (tree / "new é.js").write_text("1\n")
        (tree / "ignored.js").write_text("1\n")
        assert git.changed_since(tree, "main") == {"changed.js", "web/page.js", "new é.js"}
        assert git.changed_since(tree / "web", "main") == {"page.js"}

    def test_line_ends_that_git_converts_are_no_change(self, tree):
        run_git(tree, "config", "core.autocrlf", "true")
        (tree / "same.js").write_bytes(b"1\r\n")
        assert git.changed_since(tree, "main") == {"changed.js"}

    @pytest.mark.parametrize("reference", ["nope", "--output=x"])
    def test_an_unknown_reference_is_refused(self, tree, reference):
        with pytest.raises(Problem):
            git.changed_since(tree, reference)
        assert not (tree / "x").exists()


class TestWorkingTree:
    def test_a_folder_outside_of_one_has_no_root(self, tmp_path):
        assert git.root(tmp_path) is None

    def test_the_base_is_checked_out_next_to_the_tree_and_removed(self, tree):
        run_git(tree, "remote", "add", "origin", "https://github.com/octocat/hello.git")
        with git.checked_out(tree, "main") as base:
            assert (base / "same.js").read_text() == "1\n"
            assert (base / "gone.js").exists()
            assert git.remote_name(base) == "octocat/hello"
        assert not base.exists()
        assert run_git(tree, "worktree", "list").count("\n") == 0
        assert run_git(tree, "status", "--short") == ""

    def test_a_linked_working_tree_and_sha256_work_too(self, tmp_path):
        run_git(tmp_path, "init", "-q", "--object-format=sha256", "main")
        (tmp_path / "main" / "page.js").write_text("1\n")
        run_git(tmp_path / "main", "add", ".")
        run_git(tmp_path / "main", "commit", "-qm", "first")
        linked = tmp_path / "linked"
        run_git(tmp_path / "main", "worktree", "add", "-q", str(linked))
        (linked / "page.js").write_text("2\n")
        assert git.changed_since(linked, "main") == {"page.js"}
        with git.checked_out(linked, "main") as base:
            assert (base / "page.js").read_text() == "1\n"

    def test_the_tip_of_a_remote_branch_is_recognized(self, tree):
        run_git(tree, "update-ref", "refs/remotes/origin/main", "main")
        assert git.is_tip(tree, run_git(tree, "rev-parse", "main"), "main")
        assert not git.is_tip(tree, git.commit(tree), "main")
        assert not git.is_tip(tree, git.commit(tree), "nope")


# Each names a program that git may run.
PROGRAMS = (
    "alias.ls-files", "core.alternateRefsCommand", "core.askPass", "core.editor", "core.fsmonitor", "core.gitProxy",
    "core.pager", "core.sshCommand", "credential.helper", "diff.evil.command", "diff.evil.textconv", "diff.external",
    "filter.evil.clean", "filter.evil.process", "filter.evil.smudge", "gpg.program", "merge.evil.driver", "pager.diff",
    "remote.origin.receivepack", "remote.origin.uploadpack", "uploadpack.packObjectsHook",
)  # fmt: skip
HOOKS = ("fsmonitor-watchman", "post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction")


class TestHostileRepository:
    """Whatever a repository configures, none of its programs runs."""

    @pytest.fixture
    def ran(self, tree, tmp_path_factory):
        """Returns a folder, in which each program leaves a file with its name if it runs."""
        for place in (".gitattributes", ".git/info/attributes"):
            (tree / place).parent.mkdir(exist_ok=True)
            (tree / place).write_text("* filter=evil diff=evil merge=evil\n")
        (tree / "same.js").write_text("3\n")
        return tmp_path_factory.mktemp("ran")

    def program(self, path: Path, ran: Path) -> Path:
        """Returns a program, which the repository can configure."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}/{path.name}\ncat\n")
        path.chmod(0o755)
        return path

    def use_everything(self, tree: Path) -> None:
        assert git.root(tree) == tree
        assert git.changed_since(tree, "main") == {".gitattributes", "changed.js", "same.js"}
        with git.checked_out(tree, "main") as base:
            assert (base / "same.js").read_text() == "1\n"
        assert git.has(tree, "main")
        git.commit(tree, of_merge=True)
        git.is_tip(tree, git.commit(tree), "main")
        git.remote_name(tree)

    def test_no_configured_program_runs(self, tree, ran):
        for name in PROGRAMS:
            program = self.program(tree / ".git" / "programs" / name, ran)
            run_git(tree, "config", name, f"!{program}" if name.startswith("alias.") else str(program))
        self.use_everything(tree)
        assert [*ran.iterdir()] == []

    def test_no_program_of_an_included_file_runs(self, tree, ran):
        program = self.program(tree / ".git" / "program", ran)
        (tree / ".git" / "more").write_text(f'[filter "evil"]\nclean = {program}\nsmudge = {program}\n')
        run_git(tree, "config", f"includeIf.gitdir:{tree}/.path", "more")
        self.use_everything(tree)
        assert [*ran.iterdir()] == []

    @pytest.mark.parametrize("folder", ["hooks", "evil"])
    def test_no_hook_runs(self, folder, tree, ran):
        for hook in HOOKS:
            self.program(tree / ".git" / folder / hook, ran)
        if folder != "hooks":
            run_git(tree, "config", "core.hooksPath", str(tree / ".git" / folder))
        self.use_everything(tree)
        assert [*ran.iterdir()] == []

    def test_no_program_of_a_nested_repository_runs(self, tree, ran):
        program, nested = self.program(tree / ".git" / "program", ran), tree / "nested"
        run_git(tree, "init", "-q", str(nested))
        (nested / "a.js").write_text("1\n")
        run_git(nested, "add", "a.js")
        run_git(nested, "commit", "-qm", "nested")
        run_git(tree, "add", "nested")
        run_git(tree, "commit", "-qm", "with a submodule")
        run_git(tree, "branch", "-f", "main")
        for name in ("core.fsmonitor", "filter.evil.clean"):
            run_git(nested, "config", name, str(program))
        (nested / ".gitattributes").write_text("* filter=evil\n")
        (nested / "a.js").write_text("2\n")
        assert git.changed_since(tree, "main") == {".gitattributes", "same.js"}
        with git.checked_out(tree, "main"):
            pass
        assert [*ran.iterdir()] == []

    def test_files_that_a_partial_clone_leaves_out_arent_fetched(self, tree, ran):
        left_out = run_git(tree, "rev-parse", "main~:same.js")
        (tree / ".git" / "objects" / left_out[:2] / left_out[2:]).unlink()
        run_git(tree, "config", "core.repositoryFormatVersion", "1")
        for name, value in {
            "extensions.partialClone": "origin",
            "protocol.allow": "always",
            "remote.origin.promisor": "true",
            "remote.origin.uploadpack": str(self.program(tree / ".git" / "program", ran)),
            "remote.origin.url": str(tree),
        }.items():
            run_git(tree, "config", name, value)
        with pytest.raises(Problem) as refused, git.checked_out(tree, "main"):
            pass
        assert (refused.value.code, refused.value.advice) == (
            Exit.USAGE,
            "If this is a partial clone, clone it without --filter: missing files aren't fetched.",
        )
        assert [*ran.iterdir()] == []
