"""Globs select files as .gitignore does, `exclude` before `include`, and never take long."""

import time
from pathlib import Path

import pytest

from openassent_analysis.files import walk
from openassent_analysis.selection import EVERYTHING, EXCLUDED, InvalidGlob, Selection

# Globs, the paths that they match, and near paths that they don't match.
GLOBS = (
    ("legacy", ("legacy", "legacy/a.js", "src/legacy/b/c.js"), ("legacy.js", "my-legacy/a.js")),
    ("legacy/", ("legacy/a.js", "src/legacy/a.js"), ("legacy", "src/legacy")),
    ("/legacy", ("legacy/a.js",), ("src/legacy/a.js",)),
    ("src/legacy", ("src/legacy/a.js",), ("app/src/legacy/a.js",)),
    ("*.html", ("a.html", "b/c.html"), ("a.html5", "html")),
    ("src/*.js", ("src/a.js",), ("src/b/a.js", "lib/src/a.js")),
    ("src/**/a.js", ("src/a.js", "src/b/c/a.js"), ("a.js", "src/b/ba.js")),
    ("**/gen", ("gen/a.js", "b/c/gen/a.js"), ("regen/a.js",)),
    ("src/**", ("src/a.js", "src/b/c.js"), ("src", "lib/src/a.js")),
    ("a?c.js", ("abc.js",), ("ac.js", "a/c.js")),
    ("a[0-9].js", ("a1.js",), ("ab.js",)),
    ("a[!0-9].js", ("ab.js",), ("a1.js", "a/.js")),
    ("a*b*c.js", ("abc.js", "aXbYbZc.js"), ("acb.js", "ab/c.js")),
    (r"\!a.js", ("!a.js",), ("a.js",)),
    ("[a.js", ("[a.js",), ("a.js",)),
)


class TestGlobs:
    def test_match_what_gitignore_does(self):
        for glob, matched, other in GLOBS:
            selection = Selection(exclude=(glob,))
            for path in matched:
                assert selection.reason_to_skip(path) == EXCLUDED, (glob, path)
            for path in other:
                assert selection.reason_to_skip(path) is None, (glob, path)

    @pytest.mark.parametrize("glob", ["", "/", "!a.js", "a" * 301, "**/a/**/b/**/c", "a[z-a].js"])
    def test_are_invalid_if_they_cant_be_matched(self, glob):
        with pytest.raises(InvalidGlob):
            Selection(exclude=(glob,))

    def test_take_linear_time(self):
        selection = Selection(exclude=("*a" * 100 + "b", "**/" + "a*" * 100 + "/**/b"))
        started = time.thread_time()
        for path in ("a" * 1_000, "a/" * 500, "a" * 250 + "/" + "a" * 250):
            assert selection.reason_to_skip(path) is None
        assert time.thread_time() - started < 1


class TestInclude:
    def test_brings_back_what_is_skipped_by_convention(self):
        selection = Selection(include=("mocks/", "*.min.js", "demo/"))
        for path in ("mocks/a.js", "lib/a.min.js"):
            assert EVERYTHING.reason_to_skip(path) is not None
            assert selection.reason_to_skip(path) is None
        assert selection.reason_to_skip("tests/a.js") == "test or example"
        listed = [("package.json", Path(), None), ("demo/a.js", Path(), None), ("samples/a.js", Path(), None)]
        reasons = {path: reason for path, _, reason in selection.with_conventions(listed)}
        assert reasons == {"package.json": None, "demo/a.js": None, "samples/a.js": "test or example"}

    def test_brings_back_neither_excluded_files_nor_the_data_of_the_repository(self):
        selection = Selection(exclude=("demo/old/",), include=("demo/", ".git/"))
        assert selection.reason_to_skip("demo/old/a.js") == EXCLUDED
        assert selection.reason_to_skip(".git/a.js") == "repository data"

    def test_counts_from_the_root_of_the_repository(self):
        selection = Selection(exclude=("/web/old/",), include=("web/demo/",), prefix="web/")
        assert selection.reason_to_skip("old/a.js") == EXCLUDED
        assert selection.reason_to_skip("demo/a.js") is None
        assert selection.reason_to_skip("web/old/a.js") is None

    def test_opens_folders_above_and_below(self, tmp_path: Path):
        for name in ("mocks/site/a.html", "tests/pages/b.html", "tests/c.html", "dist/d.html"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        selection = Selection(include=("mocks", "tests/pages/"))
        found = [path for path, _, _ in walk(tmp_path, selection.reason_to_skip_folder)]
        assert found == ["dist/", "mocks/site/a.html", "tests/c.html", "tests/pages/b.html"]
        assert [path for path in found if selection.reads(path)] == ["mocks/site/a.html", "tests/pages/b.html"]
