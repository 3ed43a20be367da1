"""Each line of resources/paths.yaml by itself: an example that it matches, and a near one that it doesn't."""

import re
from pathlib import Path

import pytest
import yaml

from analysis_testing.in_process import analyze_files, analyze_folder
from openassent_analysis.entries import Runs, runs
from openassent_analysis.files import reason_to_skip
from openassent_analysis.reading import alternatives, resource
from tests.support.each import each

PATHS = resource("paths")
# By list: for each line, in their order, what it matches and what it doesn't.
EXAMPLES = yaml.safe_load((Path(__file__).parent / "lines" / "paths.yml").read_text())
# Matched in any case of letters.
ANY_CASE = {"vendored", "copies", "libraries", "bundles", "messages", "partial", "pieces", "replaced", "wrappers"}
# How files of a list run.
RUNS = {"by_convention": Runs.ALL, "hooks": Runs.PERHAPS, "messages": Runs.NEVER, "pieces": Runs.NEVER}
TAG = b"<script src='https://static.hotjar.com/c/hotjar-1.js'></script>"


def lists():
    """Yields each list of expressions, by its name."""
    for name, written in PATHS.items():
        if name == "names":
            yield from ((f"names: {reason}", lines) for reason, lines in written.items())
        elif isinstance(written, str) and name != "kept":
            yield name, written


def lines():
    """Yields each line with the list that it is in, and its examples."""
    for name, written in lists():
        for line, (matched, near) in zip(written.split("\n"), EXAMPLES[name], strict=True):
            yield pytest.param(name, line, matched, near, id=f"{name}: {line}")


@each("name, line, matched, near", lines())
def test_a_line_matches_its_example_alone(name, line, matched, near):
    line = line.replace("KEPT", PATHS["kept"]).replace("LIBRARY", alternatives(PATHS["libraries"]))
    pattern = re.compile(line, re.IGNORECASE if name in ANY_CASE else 0)
    find = pattern.fullmatch if name == "libraries" else pattern.search
    assert (bool(find(matched)), bool(find(near))) == (True, False)


@each("name, matched, near", [(name, *pair) for name in RUNS for pair in EXAMPLES[name]])
def test_a_path_says_how_a_file_runs(name, matched, near):
    assert runs(matched) is RUNS[name]
    assert runs(near) is not RUNS[name]


@each("reason, folder", [(reason, folder) for reason, folders in PATHS["folders"].items() for folder in folders])
def test_a_folder_is_skipped(reason, folder):
    assert reason_to_skip(f"src/{folder}/a.js") == reason
    assert reason_to_skip(f"src/a-{folder}-a/a.js") is None


BESIDE = [(reason, folder) for reason, folders in PATHS["next_to_manifests"].items() for folder in folders]


@each("reason, folder", BESIDE)
class TestConventions:
    def test_a_folder_is_skipped_beside_a_manifest(self, reason, folder):
        files = [(f"web/{folder}/a/index.html", TAG), ("web/package.json", b"{}"), (f"web/{folder}/a.png", b"")]
        analysis = analyze_files(files)
        assert (analysis.findings, analysis.skipped) == ([], {reason: 1})
        assert analysis.skipped_examples == {reason: [f"web/{folder}/a/index.html"]}
        # A finding of an earlier scan isn't fixed.
        assert analysis.uncertain == {f"web/{folder}/a/index.html"}

    def test_a_folder_elsewhere_is_the_site(self, reason, folder):
        files = [(f"web/{folder}/index.html", TAG), ("package.json", b"{}"), (f"web/{folder}/package.json", b"{}")]
        assert analyze_files(files).findings
        assert not analyze_files(files).skipped


@each("manifest", PATHS["manifests"])
def test_a_manifest_shows_a_project(manifest, tmp_path):
    for name, content in ((manifest, b"a"), ("demo/index.html", TAG)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert analyze_folder(tmp_path).skipped["test or example"] == 1
    (tmp_path / manifest).rename(tmp_path / f"{manifest}.old")
    assert "test or example" not in analyze_folder(tmp_path).skipped
