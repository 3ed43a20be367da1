"""`assent fix`, and the edits of files that it makes."""

import codecs
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from cli.tests.support.shell import run, run_git
from openassent_analysis.fixes import Edit, Fix
from openassent_cli.edits import Changed, EditedFolder, Refused
from openassent_cli.local import LocalReport
from openassent_cli.problems import Exit

LINES = "<p>one</p>\n<script src='a.js'></script>\n<p>three</p>\n"
EDIT = Edit("page.html", 2, "<script src='a.js'></script>", "<script type='text/plain' src='a.js'></script>")


def folder_of(path: Path, **report: Any) -> EditedFolder:
    values: dict[str, Any] = {"findings": (), "analyzed": 1, "skipped": {}, "skipped_examples": {}}
    return EditedFolder(LocalReport(**{**values, "folder": path, "scanned_at": time.time_ns(), **report}))


def fix_of(*edits: Edit) -> Fix:
    return Fix("Waits.", "html", "", (), edits)


def edited(path: Path, *edits: Edit) -> EditedFolder:
    folder = folder_of(path)
    folder.add(fix_of(*edits))
    return folder


class TestEdits:
    @pytest.mark.parametrize(
        "content",
        [
            LINES.encode(),
            LINES.replace("\n", "\r\n").encode(),
            LINES.encode("utf-8-sig"),
            codecs.BOM_UTF16_LE + LINES.encode("utf-16-le"),
            codecs.BOM_UTF16_BE + LINES.replace("\n", "\r\n").encode("utf-16-be"),
            LINES.replace("three", "caf\xe9").encode("latin-1"),
            LINES.replace("<p>three</p>\n", "").removesuffix("\n").encode(),
        ],
        ids=["plain", "crlf", "bom", "utf-16-le", "utf-16-be-crlf", "latin-1", "no-last-line-break"],
    )
    def test_everything_but_the_lines_stays(self, content, tmp_path):
        page = tmp_path / "page.html"
        page.write_bytes(content)
        page.chmod(0o640)
        (file,) = edited(tmp_path, EDIT).files
        file.write()
        encoding = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(content[:2], "latin-1")
        assert page.read_bytes() == content.replace(EDIT.before.encode(encoding), EDIT.after.encode(encoding))
        assert page.stat().st_mode & 0o777 == 0o640
        assert [*tmp_path.iterdir()] == [page]

    @pytest.mark.parametrize("line_break", ["\n", "\r\n"])
    def test_lines_are_added_and_removed_and_files_created(self, line_break, tmp_path):
        (tmp_path / "page.html").write_bytes(line_break.join("abcde").encode())
        folder = edited(
            tmp_path,
            Edit("page.html", 5, "e", ""),
            Edit("page.html", 1, "a", ""),
            Edit("page.html", 3, "c", "c\r\nC"),
            Edit("src/new.ts", 1, "", "x\ny"),
        )
        for file in folder.files:
            file.write()
        assert (tmp_path / "page.html").read_bytes() == line_break.join(["b", "c", "C", "d", ""]).encode()
        assert (tmp_path / "src" / "new.ts").read_text() == "x\ny\n"

    def test_of_fixes_that_overlap_the_first_is_applied_as_a_whole(self, tmp_path):
        (tmp_path / "page.html").write_text(LINES)
        folder = edited(tmp_path, EDIT)
        other = Edit("page.html", 1, "<p>one</p>\n<script src='a.js'></script>", "")
        with pytest.raises(Refused, match="overlaps another fix"):
            folder.add(fix_of(Edit("page.html", 3, "<p>three</p>", ""), other))
        # The same edit of another fix isn't an overlap.
        folder.add(fix_of(EDIT, Edit("new.ts", 1, "", "x")))
        with pytest.raises(Refused):
            folder.add(fix_of(Edit("new.ts", 1, "", "y")))
        assert [(file.path, len(file.edits)) for file in folder.files] == [("new.ts", 1), ("page.html", 1)]

    def test_a_file_that_has_changed_is_refused(self, tmp_path):
        page = tmp_path / "page.html"
        page.write_text(LINES)
        for edit in (EDIT._replace(before="x"), EDIT._replace(start_line=3), EDIT._replace(start_line=9)):
            with pytest.raises(Changed):
                edited(tmp_path, edit)
        for missing in (EDIT._replace(path="gone.html"), Edit("page.html", 1, "", "x")):
            with pytest.raises(Changed):
                edited(tmp_path, missing)
        with pytest.raises(Changed):
            folder_of(tmp_path, scanned_at=page.stat().st_mtime_ns - 1).add(fix_of(EDIT))
        (file,) = edited(tmp_path, EDIT).files
        page.write_text(LINES + "more")
        with pytest.raises(Changed):
            file.write()
        assert page.read_text() == LINES + "more"

    def test_nothing_is_written_through_links_or_outside_of_the_folder(self, tmp_path):
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        inside.mkdir()
        outside.mkdir()
        (outside / "page.html").write_text(LINES)
        (inside / "page.html").symlink_to(outside / "page.html")
        (inside / "linked").symlink_to(outside)
        (inside / "dangling").symlink_to(outside / "gone")
        outsiders = ("page.html", "linked/page.html", "../outside/page.html", str(outside / "page.html"))
        for path in outsiders:
            with pytest.raises(Refused, match="outside of the folder"):
                edited(inside, EDIT._replace(path=path))
        for path in ("dangling", "linked/new", "../new", "/new"):
            with pytest.raises(Refused, match="outside of the folder"):
                edited(inside, Edit(path, 1, "", "x"))
        os.mkfifo(inside / "pipe")
        with pytest.raises(Refused, match="special file"):
            edited(inside, Edit("pipe", 1, "a", "b"))


