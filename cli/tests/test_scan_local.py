"""`assent scan local`, and `assent ci` without the service, on real folders and git repositories."""

import json
import re
import shlex

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from cli.tests.support.shell import run, run_git
from openassent_cli.problems import Exit
from tests.support.sarif import check_sarif

SERVICE = "https://api.acme.example"
TRACKER = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-12345"></script>\n'
# The project asks for consent, so only the tracker itself is a finding.
BANNER = '<script id="Cookiebot" src="https://consent.cookiebot.com/uc.js" data-cbid="00000000-0000"></script>\n'
PAGE = f"<!doctype html>\n<html><head>\n{TRACKER}</head></html>\n"
# Findings of P0, P1 (on several lines), and P3.
URGENT = """<!doctype html>
<html><head>
<script async src="https://connect.facebook.net/en_US/fbevents.js"></script>
<script
  async src="https://www.googletagmanager.com/gtag/js?id=G-12345">
</script>
<script>ga('create', 'UA-12345678-1', 'auto');</script>
</head></html>
"""


@pytest.fixture(scope="module", autouse=True)
def _one_sandbox():
    with warm_sandboxes("openassent_analysis.working_tree.Sandbox"):
        yield


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """No test's scan opens a connection, or knows of the pipeline that runs it."""

    def refuse(*_: object) -> None:
        raise AssertionError("a local scan opened a connection")

    monkeypatch.setattr("socket.socket.connect", refuse)
    for variable in ("GITHUB_ACTIONS", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A working tree: `main` has a finding in web/old.html, and `topic` adds one in web/new.html."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "old.html").write_text(PAGE)
    (tmp_path / "web" / "banner.html").write_text(PAGE.replace(TRACKER, BANNER))
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-qm", "first")
    run_git(tmp_path, "switch", "-qc", "topic")
    (tmp_path / "web" / "new.html").write_text(PAGE.replace("G-12345", "G-67890"))
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-qm", "second")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paths(text: str) -> list[str]:
    return [it["location"]["path"] for it in json.loads(text)["findings"]]


class TestFormats:
    def test_text_shows_the_code_and_the_fix(self, tree):
        ended = run("scan local web")
        assert ended.code == 0
        assert "new.html:3:" in ended.stdout
        assert "googletagmanager.com/gtag/js?id=G-67890" in ended.stdout
        assert "\n  Fix: " in ended.stdout
        assert "\n  Rule: analytics-loaded\n" in ended.stdout
        ended = run("scan local web", ASSENT_BASE_URL=SERVICE)
        assert f"\n  {SERVICE}/docs/rules/analytics-loaded\n" in ended.stdout
        assert re.fullmatch(r"2 findings \(1 P1, 1 P2\) in 3 files\.\n", ended.stderr)

    def test_text_says_once_what_several_findings_share_and_ends_with_the_worst(self, tree):
        (tree / "web" / "urgent.html").write_text(URGENT)
        (tree / "web" / "new.html").write_text(PAGE)
        shown = run(f"scan local {tree}").stdout
        priorities = re.findall(r"^ (P\d) ", shown, re.MULTILINE)
        assert priorities == sorted(priorities, reverse=True)
        (heading,) = re.findall(r"^ P1  Google Analytics is loaded before consent.*", shown, re.MULTILINE)
        assert heading.endswith("(2 places)")

    def test_json_and_sarif_and_annotations_have_the_same_findings(self, tree):
        found = run("scan local web --json --quiet")
        assert sorted(paths(found.stdout)) == ["new.html", "old.html"]
        log = run("scan local web --format sarif --quiet").json
        check_sarif(log, {"web/new.html", "web/old.html"})
        results = log["runs"][0]["results"]
        assert {it["partialFingerprints"]["assentFinding/v1"] for it in results} == {
            it["fingerprint"] for it in found.json["findings"]
        }
        (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
        assert "helpUri" not in rule
        assert all("Google" in it["message"]["text"] for it in results)
        log = run("scan local web --format sarif --quiet", ASSENT_BASE_URL=SERVICE).json
        check_sarif(log, {"web/new.html", "web/old.html"})
        assert log["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"] == f"{SERVICE}/docs/rules/analytics-loaded"
        annotations = run("scan local web --format github").stdout.splitlines()
        assert len(annotations) == 2
        assert all(re.match(r"::(error|warning|notice) file=web/\w+\.html,line=3,", it) for it in annotations)

    def test_what_isnt_analyzed_is_named_in_every_format(self, tree):
        (tree / "web" / "large.html").write_text(PAGE + "<p>x</p>\n" * 300_000)
        (tree / "web" / "dist").mkdir()
        (tree / "web" / "dist" / "a b.js").write_text("x")
        assert run("scan local web").stderr.endswith(
            "Not analyzed: build output 1 (such as dist/a b.js), too large 1 (such as large.html).\n"
        )
        assert run("scan local web --json").json["skippedExamples"] == {
            "too large": ["large.html"],
            "build output": ["dist/a b.js"],
        }
        log = run("scan local web --format sarif").json
        check_sarif(log, {"web/new.html", "web/old.html"})
        built, large = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        assert built["message"]["text"] == "Not analyzed (build output): 1 file or folder, such as web/dist/a b.js."
        assert large["properties"] == {"reason": "too large", "count": 1}

    def test_each_finding_is_shown_at_its_first_line_with_the_urgency_of_its_priority(self, tree):
        (tree / "page.html").write_text(URGENT)
        shown = run("scan local .", terminal=True).stdout
        colors = {"P0": "1;37;41", "P1": "1;31", "P2": "1;33", "P3": "1;34"}  # white on red, red, yellow, blue
        assert {*re.findall(r"\x1b\[([\d;]+)m (P\d) ", shown)} == {(color, it) for it, color in colors.items()}
        assert {*re.findall(r"page\.html:(\d+):", shown)} == {"3", "4", "7"}
        annotations = run("scan local . --format github").stdout
        found = {*re.findall(r"::(\w+) file=page\.html,line=(\d+),endLine=(\d+),title=(P\d) ", annotations)}
        assert found == {("error", "3", "3", "P0"), ("error", "4", "5", "P1"), ("notice", "7", "7", "P3")}

    def test_the_progress_counts_the_files_in_a_terminal(self, tree):
        assert re.findall(r"(\d+)/(\d+)\x1b", run("scan local web", terminal=True).stderr)[-1] == ("3", "3")

    def test_the_code_and_the_name_of_a_file_cant_add_commands_or_control_the_terminal(self, tmp_path):
        name = "a,b:\x1b[2J\n::set-output name=x::%.html"
        (tmp_path / name).write_text(PAGE.replace("async", "data-a='\x1b[2J'"))
        (tmp_path / "banner.html").write_text(PAGE.replace(TRACKER, BANNER))
        folder = shlex.quote(str(tmp_path))
        (line,) = run(f"scan local {folder} --format github").stdout.splitlines()
        assert "file=a%2Cb%3A" in line
        assert "%0A%3A%3Aset-output name=x%3A%3A%25.html,line=3" in line
        shown = run(f"scan local {folder}").stdout
        assert ("data-a='\ufffd[2J'" in shown, "\x1b" in shown) == (True, False)
        assert not any(it.startswith("::") for it in shown.splitlines())
        check_sarif(run(f"scan local {folder} --format sarif").json)


class TestSelection:
    def test_a_baseline_leaves_out_its_findings_even_in_a_renamed_file(self, tree, tmp_path):
        run_git(tree, "switch", "-q", "main")
        (tree / "baseline.json").write_text(run("scan local --json").stdout)
        run_git(tree, "switch", "-q", "topic")
        run_git(tree, "mv", "web/old.html", "web/renamed.html")
        ended = run("scan local --json --baseline baseline.json")
        assert (paths(ended.stdout), ended.json["baselineCount"]) == (["web/new.html"], 1)
        assert "1 new finding" in run("scan local --baseline baseline.json").stderr

    def test_only_changed_files_are_reported(self, tree):
        assert paths(run("scan local --json --changed-since main").stdout) == ["web/new.html"]

    def test_globs_and_rules_select_what_is_reported(self, tree):
        (tree / "package.json").write_text("{}")
        for folder in ("demo", "dist"):
            (tree / folder).mkdir()
            (tree / folder / "page.html").write_text(PAGE)
        for options, found in {
            "--exclude '/web/n*' --exclude /web/old.html": [],
            "--include 'd*' --include demo": ["demo/page.html", "dist/page.html", "web/new.html", "web/old.html"],
            "--include demo/ --exclude page.html --rule analytics-loaded": ["web/new.html", "web/old.html"],
            "--rule tag-manager-loaded": [],
        }.items():
            assert sorted(paths(run(f"scan local --json {options}").stdout)) == sorted(found), options
        # Globs are relative to the root of the repository.
        assert paths(run("scan local web --json --exclude web/old.html").stdout) == ["new.html"]
        assert "excluded 1 (such as web/old.html)" in run("scan local --exclude old.html").stderr

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            *((option, "A glob isn't valid: ") for option in ("--exclude /", "--include '!a'")),
            ("--rule nope", "/docs/rules of the service lists them"),
            ("--changed-since nope", "There is no commit or branch nope.\nFetch it, or give another one.\n"),
            *((f"--baseline {name}", name) for name in ("nope.json", "web/old.html")),
            ("nope", "Error: nope isn't a folder.\n"),
        ],
    )
    def test_what_doesnt_exist_or_isnt_valid_is_refused(self, words, said, tree):
        ended = run(f"scan local {words}")
        assert (ended.code, ended.stdout, said in ended.stderr) == (Exit.USAGE, "", True), ended.stderr

    @pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
    def test_a_file_gets_the_findings_instead_of_standard_output(self, form, tree):
        printed = run(f"scan local web --format {form}").stdout
        ended = run(f"scan local web --format {form} -o found.txt --fail-on P3")
        assert (ended.code, ended.stdout) == (Exit.FINDINGS, "")
        assert (tree / "found.txt").read_text() == printed
        assert run("scan local web -o nope/found.txt").code == Exit.FAILED

    def test_a_threshold_fails_the_command(self, tree):
        priority = run("scan local --json").json["findings"][0]["priority"]
        assert run(f"scan local --fail-on {priority}").code == Exit.FINDINGS
        assert run("scan local --fail-on P0").code == (Exit.FINDINGS if priority == "P0" else Exit.DONE)


