"""The command of `make mutate`."""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scripts.mutate.changes import NoHistory, changed_lines, changed_tests, find_base
from scripts.mutate.coverage import FOLDER, Record
from scripts.mutate.judges import import_libraries, judge_cold, with_warm_tests
from scripts.mutate.mutants import Mutant, Unexplained, make_mutants
from scripts.mutate.trials import Judge, Trial, Verdict, in_child, run_trials

# The tests of a mutant: first the fastest ones of its line, then, if it survives them, more.
_QUICK_SECONDS = 2.0
_LONG_SECONDS = 60.0


class NotReady(Exception):
    """The tests can't be collected, or the first one fails without a mutant."""


@dataclass
class Run:
    """The state of a run: its findings, and its tools."""

    root: Path
    record: Record
    options: list[str]
    more_tests: list[str]
    only_tests: list[str]
    ends: float
    jobs: int
    killed: dict[Mutant, str] = field(default_factory=dict)
    survived: dict[Mutant, int] = field(default_factory=dict)
    # Whether a test passes without a mutant. One that doesn't shows nothing.
    _passes: dict[str, bool] = field(default_factory=dict)

    def judge(self, mutants: Sequence[Mutant]) -> None:
        """Runs the quick tests of every mutant, and then more for those that survive. Raises NotReady."""
        if quick := [trial for mutant in mutants if mutant.scope and (trial := self._trial(mutant, _QUICK_SECONDS))]:
            tests = [test for trial in quick for test in trial.tests]
            found, output = in_child(
                lambda: with_warm_tests(self.root, self.options, tests, partial(self._round, quick))
            )
            if found is None:
                raise NotReady(f"{output}\n{tests[0]}")
            self._keep(quick, *found)
        more = []
        for mutant in mutants:
            if mutant in self.killed:
                continue
            if trial := self._trial(mutant, _LONG_SECONDS, self.more_tests):
                more.append(trial)
            else:
                self.survived[mutant] = 0
        self._keep(more, *self._round(more, judge_cold(self.root, self.options)), is_last=True)

    def _round(self, trials: Sequence[Trial], judge: Judge) -> tuple[list[tuple[int, Verdict]], dict[str, bool]]:
        """Returns the verdicts with the number of the trial, and which tests that failed pass without a mutant."""
        numbers = {id(trial): number for number, trial in enumerate(trials)}
        judged = run_trials(trials, judge, at_once=self.jobs, is_over=self._is_over)
        verdicts = [(numbers[id(trial)], verdict) for trial, verdict in judged]
        failed = {verdict.failed for _, verdict in verdicts if verdict.failed and "::" in verdict.failed}
        unknown = [Trial(None, [test], self._seconds([test])) for test in sorted(failed - self._passes.keys())]
        checked = run_trials(unknown, judge, at_once=self.jobs, is_over=lambda: False)
        return verdicts, {trial.tests[0]: verdict.failed is None for trial, verdict in checked}

    def _keep(
        self,
        trials: Sequence[Trial],
        verdicts: Sequence[tuple[int, Sequence[Any]]],
        passes: dict[str, bool],
        *,
        is_last: bool = False,
    ) -> None:
        self._passes |= passes
        for test, does_pass in passes.items():
            if not does_pass:
                print(f"fails without a mutant, too, so it doesn't count: {test}")
        for number, (failed, ran) in verdicts:
            mutant = trials[number].mutant
            if mutant is None:
                continue
            if failed is not None and self._passes.get(failed, True):
                self.killed[mutant] = failed
            elif is_last:
                self.survived[mutant] = ran

    def _trial(self, mutant: Mutant, seconds: float, more: Sequence[str] = ()) -> Trial | None:
        """Returns the trial with the tests that fit into the time, at least one, and more. None without a test."""
        chosen = [*self.only_tests]
        left = seconds
        for test in () if chosen else self.record.tests_of(mutant.path, mutant.scope, mutant.offset):
            taken = self.record.seconds[test]
            if chosen and taken > left:
                continue
            left -= taken
            chosen.append(test)
        tests = [*dict.fromkeys([*chosen, *more])]
        return Trial(mutant, tests, self._seconds(tests)) if tests else None

    def _seconds(self, tests: Sequence[str]) -> float:
        return sum(self.record.seconds.get(test, 60) for test in tests)

    def _is_over(self) -> bool:
        return time.monotonic() > self.ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the survivors. Returns 1 if there are any that aren't excused."""
    options = _options(arguments)
    root: Path = options.root.resolve()
    try:
        mutants, more_tests, where = _mutants(root, options)
    except (NoHistory, Unexplained) as error:
        print(error)
        return 1
    if not mutants:
        print(f"No mutants: {where} without anything to change.")
        return 0
    judged = [mutant for mutant in mutants if mutant.excuse is None]
    chosen = sorted(judged, key=lambda mutant: mutant.rank(options.seed))[: options.limit]
    record = Record.read(root)
    if not record.seconds and not options.tests:
        print(f"{FOLDER}/ doesn't say which tests run a line. Run `make test` once, or pass TESTS.")
        return 1
    print(f"{len(mutants)} mutants of {where}; {len(mutants) - len(judged)} excused, {len(chosen)} to run.", flush=True)
    import_libraries(root)
    started = time.monotonic()
    jobs = options.jobs or os.cpu_count() or 1
    run = Run(root, record, options.pytest, more_tests, options.tests, started + options.seconds, jobs)
    try:
        run.judge(chosen)
    except NotReady as failure:
        print(f"A test has to pass before mutants can be tried: {failure}")
        return 1
    return _report(run, chosen, time.monotonic() - started)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutate", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--base", help="a revision: the lines changed since the branch point from it")
    parser.add_argument("--file", action="append", default=[], help="all lines of this file, or of this folder's")
    parser.add_argument("--tests", action="append", default=[], help="only these tests, instead of the recorded ones")
    parser.add_argument("--only", default="", help="only changes that contain a match of this regular expression")
    parser.add_argument("--limit", type=int, help="at most this many mutants; always the same ones for a seed")
    parser.add_argument("--seed", default="", help="chooses other mutants for --limit")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="starts no trial after this time")
    parser.add_argument("--jobs", type=int, help="trials at once; by default as many as processors")
    parser.add_argument("--pytest", action="append", default=[], help="an option of pytest, such as --pytest=--lagging")
    return parser.parse_args(arguments)


