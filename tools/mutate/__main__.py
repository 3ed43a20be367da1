"""Changes functions of the product, each in a child process, and lists the changes that no test notices.

    python -m tools.mutate --file layers/shared/controlplane/billing --tests tests/functional/billing
    python -m tools.mutate --base main

The tests run once without a change, to learn which lines each of them runs. A change is then tried by the tests that
run its line or its function.
"""

import argparse
import asyncio
import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tools.mutate.mutants import Mutant, make_mutants

# The folders of the product, and the one from which modules are imported.
_IMPORTED_FROM = {"functions": "functions", "layers/shared": "layers/shared", "layers/analysis": "layers/analysis",
                  "cli/src": "cli/src", "ops": ".", "local": ".", "scripts": "."}  # fmt: skip
_OPTIONS = (
    "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0",
    "-W", "ignore:.*fork:DeprecationWarning",
)  # fmt: skip
# A mutant may never end. Its tests get this many times what they took, and some seconds.
_PATIENCE, _MORE_SECONDS = 10, 20
_TOOL, _EVENTS = sys.monitoring.COVERAGE_ID, sys.monitoring.events
_HUNK = re.compile(r"^\+\+\+ b/(.*)$|^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

type Line = tuple[str, int]


@dataclass(eq=False)  # pytest compares plugins by identity
class _Session:
    """A plugin of pytest that runs the tests once, and then the mutants."""

    root: Path
    mutants: list[Mutant]
    ends: float
    survivors: list[tuple[Mutant, int]] = field(default_factory=list)
    noticed: int = 0
    _seconds: dict[pytest.Item, float] = field(default_factory=dict)
    _tests: dict[Line, list[pytest.Item]] = field(default_factory=lambda: defaultdict(list))
    _functions: dict[tuple[str, str, int], list[FunctionType]] = field(default_factory=lambda: defaultdict(list))
    _caches: list[Any] = field(default_factory=list)
    _lines: set[Line] = field(default_factory=set)
    _failed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in {mutant.path for mutant in self.mutants}:
            importlib.import_module(_module(path))
        self._find_functions()
        self._record(session.items)
        self._judge_all()
        session.testsfailed = 0
        return True

    def _find_functions(self) -> None:
        paths = {str(self.root / mutant.path) for mutant in self.mutants}
        gc.unfreeze()  # the product hides its objects from the collector
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in paths:
                code = thing.__code__
                self._functions[code.co_filename, code.co_qualname, code.co_firstlineno].append(thing)
            elif isinstance(thing, _lru_cache_wrapper):
                self._caches.append(thing)
        gc.freeze()

    def _record(self, items: Sequence[pytest.Item]) -> None:
        """Runs every test, and keeps which lines it ran and how long it took. Tests that fail don't count."""
        sys.monitoring.use_tool_id(_TOOL, "mutants")
        sys.monitoring.register_callback(_TOOL, _EVENTS.LINE, self._ran)
        for functions in self._functions.values():
            for code in (functions[0].__code__, *_codes(functions[0].__code__)):
                sys.monitoring.set_local_events(_TOOL, code, _EVENTS.LINE)
        for item in items:
            self._lines.clear()
            sys.monitoring.restart_events()
            started = time.monotonic()
            if self._passes([item]):
                self._seconds[item] = time.monotonic() - started
                for line in self._lines.copy():
                    self._tests[line].append(item)
        sys.monitoring.free_tool_id(_TOOL)

    def _ran(self, code: CodeType, line: int) -> Any:
        self._lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    def _passes(self, items: Sequence[pytest.Item]) -> bool:
        self._failed = False
        for item in items:
            # As if a test of another module followed: only the session's fixtures stay.
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.session)
            if self._failed:
                return False
        return True

    def _judge_all(self) -> None:
        for mutant in self.mutants:
            if time.monotonic() > self.ends:
                print("The time is over.")
                return
            tests = self._tests_of(mutant)
            if tests and self._is_noticed(mutant, tests):
                self.noticed += 1
            else:
                self.survivors.append((mutant, len(tests)))

    def _tests_of(self, mutant: Mutant) -> list[pytest.Item]:
        """Returns the tests that run its line, the fastest first, and then those that run others of its function."""
        path = str(self.root / mutant.path)
        here = self._tests[path, mutant.line]
        near = {test for line in mutant.span for test in self._tests[path, line]}.difference(here)
        return [test for tests in (here, near) for test in sorted(tests, key=self._seconds.__getitem__)]

    def _is_noticed(self, mutant: Mutant, tests: Sequence[pytest.Item]) -> bool:
        """Tries the mutant in a child. One that crashes, or never ends, is noticed."""
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            self._try(mutant, tests)
        ends = time.monotonic() + _MORE_SECONDS + _PATIENCE * sum(self._seconds[test] for test in tests)
        ended, status = os.waitpid(pid, os.WNOHANG)
        while not ended and time.monotonic() < ends:
            time.sleep(0.005)
            ended, status = os.waitpid(pid, os.WNOHANG)
        with suppress(ProcessLookupError):  # and what it has started
            os.killpg(pid, signal.SIGKILL)
        if not ended:
            os.waitpid(pid, 0)
        return not ended or status != 0

    def _try(self, mutant: Mutant, tests: Sequence[pytest.Item]) -> None:
        """Runs the tests with the mutant, and ends the process: 0 if all pass."""
        code = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            asyncio.set_event_loop(asyncio.new_event_loop())  # the parent's was set when handlers were imported
            for changed in _codes(mutant.code):
                place = (changed.co_filename, changed.co_qualname, changed.co_firstlineno)
                for function in self._functions.get(place, ()):
                    if function.__code__.co_freevars == changed.co_freevars:
                        function.__code__ = changed
            for cache in self._caches:
                cache.cache_clear()
            code = 0 if self._passes(tests) else 1
        finally:
            os._exit(code)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _module(path: str) -> str:
    folder = next(imported for prefix, imported in _IMPORTED_FROM.items() if path.startswith(f"{prefix}/"))
    return str(Path(path).relative_to(folder).with_suffix("")).replace("/", ".").removesuffix(".__init__")


