"""The child process that parses a tenant's files: what it can't do, its limits, and how a scan survives its failure."""

import ctypes
import errno
import math
import os
import resource
import select
import time
from pathlib import Path

import pytest
import yaml

from analysis_testing import hostile, in_process
from openassent_analysis import Limits, analyze_files, analyze_folder
from openassent_analysis.files import Skipped
from openassent_analysis.report import InvalidReport, Request, read_report
from openassent_analysis.rules import rules
from openassent_analysis.sandbox import Bounds, Sandbox, SandboxUnavailable
from openassent_analysis.sandbox.pool import cores
from openassent_analysis.sandbox.process import CPU, CRASHED, FAILED, MEMORY, WALL, Ended, Task

TRACKER = b"const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
BEFORE, AFTER = ("a/before.js", TRACKER), ("z/after.js", TRACKER)
_PR_GET_DUMPABLE = 3
ENTRY = "analysis_testing.hostile:start"


def scan(attacks, **bounds):
    """Analyzes a normal file, the attacks, and another normal file."""
    files = [BEFORE, *((f"attack/{name}.js", b"1") for name in attacks), AFTER]
    limits = Limits()
    with Sandbox(limits, Bounds(**bounds), ENTRY) as sandbox:
        result = analyze_files(files, sandbox.examine, limits)
    expected = in_process.analyze_files([BEFORE, AFTER])
    assert result.findings == expected.findings
    assert len(result.findings) == 3  # one a file, and one for the project
    return result


def outcomes_of(attacks):
    """Returns what came of each attack, of which one process runs as many as it survives."""
    requests = (Request(f"attack/{name}.js", "javascript", b"1") for name in attacks)
    with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
        outcomes = [outcome for _, outcome in sandbox.examine(requests, math.inf)]
    return dict(zip(attacks, outcomes, strict=True))


def lines_of(attacks):
    """Returns the number of lines that each attack reported."""
    return {name: outcome.lines for name, outcome in outcomes_of(attacks).items()}


def test_every_kind_of_file_can_be_read():
    """In a closed sandbox, nothing can be loaded on first use."""
    written = yaml.safe_load(Path(__file__).with_name("kinds.yml").read_text())
    conditions = [(path, "html", condition + written["element"]) for path, condition in written["templates"].items()]
    requests = [
        Request("a.html", "html", "<p>".encode("utf-16")),
        Request("a.js", "javascript", b"document.cookie = 'a=1'; \xff\n"),
        *(Request(path, language, text.encode()) for path, language, text in (*written["files"], *conditions)),
    ]
    with Sandbox(Limits()) as sandbox:
        outcomes = dict(sandbox.examine(iter(requests), math.inf))
    assert {request.path: str(outcome) for request, outcome in outcomes.items() if isinstance(outcome, Skipped)} == {}


class TestConfinement:
    def test_the_environment_is_empty(self, monkeypatch):
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
        assert lines_of(hostile.COUNTED) == {"environment": 0}

    def test_files_cant_be_opened_or_listed_and_limits_cant_be_changed(self):
        assert lines_of(hostile.REFUSED) == dict.fromkeys(hostile.REFUSED, errno.EPERM)

    def test_the_process_is_killed_if_it_tries_a_network_a_process_or_a_program(self, caplog):
        assert {str(outcome) for outcome in outcomes_of(hostile.KILLED).values()} == {CRASHED}
        # SIGSYS: the filter killed it every time.
        assert caplog.text.count("exit status -31") == len(hostile.KILLED)

    def test_nothing_of_a_file_or_of_what_the_child_wrote_is_logged(self, caplog):
        scan(["garbage", "abort"])
        assert "attack" not in caplog.text
        assert "garbage" not in caplog.text

    def test_this_process_cant_be_read_by_others_of_its_user(self):
        with Sandbox(Limits()):
            assert ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0

    def test_nothing_is_analyzed_if_the_sandbox_cant_be_closed(self):
        with (
            pytest.raises(SandboxUnavailable, match="no filter"),
            Sandbox(Limits(), entry="analysis_testing.hostile:start_nothing") as sandbox,
        ):
            analyze_files([BEFORE], sandbox.examine, Limits())

    def test_no_child_outlives_its_scan(self):
        with Sandbox(Limits()) as sandbox:
            analyze_files([BEFORE], sandbox.examine, Limits())
            [child] = [it.process for it in sandbox._children]
            assert child.returncode is None
        assert child.returncode == -9
        with pytest.raises(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)