class TestCi:
    @pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET"])
    def test_compares_with_the_target_of_the_merge_request(self, variable, tree):
        ended = run("ci --fail-on P3 --json", **{variable: "main"})
        assert ended.code == Exit.FINDINGS
        assert [it["place"] for it in ended.json["new"]] == ["web/new.html:3"]
        assert (ended.json["unchanged"], ended.json["failing"], ended.json["scanId"]) == (1, 1, None)
        assert run_git(tree, "worktree", "list").count("\n") == 0

    def test_prefers_the_branch_of_the_remote(self, tree):
        run_git(tree, "update-ref", "refs/remotes/origin/main", "topic")
        assert run("ci --json", GITHUB_BASE_REF="main").json["new"] == []
        assert len(run("ci --json --base main").json["new"]) == 1

    def test_without_a_base_every_finding_is_new(self, tree):
        ended = run("ci --fail-on P3")
        assert (ended.code, ended.stdout.count("\n")) == (Exit.FINDINGS, 2)
        said = "You aren't signed in, so the working tree is scanned here.\n2 new, 2 of them P3"
        assert ended.stderr.startswith(said)
        ended = run("ci --fail-on P3 --base topic")
        assert (ended.code, ended.stdout) == (0, "")

    def test_writes_sarif_and_a_summary(self, tree):
        (tree / "summary.md").write_text("Before\n")
        ended = run("ci --base main --fail-on P3 --sarif out.sarif", GITHUB_STEP_SUMMARY="summary.md")
        assert ended.code == Exit.FINDINGS
        check_sarif(json.loads((tree / "out.sarif").read_text()), {"web/new.html"})
        summary = (tree / "summary.md").read_text()
        assert summary.startswith("Before\n## Assent: 1 new finding is P3 or more urgent\n\n1 new, 1 unchanged.\n")
        assert "| web/new.html:3 |" in summary

    def test_a_file_name_cant_add_commands_or_markup(self, tree):
        (tree / "\n::error::[x](y)|\x1b.html").write_text(PAGE)
        ended = run("ci --base topic --summary summary.md")
        assert "  ::error::[x](y)|\ufffd.html:3\n" in ended.stdout
        assert not any(it.startswith("::") for it in ended.stdout.splitlines())
        assert r"| ::error::\[x\](y)\|\ufffd.html:3 |".replace(r"\ufffd", "\ufffd") in (tree / "summary.md").read_text()

    def test_a_file_that_cant_be_written_and_an_unknown_base_are_named(self, tree):
        ended = run("ci --base topic --sarif nope/out.sarif")
        assert (ended.code, ended.stderr.splitlines()[-1]) == (1, "Error: nope/out.sarif: No such file or directory")
        assert run("ci --base nope").code == Exit.USAGE

    def test_annotates_on_github_unless_json_is_wanted(self, tree):
        github = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main"}
        assert " file=web/new.html,line=3," in run("ci", **github).stdout
        assert len(run("ci --json", **github).json["new"]) == 1

    def test_an_api_key_scans_here_and_says_so(self, tree):
        ended = run("ci --base main", ASSENT_API_KEY="assent_x")
        assert ended.stderr.startswith("API keys can't read scans, so the working tree is scanned here.\n")
        assert "web/new.html:3" in ended.stdout


