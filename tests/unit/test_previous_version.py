"""The version that `make e2e` upgrades from, in a history made for the test."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.previous import NoPreviousVersion, find_previous, has_history


class History:
    """A repository whose commits change one file each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds = 1_790_000_000
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("template.yaml", "1")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
        environment = {**os.environ, "GIT_COMMITTER_DATE": f"{self.seconds} +0000"}
        done = subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> str:
        self.seconds += 60
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.git("add", name)
        self.git("commit", "--quiet", "--message", f"{name} {text}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


class TestBeforeTheFirstRelease:
    def test_it_is_the_last_commit_with_another_template_and_other_code(self, history: History):
        history.commit("template.yaml", "2")
        expected = history.commit("functions/app.py", "1")
        history.commit("template.yaml", "3")
        history.commit("functions/app.py", "2")
        history.commit("template.yaml", "4")
        history.commit("template.yaml", "3")
        assert find_previous(history.root) == expected

    def test_a_change_that_was_reverted_counts_as_another_version(self, history: History):
        history.commit("template.yaml", "2")
        expected = history.commit("functions/app.py", "1")
        history.commit("functions/app.py", "2")
        history.commit("template.yaml", "1")
        assert find_previous(history.root) == expected

    def test_what_is_being_edited_counts(self, history: History):
        history.commit("functions/app.py", "1")
        expected = history.commit("README.md", "1")
        (history.root / "template.yaml").write_text("2")
        (history.root / "functions" / "app.py").write_text("2")
        assert find_previous(history.root) == expected

    def test_commits_of_a_merged_branch_do_not_count(self, history: History):
        expected = history.commit("functions/app.py", "1")
        history.git("checkout", "--quiet", "-b", "branch")
        history.commit("template.yaml", "2")
        history.commit("template.yaml", "3")
        history.commit("functions/app.py", "2")
        history.git("checkout", "--quiet", "main")
        history.git("merge", "--quiet", "--no-ff", "--message", "merge", "branch")
        assert find_previous(history.root) == expected

    def test_a_history_without_another_template_is_an_error(self, history: History):
        history.commit("functions/app.py", "1")
        assert has_history(history.root)
        with pytest.raises(NoPreviousVersion):
            find_previous(history.root)

    def test_one_commit_has_no_previous_version(self, history: History):
        assert not has_history(history.root)


class TestRelease:
    def test_it_is_the_last_release(self, history: History):
        for number in (9, 10):
            expected = history.commit("template.yaml", f"release {number}")
            history.git("tag", "--annotate", f"v0.{number}.0", "--message", f"{number}")
        history.commit("template.yaml", "2")
        history.commit("template.yaml", "3")
        assert find_previous(history.root) == expected

    def test_the_release_that_is_checked_out_is_compared_with_the_one_before(self, history: History):
        expected = history.commit("functions/app.py", "1")
        history.git("tag", "v0.1.0")
        history.commit("functions/app.py", "2")
        history.git("tag", "v0.2.0")
        history.commit("README.md", "1")
        assert find_previous(history.root) == expected

    def test_a_release_of_another_branch_does_not_count(self, history: History):
        expected = history.commit("functions/app.py", "1")
        history.commit("template.yaml", "2")
        history.commit("functions/app.py", "2")
        history.git("checkout", "--quiet", "-b", "branch")
        history.commit("template.yaml", "3")
        history.git("tag", "v0.3.0")
        history.git("checkout", "--quiet", "main")
        assert find_previous(history.root) == expected