class TestLimits:
    def test_cpu_time_is_limited(self):
        assert scan(["burn"], cpu_seconds=1).skipped == {CPU: 1}

    def test_wall_time_is_limited(self):
        assert scan(["hang"], wall_seconds=2).skipped == {WALL: 1}

    def test_memory_is_limited(self):
        skipped = scan(hostile.MEMORY, memory_bytes=400 * 1024**2).skipped
        # Python reports a failed allocation. Native code crashes.
        assert skipped.keys() <= {MEMORY, CRASHED}
        assert skipped.total() == len(hostile.MEMORY)

    def test_the_memory_limit_leaves_room_for_the_largest_files(self):
        limits = Limits()
        line = b"analytics.track('a', { b: [1, 2, { c: `d` }], e: (f) => g(h)(i) }); document.cookie = x\n"
        files = [(f"src/{n}.{end}", line * (limits.max_file_bytes // len(line))) for n, end in enumerate(("js", "tsx"))]
        with Sandbox(limits) as sandbox:
            result = analyze_files(files, sandbox.examine, limits)
        assert MEMORY not in result.skipped
        assert CRASHED not in result.skipped

    def test_the_scans_deadline_ends_it_without_another_process(self):
        limits = Limits(max_seconds=-1)
        with Sandbox(Limits()) as sandbox:
            assert analyze_files([BEFORE], sandbox.examine, limits).skipped == {"out of time": 1}
            [(_, outcome)] = sandbox.examine(iter([Request("a.js", "javascript", TRACKER)]), time.monotonic() - 1)
            assert str(outcome) == "out of time"

    def test_the_process_has_little_memory_and_no_files_processes_or_core_dumps(self):
        with Sandbox(Limits()) as sandbox:
            (child,) = sandbox._children
            while not child.ready:
                sandbox._advance(1)
            pid = child.process.pid
            assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (3, 3)
            assert resource.prlimit(pid, resource.RLIMIT_AS) == (Bounds().memory_bytes,) * 2
            for none in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
                assert resource.prlimit(pid, none) == (0, 0)


class TestSurvival:
    def test_a_file_that_crashes_the_process_is_skipped(self):
        assert scan(hostile.FATAL).skipped == {CRASHED: len(hostile.FATAL)}

    def test_an_invalid_report_skips_the_file(self):
        reports = hostile.CHATTY | hostile.UNKNOWN
        assert scan(reports).skipped == {FAILED: len(reports)}

    def test_an_answer_that_nobody_asked_for_ends_the_process(self):
        task = Task(Request("attack/answer-twice.js", "javascript", b"1"))
        with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
            sandbox._children[0].send(task)
            while sandbox._children:
                sandbox._advance(1)
            assert task.outcome.lines == 1

    def test_no_forged_report_is_read(self):
        read_report(hostile.forged_match()(), 600)
        read_report(hostile.forged_lists()(), 600)
        for name, report in (hostile.FORGED | {"long-snippet": hostile.CHATTY["long-snippet"]}).items():
            with pytest.raises(InvalidReport):
                pytest.fail(f"{name}: {read_report(report(), 600)}")

    def test_a_forged_report_changes_neither_path_nor_texts(self):
        report = read_report(hostile.forged_match(names={"vendor": "forged", "path": "/etc/passwd"})(), 600)
        result = analyze_files([BEFORE], lambda requests, _: ((it, report) for it in requests), Limits())
        [finding] = result.findings
        [rule] = [it for it in rules() if it.id == finding.rule_id]
        assert finding.location.path == BEFORE[0]
        assert (finding.title, finding.priority, finding.category) == (rule.title, "P1", rule.category)


class TestProcesses:
    def test_two_processes_share_the_files_and_a_crash_concerns_only_its_own_file(self, monkeypatch):
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "3538")
        processes: set[int] = set()
        sent = []

        def requests():
            yield from (request("say-who") for _ in iter(lambda: len(processes) < 2, False))
            for name in hostile.FATAL:
                yield from map(request, [name, *["say-who"] * 20])

        def request(name):
            sent.append(name)
            return Request(f"attack/{name}.js", "javascript", b"1")

        with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
            for number, (answered, outcome) in enumerate(sandbox.examine(requests(), math.inf)):
                assert answered.path == f"attack/{sent[number]}.js"
                if sent[number] == "say-who":
                    processes.add(outcome.lines)
                else:
                    assert str(outcome) == CRASHED
        assert number + 1 == len(sent)
        assert len(processes) > 2  # two, and those that replaced them

    def test_the_answers_of_a_process_that_has_crashed_since_are_read(self):
        sent, crashing, late = (Task(Request(f"attack/{name}.js", "javascript", b"1"))
                                for name in ("say-who", "abort", "say-who"))  # fmt: skip
        with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
            (child,) = sandbox._children
            while not child.ready:
                sandbox._advance(1)
            child.send(sent)
            child.send(crashing)
            child.advance({child._input: select.POLLOUT})
            os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOWAIT)
            child.send(late)
            child.advance({child._input: select.POLLOUT})
            child.advance({child._output: select.POLLIN})
            assert sent.outcome.lines == child.process.pid
            with pytest.raises(Ended, match=CRASHED):
                child.advance({child._output: select.POLLIN})
            assert list(child.tasks) == [crashing, late]

    def test_a_process_that_is_busy_with_an_earlier_examination_answers_nothing_in_a_later_one(self):
        def requests(name):
            return (Request(f"attack/{name}.js", "javascript", b"1") for _ in range(5))

        with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
            given_up = sandbox.examine(requests("environment"), math.inf)
            next(given_up)
            given_up.close()
            assert 0 not in [outcome.lines for _, outcome in sandbox.examine(requests("say-who"), math.inf)]

    def test_every_file_that_has_no_outcome_by_the_deadline_is_out_of_time(self):
        requests = (Request(f"attack/{name}.js", "javascript", b"1") for name in ["say-who", *["hang"] * 40])
        with Sandbox(Limits(), entry="analysis_testing.hostile:start_attacks") as sandbox:
            outcomes = [outcome for _, outcome in sandbox.examine(requests, time.monotonic() + 1)]
        assert [str(outcome) for outcome in outcomes[1:]] == ["out of time"] * 40

    def test_the_number_of_cores_follows_from_a_functions_memory(self, monkeypatch):
        for memory, expected in {"128": 1, "2048": 1, "3538": 2, "10240": 5}.items():
            monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", memory)
            assert cores() == expected


class TestAnalysis:
    def test_finds_the_same_inside_the_sandbox_as_outside(self, tmp_path):
        """Runs every rule's samples, in every language: the filter blocks nothing that the analysis needs."""
        count = 0
        for rule in rules():
            for samples in rule.samples.values():
                for sample in samples:
                    files = sample if isinstance(sample, list) else [sample]
                    for it in files:
                        file = tmp_path / str(count) / it["path"]
                        file.parent.mkdir(parents=True, exist_ok=True)
                        file.write_text(it["code"].replace("¦", ""))
                    count += 1
        limits = Limits(max_findings=100_000)
        with Sandbox(limits) as sandbox:
            inside = analyze_folder(tmp_path, sandbox.examine, limits)
        outside = in_process.analyze_folder(tmp_path, limits)
        assert inside.findings == outside.findings
        assert len(inside.findings) > 50
        assert (inside.skipped, inside.lines) == (outside.skipped, outside.lines)
        assert CRASHED not in inside.skipped