def _mutants(root: Path, options: argparse.Namespace) -> tuple[list[Mutant], list[str], str]:
    """Returns the mutants, the tests that may know more than the record, and the scope of the run."""
    base = None if options.file and options.tests else find_base(root, options.base)
    more = changed_tests(root, base) if base else []
    lines: dict[str, set[int] | None] = {}
    if options.file:
        for file in (file for name in options.file for file in _modules(root / name)):
            lines[str(file.resolve().relative_to(root))] = None
        where = ", ".join(options.file)
    else:
        changed = changed_lines(root, base or "HEAD")
        lines.update(changed)
        where = f"{sum(len(found) for found in changed.values())} lines changed since {(base or '')[:10]}"
    made = [mutant for path, wanted in lines.items() for mutant in make_mutants(root, path, wanted)]
    return [mutant for mutant in made if re.search(options.only, mutant.change)], more, where


def _modules(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _report(run: Run, chosen: Sequence[Mutant], seconds: float) -> int:
    for mutant in sorted(run.survived, key=lambda mutant: (mutant.path, mutant.line)):
        print(f"survives {run.survived[mutant]} tests: {mutant.name}")
    decided = len(run.killed) + len(run.survived)
    killers = Counter(test.partition("::")[0] for test in run.killed.values())
    print(f"{len(run.killed)} of {decided} mutants were noticed, by tests of {len(killers)} files, in {seconds:.0f} s.")
    if decided < len(chosen):
        print(f"{len(chosen) - decided} weren't run: the time was over.")
    if run.survived:
        print("Write a test that notices each survivor, or say on its line why none has to: `# mutant: REASON`.")
    return bool(run.survived)


if __name__ == "__main__":
    sys.exit(main())