class TestSuppressions:
    SILENT = PAGE.replace(TRACKER, f"<!-- assent-ignore: analytics-loaded -- Only counts -->\n{TRACKER}")

    def test_are_counted_and_are_in_sarif_and_json(self, tree):
        (tree / "web" / "new.html").write_text(self.SILENT)
        report = run("scan local --format json --quiet").json
        assert [it["location"]["path"] for it in report["findings"]] == ["web/old.html"]
        [suppressed] = report["suppressed"]
        assert suppressed["suppression"] == {"kind": "comment", "reason": "Only counts"}
        assert "1 finding suppressed: 1 by comments." in run("scan local").stderr
        log = run("scan local --format sarif --quiet").json
        check_sarif(log, {"web/new.html", "web/old.html"})
        assert [it.get("suppressions") for it in log["runs"][0]["results"]] == [
            None,
            [{"kind": "inSource", "justification": "Only counts"}],
        ]

    def test_without_a_reason_are_a_note(self, tree):
        (tree / "web" / "new.html").write_text(self.SILENT.replace(" -- Only counts", ""))
        assert (
            "web/new.html:3: An assent-ignore comment has no effect without a reason." in run("scan local web").stderr
        )
        log = run("scan local --format sarif --quiet").json
        check_sarif(log, {"web/new.html", "web/old.html"})
        texts = [it["message"]["text"] for it in log["runs"][0]["invocations"][0]["toolExecutionNotifications"]]
        assert any("no effect without a reason" in text for text in texts)

    def test_of_the_repositorys_settings_apply_to_a_folder_in_it(self, tree):
        (tree / ".assent.yml").write_text(
            "exclude: [/web/new.html]\naccept: [{vendor: google-analytics, reason: Ours}]"
        )
        report = run("scan local web --format json --quiet").json
        assert (report["findings"], report["skipped"]["excluded"]) == ([], 1)
        assert [it["suppression"] for it in report["suppressed"]] == [{"kind": "vendor", "reason": "Ours"}]

    def test_in_a_wrong_file_end_the_scan(self, tree):
        (tree / ".assent.yml").write_text("severity:\n  no-such-rule: off\n")
        refused = run("scan local web")
        assert refused.code == Exit.USAGE
        assert ".assent.yml, line 2: severity.no-such-rule: there is no such rule." in refused.stderr
