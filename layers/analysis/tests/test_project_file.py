"""A repository's `.assent.yml` decides what is read and reported. Its globs select files as .gitignore does."""

import time
from pathlib import Path

import pytest

import openassent_analysis
from analysis_testing.in_process import in_process
from openassent_analysis import Limits
from openassent_analysis.files import walk
from openassent_analysis.project_file import InvalidProjectFile, read_project_file
from openassent_analysis.sandbox import Sandbox
from openassent_analysis.selection import EVERYTHING, EXCLUDED, InvalidGlob, Selection

_HOTJAR = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>'
_OWN = '<script src="https://metrics.acme-example.io/a.js"></script>'
_VENDOR = "{id: acme-metrics, name: Acme Metrics, category: analytics, domains: [metrics.acme-example.io]}"


def read(text: str) -> Selection:
    return read_project_file(text.encode(), in_process(Limits()))


def scan(tmp_path, files, settings):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return openassent_analysis.analyze_folder(tmp_path, in_process(Limits()), Limits(), selection=read(settings))


class TestReading:
    @pytest.mark.parametrize("text", ["", "# Nothing yet\n", "exclude:\nseverity:\n", "---\n{}\n"])
    def test_a_file_without_settings_selects_everything(self, text):
        assert read(text) == Selection()

    def test_all_settings_are_read(self):
        found = read(
            "exclude: [old/]\ninclude: ['demo/']\nseverity: {analytics-loaded: low, widget-loaded: off}\n"
            f"vendors: [{_VENDOR}]\naccept:\n- {{vendor: acme-metrics, reason: Ours}}\n"
            "- {vendor: hotjar, reason: Known}\n"
        )
        assert (found.exclude, found.include) == (("old/",), ("demo/",))
        assert found.severities == {"analytics-loaded": "low", "widget-loaded": "off"}
        assert [it.id for it in found.vendors] == ["acme-metrics"]
        assert found.accepted == {"acme-metrics": "Ours", "hotjar": "Known"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("exclude: old/", "line 1: exclude: it must be a list"),
            ("\nexclude:\n  - a\n  - '!b'\n", "line 4: exclude.1: globs that begin with !"),
            ("exlude: [a]", "line 1: exlude: there is no such key"),
            ("severity:\n  no-such-rule: off\n", "line 2: severity.no-such-rule: there is no such rule"),
            ("severity:\n  analytics-loaded: urgent\n", "line 2: severity.analytics-loaded: it must be one of off,"),
            ("accept:\n- vendor: no-such\n  reason: Ours\n", "line 2: accept.0.vendor: there is no such vendor"),
            ("accept:\n- vendor: hotjar\n", "line 2: accept.0.reason: it is missing"),
            (f"vendors:\n- {_VENDOR.replace('analytics', 'magic')}", "line 2: vendors.0.category: it must be one of"),
            (
                f"vendors:\n- {_VENDOR.replace('acme-example.io', '<b>')}",
                "line 2: vendors.0.domains.0: it isn't a domain",
            ),
            ("- a", "line 1: it must have keys and values"),
            ("a: {", "isn't valid YAML"),
            ("exclude: &a [b]\ninclude: *a\n", "line 2: include: aliases aren't supported"),
            ("exclude: [a]\nexclude: [b]\n", "line 2: exclude: the key isn't a name, or is there twice"),
            ("exclude: [[[[[a]]]]]", "nested too deep"),
            ("exclude: [a]\n---\nexclude: [b]\n", "more than one document"),
            (f"exclude: [{'a, ' * 201}]", "exclude: it has more than 200 entries"),
            ("# " + "a" * 66_000, "more than 64 KB"),
        ],
    )
    def test_what_is_wrong_is_said_with_line_and_key(self, text, said):
        with pytest.raises(InvalidProjectFile) as refused:
            read(text)
        assert said in str(refused.value)

    @pytest.mark.parametrize("text", ["[" * 60_000, "- " * 30_000, "{a: " * 15_000, "? " * 30_000, "\0", "\xff"])
    def test_hostile_files_are_refused(self, text):
        with Sandbox(Limits()) as sandbox, pytest.raises(InvalidProjectFile):
            read_project_file(text.encode("latin-1"), sandbox.examine)


class TestScanning:
    @pytest.mark.parametrize(
        ("settings", "found", "suppressed"),
        [
            ("severity: {session-replay-loaded: off}", {("b.html", "P1")}, [("rule", "The rule is off.")]),
            ("severity: {session-replay-loaded: low}", {("a.html", "P3"), ("b.html", "P1")}, []),
            ("accept: [{vendor: hotjar, reason: See DPO-12}]", {("b.html", "P1")}, [("vendor", "See DPO-12")]),
        ],
        ids=["a rule that is off", "a severity", "an accepted vendor"],
    )
    def test_settings_suppress_findings_of_a_rule_or_a_vendor_alone_or_change_their_priority(
        self, tmp_path, settings, found, suppressed
    ):
        files = {"a.html": _HOTJAR, "b.html": "<script src='https://www.google-analytics.com/a.js'></script>"}
        done = scan(tmp_path, {**files, "consent.js": "CookieConsent.run({});"}, settings)
        assert {(it.location.path, it.priority) for it in done.findings} == found
        assert [it.suppression for it in done.suppressed] == suppressed
        assert {it.finding.vendor_id for it in done.suppressed} <= {"hotjar"}

    def test_a_vendor_of_ones_own_is_found_by_its_domain_and_package(self, tmp_path):
        files = {"a.html": _OWN, "b.js": "import m from 'acme-metrics-js'; m.init('a')"}
        assert "analytics-loaded" not in {it.rule_id for it in scan(tmp_path, files, "").findings}
        vendor = _VENDOR.replace("]}", "], packages: [acme-metrics-js]}")
        found = scan(tmp_path, files, f"vendors: [{vendor}]")
        titles = {(it.location.path, it.vendor_id) for it in found.findings if it.category == "trackers"}
        assert titles == {("a.html", "acme-metrics"), ("b.js", "acme-metrics")}
        assert found.loads.keys() == {"acme-metrics"}
        # The next scan in this process has another project.
        assert "acme-metrics" not in scan(tmp_path, files, "").loads

    def test_excluded_and_included_files(self, tmp_path):
        files = {"a.html": _HOTJAR, "old/b.html": _HOTJAR, "demo/c.html": _HOTJAR, "tests/d.html": _HOTJAR}
        files["package.json"] = "{}"
        found = scan(tmp_path, files, "exclude: [old/]\ninclude: [demo/]")
        assert {it.location.path for it in found.findings} == {"a.html", "demo/c.html"}
        assert found.skipped == {"excluded": 1, "test or example": 1}


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

    def test_opens_folders_above_and_below(self, tmp_path):
        for name in ("mocks/site/a.html", "tests/pages/b.html", "tests/c.html", "dist/d.html"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        selection = Selection(include=("mocks", "tests/pages/"))
        found = [path for path, _, _ in walk(tmp_path, selection.reason_to_skip_folder)]
        assert found == ["dist/", "mocks/site/a.html", "tests/c.html", "tests/pages/b.html"]
        assert [path for path in found if selection.reads(path)] == ["mocks/site/a.html", "tests/pages/b.html"]