class TestDiff:
    @pytest.mark.parametrize("folder", ["", "web/"])
    @pytest.mark.parametrize("name", ["page.html", "a b/ü.html", 'q"\\\t.html'])
    @pytest.mark.parametrize(
        "content", [LINES, LINES.replace("\n", "\r\n"), LINES.removesuffix("\n"), "\ufeff" + LINES]
    )
    def test_git_applies_it(self, content, name, folder, tmp_path):
        run_git(tmp_path, "init", "-q")
        page = tmp_path / folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(content.encode() + b"\xe9")
        changes = folder_of(tmp_path / folder, prefix=folder)
        changes.add(fix_of(EDIT._replace(path=name), Edit("n/new.ts", 1, "", "x")))
        patch = tmp_path / "fix.patch"
        patch.write_bytes(changes.diff().encode(errors="surrogateescape"))
        run_git(tmp_path / folder, "apply", "--whitespace=nowarn", str(patch))
        assert page.read_bytes() == content.replace(EDIT.before, EDIT.after).encode() + b"\xe9"
        assert (tmp_path / folder / "n" / "new.ts").read_text() == "x\n"


@pytest.fixture(scope="module")
def _one_sandbox():
    with warm_sandboxes("openassent_analysis.working_tree.Sandbox"):
        yield


BANNER = '<script id="Cookiebot" src="https://consent.cookiebot.com/uc.js" data-cbid="00000000-0000"></script>\n'
TRACKER = '<script async src="https://www.clarity.ms/tag/abc"></script>\n'
EMAIL = "<script>posthog.identify(user.email, { plan: user.plan });</script>\n"


@pytest.mark.usefixtures("_one_sandbox")
class TestCommand:
    @pytest.fixture(autouse=True)
    def tree(self, tmp_path, monkeypatch):
        """A working tree with a tracker that an edit fixes, and an identification that has no fix."""
        (tmp_path / "web").mkdir()
        for name, code in (("page.html", BANNER + TRACKER), ("login.html", BANNER + EMAIL)):
            (tmp_path / "web" / name).write_text(f"<!doctype html>\n<html><head>\n{code}</head></html>\n")
        run_git(tmp_path, "init", "-q")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_prints_a_diff_that_git_applies_and_that_fixes_the_findings(self, tree):
        ended = run("fix web")
        assert ended.code == Exit.DONE
        (tree / "fix.patch").write_text(ended.stdout)
        run_git(tree, "apply", "fix.patch")
        assert 'type="text/plain"' in (tree / "web" / "page.html").read_text()
        assert [it["location"]["path"] for it in run("scan local web --json").json["findings"]] == ["login.html"]
        assert re.search(r"^Would fix: P0 page\.html:4 .+\. Cookiebot .+", ended.stderr, re.MULTILINE)
        assert re.search(r"^By hand: P\d login\.html:4 .+\. Identify users by an opaque", ended.stderr, re.MULTILINE)
        assert "--apply" in ended.stderr

    def test_applies_the_changes_and_names_the_files(self, tree):
        diff = run("fix").stdout
        ended = run("fix --apply")
        assert (ended.code, ended.stdout) == (Exit.DONE, "web/page.html\n")
        assert (tree / "web" / "page.html").read_text().splitlines()[3] in diff
        again = run("fix --apply")
        assert (again.code, again.stdout) == (Exit.DONE, "")

    def test_prints_json(self, tree):
        found = run("fix --json").json
        assert (found["applied"], found["files"], found["refused"]) == (False, ["web/page.html"], [])
        assert found["diff"] == run("fix --quiet").stdout
        assert [it["location"]["path"] for it in found["fixed"]] == ["web/page.html"]
        assert [it["location"]["path"] for it in found["byHand"]] == ["web/login.html"]

    def test_is_colored_in_a_terminal_which_the_code_cant_control(self, tree):
        (tree / "web" / "page.html").write_text(
            (tree / "web" / "page.html").read_text().replace("async", "a='\x1b[2J'")
        )
        shown = run("fix", terminal=True).stdout
        assert "\x1b[31m-<script a='\ufffd[2J'" in shown
        assert "\x1b[32m+<script" in shown

    def test_globs_and_rules_select_what_is_fixed(self, tree):
        assert run("fix --exclude page.html").stdout == ""
        assert run("fix --rule identified-by-address --apply").stdout == ""
        assert "page.html" in run("fix --rule session-replay-loaded --include demo/").stdout

    def test_a_folder_that_doesnt_exist_is_refused(self, tree):
        assert run("fix nope").code == Exit.USAGE
