"""Edits of fixes: what they leave of a file, and that the file parses and the finding is gone after them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ast_grep_py import SgRoot

from analysis_testing.in_process import analyze_files, inventory_of
from openassent_analysis.findings import Analysis
from openassent_analysis.fixes import Edit, Fix, Project, fix_for
from openassent_analysis.inventory.stocktaking import with_loads
from openassent_analysis.reading import load_yaml
from tests.support.each import each

WRITTEN: dict[str, Any] = load_yaml(Path(__file__).with_name("fixes.yml"))
LANGUAGES = {".html": "html", ".js": "javascript", ".jsx": "tsx", ".ts": "typescript", ".tsx": "tsx"}
MOST_CHARACTERS = 4_000


class Case(NamedTuple):
    name: str
    vendor: str
    path: str
    before: str
    after: str
    files: Mapping[str, str]
    new: str
    says: list[str]
    code: str


def cases() -> Iterator[Case]:
    for it in WRITTEN["cases"]:
        lines: list[str] = it["lines"]
        before = "".join(f"{line.removeprefix('- ')}\n" for line in lines if not line.startswith("+ "))
        after = "".join(f"{line.removeprefix('+ ')}\n" for line in lines if not line.startswith("- "))
        for name in it["in"]:
            files = {**WRITTEN["setups"][name], it["path"]: before}
            named = f"{it['name']}, {name}, {it['path']}"
            yield Case(
                named,
                it["vendor"],
                it["path"],
                before,
                after,
                files,
                it.get("new", ""),
                it.get("says", []),
                it.get("code", ""),
            )


CASES = [*cases()]


def scan(files: Mapping[str, str]) -> tuple[Analysis, Project]:
    result = analyze_files([(path, content.encode()) for path, content in files.items()])
    return result, Project.of(with_loads(inventory_of(files), result.loads), result)


def fix_of(case: Case) -> Fix:
    result, project = scan(case.files)
    [finding] = [it for it in result.findings if it.category == "trackers" and it.vendor_ids == (case.vendor,)]
    fix = fix_for(finding, project)
    assert fix is not None
    return fix


def applied(files: Mapping[str, str], edits: tuple[Edit, ...]) -> dict[str, str]:
    result = dict(files)
    for edit in sorted(edits, key=lambda it: it.start_line, reverse=True):
        if not edit.before:
            assert edit.path not in files
            result[edit.path] = f"{edit.after}\n"
            continue
        lines = result[edit.path].split("\n")
        last = edit.start_line + edit.before.count("\n")
        assert "\n".join(lines[edit.start_line - 1 : last]).removesuffix("\r") == edit.before
        ending = "\r" if lines[last - 1].endswith("\r") else ""
        lines[edit.start_line - 1 : last] = f"{edit.after}{ending}".split("\n")
        result[edit.path] = "\n".join(lines)
    return result


def errors(path: str, content: str) -> int:
    language = LANGUAGES.get(Path(path).suffix)
    return len(SgRoot(content, language).root().find_all({"rule": {"kind": "ERROR"}})) if language else 0


@each("case", CASES, ids=lambda case: case.name)
def test_edits_change_only_what_the_consent_library_asks(case):
    fix = fix_of(case)
    files = applied(case.files, fix.edits)
    assert files[case.path] == case.after
    assert sum(len(it.before) + len(it.after) for it in fix.edits) <= MOST_CHARACTERS
    assert bool(fix.edits) is (case.before != case.after)
    # Without edits, the code to paste says what to do instead.
    assert fix.edits or fix.code
    assert case.code in fix.code
    [new] = [it for it in fix.edits if not it.before] or [Edit(case.new, 1, "", "")]
    assert not case.new or new.path == case.new
    assert all(it in new.after for it in case.says)


@each("case", [case for case in CASES if case.before != case.after], ids=lambda case: case.name)
def test_the_finding_is_gone_after_the_edits(case):
    files = applied(case.files, fix_of(case).edits)
    for path, content in files.items():
        assert errors(path, content) == (errors(path, case.files[path]) if path in case.files else 0)
    result, _ = scan(files)
    assert [it.title for it in result.findings if it.category == "trackers" and case.vendor in it.vendor_ids] == []


def test_a_fix_as_json_has_its_edits():
    case = next(it for it in CASES if it.before != it.after)
    written = json.loads(json.dumps(fix_of(case).as_dict()))
    [edit] = written["edits"]
    assert edit.keys() == {"path", "startLine", "before", "after"}
    assert (edit["path"], edit["startLine"]) == (case.path, 2)


def test_hits_that_code_sends_itself_have_no_fix_that_a_tag_needs():
    sent = "const el = document.body;\nfetch('https://www.google-analytics.com/mp/collect?measurement_id=' + id);\n"
    result, project = scan({"send.js": sent})
    [finding] = [it for it in result.findings if it.category == "trackers"]
    assert fix_for(finding, project) is None
