"""Records which tests run each line of the product, as a plugin of pytest, and answers from the record.

`make test` and `make races` record it in `.mutants/`, one file for each process. Each test has its own set of lines:
the interpreter reports a line once, and is told to start again before the next test. Only tests that passed count.

Of the tests of a line, the record keeps the fastest few of each test file. They are found by the line's function and
its distance from the function's start, so that changes elsewhere in a file don't matter.
"""

import ast
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from heapq import heappush, heappushpop
from pathlib import Path
from types import CodeType
from typing import Any, Self

import pytest

from scripts.mutate.changes import PRODUCT
from scripts.mutate.imports import change_imports
from scripts.mutate.mutants import scopes

FOLDER = ".mutants"
_TOOL = sys.monitoring.COVERAGE_ID
_EVENTS = sys.monitoring.events
_KEPT_OF_A_FILE = 40

type Line = tuple[str, int]


class Recorder:
    """A plugin that records the lines of each test."""

    def __init__(self, root: Path) -> None:
        self._roots = tuple(f"{root / folder}{os.sep}" for folder in PRODUCT)
        self._root = root
        self._current: set[Line] = set()
        # For each test file and line: the fastest tests, slowest first, as (negative seconds, id).
        self._tests: dict[str, dict[Line, list[tuple[float, str]]]] = defaultdict(dict)
        self._passed = False
        self._seconds = 0.0

    def start(self) -> None:
        sys.monitoring.use_tool_id(_TOOL, "assent mutants")
        sys.monitoring.register_callback(_TOOL, _EVENTS.LINE, self._ran)
        # Events of the product's code alone: events of all code, restarted for each test, cost several times as much.
        change_imports(self._imported)

    def _imported(self, path: str, code: CodeType) -> CodeType:
        if path.startswith(self._roots):
            self._watch(code)
        return code

    def _watch(self, code: CodeType) -> None:
        sys.monitoring.set_local_events(_TOOL, code, _EVENTS.LINE)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._watch(inner)

    def _ran(self, code: CodeType, line: int) -> Any:
        self._current.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._current.clear()
        self._passed, self._seconds = True, 0.0
        sys.monitoring.restart_events()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._passed &= report.passed
        self._seconds += report.duration
        if report.when == "teardown" and self._passed:
            self._keep(item.nodeid)
        return report

    def _keep(self, test: str) -> None:
        lines = self._tests[test.partition("::")[0]]
        entry = (-self._seconds, test)
        for line in self._current.copy():  # a thread that the test has left may still add some
            kept = lines.get(line)
            if kept is None:
                lines[line] = [entry]
            elif len(kept) < _KEPT_OF_A_FILE:
                heappush(kept, entry)
            elif entry > kept[0]:
                heappushpop(kept, entry)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        sys.monitoring.free_tool_id(_TOOL)
        if not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", None):
            return  # the process that only starts the others
        lines: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        seconds: dict[str, float] = {}
        places: dict[str, Callable[[int], str]] = {}
        for (path, line), kept in (found for file in self._tests.values() for found in file.items()):
            if path not in places:
                places[path] = places_of(Path(path).read_text())
            place = places[path](line)
            for negative, test in kept:
                seconds[test] = round(-negative, 3)
                lines[os.path.relpath(path, self._root)][place].append(test)
        folder = self._root / FOLDER
        folder.mkdir(exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        (folder / f"{_part(session.config)}-{worker}.json").write_text(_packed(seconds, lines))


def _part(config: pytest.Config) -> str:
    """Returns a name for the run, so that `make races` and `make test` keep each other's records."""
    return Path(config.args[0]).name


def _packed(seconds: dict[str, float], lines: dict[str, dict[str, list[str]]]) -> str:
    numbers = {test: number for number, test in enumerate(seconds)}
    places = {path: {place: [numbers[test] for test in tests] for place, tests in found.items()}
              for path, found in lines.items()}  # fmt: skip
    return json.dumps({"tests": [*seconds.items()], "lines": places}, separators=(",", ":"))


def places_of(source: str) -> Callable[[int], str]:
    """Returns a function that names the place of a line: its function, and how many lines below the `def` it is."""
    owners = {line: (name, node.lineno) for name, node in scopes(ast.parse(source))
              for line in range(node.lineno, (node.end_lineno or 0) + 1)}  # fmt: skip

    def place(line: int) -> str:
        name, first = owners.get(line, ("", 0))
        return f"{name}+{line - first}"

    return place


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    recorder = Recorder(early_config.rootpath)
    recorder.start()
    early_config.pluginmanager.register(recorder)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        for old in (config.rootpath / FOLDER).glob(f"{_part(config)}-*.json"):
            old.unlink()


class Record:
    """The record: the seconds of each test, and the tests of each place of a module."""

    def __init__(self, seconds: dict[str, float], lines: dict[str, dict[str, set[str]]]) -> None:
        self.seconds = seconds
        self._lines = lines

    @classmethod
    def read(cls, root: Path) -> Self:
        """Reads the files of all processes. Empty without any."""
        seconds: dict[str, float] = {}
        lines: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in sorted((root / FOLDER).glob("*.json")):
            part = json.loads(file.read_text())
            names = [test for test, _ in part["tests"]]
            seconds.update(part["tests"])
            for path, places in part["lines"].items():
                for place, numbers in places.items():
                    lines[path][place].update(names[number] for number in numbers)
        return cls(seconds, lines)

    def tests_of(self, path: str, scope: str | None, offset: int) -> list[str]:
        """Returns the tests that run a line: the fastest one of each file, then the second ones, and so on.

        Those that run others of its function come after them.

        What is outside of functions runs once, when it is imported: it has the tests of all functions of the module.
        """
        places = self._lines.get(path, {})
        here = places.get(f"{scope}+{offset}", set()) if scope else set()
        near = {test for place, tests in places.items() if not scope or place.rpartition("+")[0] == scope
                for test in tests}  # fmt: skip
        return self._ordered(here) + self._ordered(near - here)

    def _ordered(self, tests: set[str]) -> list[str]:
        taken: Counter[str] = Counter()
        ranked = []
        for seconds, test in sorted((self.seconds[test], test) for test in tests):
            file = test.partition("::")[0]
            ranked.append((taken[file], seconds, test))
            taken[file] += 1
        return [test for *_, test in sorted(ranked)]