def _changed_lines(root: Path, base: str) -> dict[str, set[int]]:
    """Returns the lines of each module of the product that differ from the branch point."""
    command = ["git", "diff", "--unified=0", "--merge-base", base, "--", *_IMPORTED_FROM]
    diff = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603
    changed: dict[str, set[int]] = defaultdict(set)
    path = ""
    for name, first, count in _HUNK.findall(diff):
        path = name or path
        if first and path.endswith(".py"):
            changed[path].update(range(int(first), int(first) + int(count or 1)))
    return changed


def _wanted(root: Path, options: argparse.Namespace) -> dict[str, set[int] | None]:
    if not options.file:
        return {**_changed_lines(root, options.base)}
    named = [Path(name).resolve() for name in options.file]
    return {str(file.relative_to(root)): None for it in named for file in (it.rglob("*.py") if it.is_dir() else [it])}


def main() -> int:
    """Prints the survivors. Returns 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("--base", default="main", help="a revision: the lines changed since the branch point from it")
    parser.add_argument("--file", action="append", default=[], help="all lines of this file, or of this folder's")
    parser.add_argument("--tests", action="append", default=[], help="run these tests")
    parser.add_argument("--only", default="", help="only changes that contain a match of this regular expression")
    parser.add_argument("--limit", type=int, help="at most this many mutants; always the same ones for a seed")
    parser.add_argument("--seed", default="", help="chooses other mutants for --limit")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="tries no mutant after this time")
    parser.add_argument("--pytest", action="append", default=[], help="an option of pytest, such as --pytest=--lagging")
    options = parser.parse_args()
    root = Path.cwd()
    made = [it for path, lines in _wanted(root, options).items() for it in make_mutants(root, path, lines)]
    chosen = sorted((it for it in made if re.search(options.only, it.change)), key=lambda it: it.rank(options.seed))
    session = _Session(root, chosen[: options.limit], time.monotonic() + options.seconds)
    print(f"{len(made)} mutants, {len(session.mutants)} to run.", flush=True)
    tests = options.tests or ["tests/functional", "tests/unit"]
    pytest.main([*_OPTIONS, *options.pytest, *tests], plugins=[session])
    for mutant, count in session.survivors:
        print(f"survives {count} tests: {mutant.path}:{mutant.line}: {mutant.change}")
    print(f"{session.noticed} of {session.noticed + len(session.survivors)} mutants were noticed.")
    return bool(session.survivors)


if __name__ == "__main__":
    sys.exit(main())
