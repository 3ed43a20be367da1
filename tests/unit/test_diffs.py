"""The edits of a fix as a unified diff."""

import subprocess

import pytest

from controlplane.findings.fixes import DiffLine, Edit, Fix

PAGE = '<head>\n  <script async src="a.js"></script>\n  <title>Shop</title>\n\n</head>\n<body>\n</body>\n'
BLOCKED = '  <script async type="text/plain"\n    src="a.js"></script>'


def fix(*edits: Edit) -> Fix:
    return Fix("Waits for consent.", "html", "", edits=edits)


def test_lines_that_stay_are_context_and_each_hunk_names_its_lines():
    later = Edit("src/app.html", 40, "one", "")
    first = Edit("src/app.html", 2, "<head>\n<script>\n</head>", "<head>\n<script type>\n<b>\n</head>")
    found = fix(later, first, Edit("consent.ts", 1, "", "start();\nend();"))
    assert found.diff.split("\n") == [
        "--- /dev/null",
        "+++ b/consent.ts",
        "@@ -0,0 +1,2 @@",
        "+start();",
        "+end();",
        "--- a/src/app.html",
        "+++ b/src/app.html",
        "@@ -2,3 +2,4 @@",
        " <head>",
        "-<script>",
        "+<script type>",
        "+<b>",
        " </head>",
        "@@ -40 +40,0 @@",
        "-one",
    ]
    assert found.diff_lines[-2:] == [DiffLine("place", "@@ -40 +40,0 @@"), DiffLine("removed", "-one")]
    assert fix().diff == ""


def test_code_that_looks_like_a_header_is_a_line_of_its_own_kind():
    lines = fix(Edit("a.sql", 1, "-- a\n++ b\n@@", "++ b\n@@ -1 +1 @@")).diff_lines
    assert [line.kind for line in lines] == ["file", "file", "place", "removed", "kept", "removed", "added"]


@pytest.mark.parametrize("before", ["  <title>Shop</title>", "  <title>Shop</title>\n\n</head>", "<body>"])
def test_git_applies_it(before, tmp_path):
    line = PAGE[: PAGE.index(before)].count("\n") + 1
    edits = (
        Edit("index.html", line, before, f"  <meta>\n{before}\n\n"),
        Edit("index.html", 2, '  <script async src="a.js"></script>', BLOCKED),
        Edit("src/consent.ts", 1, "", "start();"),
    )
    (tmp_path / "index.html").write_text(PAGE)
    patch = fix(*edits).diff.encode() + b"\n"
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=tmp_path, input=patch, check=True)
    changed = PAGE.replace(before, f"  <meta>\n{before}\n\n").replace('  <script async src="a.js"></script>', BLOCKED)
    assert (tmp_path / "index.html").read_text() == changed
    assert (tmp_path / "src" / "consent.ts").read_text() == "start();\n"
