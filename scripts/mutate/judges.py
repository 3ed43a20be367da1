"""Runs tests with a mutant, by pytest.

`judge_cold` starts pytest in a process that has imported only libraries. The product is imported with the mutant. It is
right for every mutant, and needs a few seconds.

`judge_warm` is for many mutants inside of functions: a process imports the product and collects the tests once, and in
each child the functions get the mutant's code. Code that ran when the product was imported doesn't run again, so a
mutant that survives there is tried again by the other.
"""

import asyncio
import gc
import importlib
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from scripts.mutate.changes import PRODUCT
from scripts.mutate.imports import change_imports
from scripts.mutate.mutants import Mutant
from scripts.mutate.trials import Judge, Trial, Verdict

# The same order and the same examples for every mutant, and no files or processes of pytest's plugins.
_OPTIONS = (
    "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore:.*fork:DeprecationWarning",
)  # fmt: skip

type Place = tuple[str, str, int]


def import_libraries(root: Path) -> None:
    """Imports what the product and its tests need, as `tool.mutate` in pyproject.toml lists it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in project.get("tool", {}).get("mutate", {}).get("libraries", []):
            importlib.import_module(name)


def _files(tests: Sequence[str]) -> list[str]:
    return [*dict.fromkeys(test.partition("::")[0] for test in tests)]


def _import_mutated(path: Path, code: CodeType) -> None:
    """Makes every later import of the file run this code."""
    change_imports(lambda imported, original: code if Path(imported) == path else original)


class _Collected:
    """A plugin that has the wanted tests in their order, and keeps the first that fails."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.failed: str | None = None
        self.ran = 0

    def choose(self, tests: Sequence[str]) -> list[pytest.Item]:
        """Returns the tests with these ids, or in these files, in this order."""
        places = {test: place for place, test in reversed([*enumerate(tests)])}

        def place(item: pytest.Item) -> int:
            return places.get(item.nodeid, places.get(item.nodeid.partition("::")[0], -1))

        return sorted((item for item in self.items if place(item) >= 0), key=place)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = items

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran += report.when == "call"
        if report.failed and self.failed is None:
            self.failed = report.nodeid
            print(report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.failed is None:
            self.failed = f"collection of {report.nodeid}"


class _Cold(_Collected):
    def __init__(self, tests: Sequence[str]) -> None:
        super().__init__()
        self._tests = tests

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = items
        items[:] = self.choose(self._tests)


def judge_cold(root: Path, options: Sequence[str]) -> Judge:
    def judge(trial: Trial) -> Verdict:
        if trial.mutant is not None:
            _import_mutated(root / trial.mutant.path, trial.mutant.code)
        plugin = _Cold(trial.tests)
        status = pytest.main([*_OPTIONS, *options, *_files(trial.tests)], plugins=[plugin])
        if status in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            return Verdict(None, plugin.ran)
        return Verdict(plugin.failed or f"pytest ended with {pytest.ExitCode(status).name}", plugin.ran)

    return judge


class _Warm(_Collected):
    """Runs `act` instead of the tests, after the first one, which makes the product import what it imports late."""

    def __init__(self, act: Callable[[Judge], Any], first: str, root: Path) -> None:
        super().__init__()
        self._act, self._first, self._root = act, first, root
        self.answer: Any = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._run(self.choose([self._first]))
        if self.failed is None:
            session.testsfailed, self.ran = 0, 0
            functions = _Functions.find(self._root)
            self.answer = self._act(lambda trial: self._judge(trial, functions))
        return True

    def _judge(self, trial: Trial, functions: "_Functions") -> Verdict:
        asyncio.set_event_loop(asyncio.new_event_loop())  # asyncio forgets the parent's, which handlers set at import
        if trial.mutant is not None:
            _import_mutated(self._root / trial.mutant.path, trial.mutant.code)
            functions.replace(self._root, trial.mutant)
        self._run(self.choose(trial.tests))
        return Verdict(self.failed, self.ran)

    def _run(self, items: list[pytest.Item]) -> None:
        for position, item in enumerate(items):
            following = items[position + 1] if position + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed is not None:
                item.session._setupstate.teardown_exact(None)  # ends what fixtures have started
                return


def with_warm_tests(root: Path, options: Sequence[str], tests: Sequence[str], act: Callable[[Judge], Any]) -> Any:
    """Imports the product, collects the files of the tests, and returns what `act` returns. None if that failed.

    `act` gets a function that judges a trial in a child of this process.
    """
    plugin = _Warm(act, tests[0], root)
    pytest.main([*_OPTIONS, *options, *_files(tests)], plugins=[plugin])
    return plugin.answer


@dataclass
class _Functions:
    """The product's functions, and the caches of some."""

    by_place: dict[Place, list[FunctionType]] = field(default_factory=dict)
    caches: list[Any] = field(default_factory=list)

    @classmethod
    def find(cls, root: Path) -> "_Functions":
        found = cls()
        roots = tuple(str(root / folder) for folder in PRODUCT)
        gc.unfreeze()  # the product hides its objects from the collector, and from the next line
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and _is_of(thing, roots):
                found.by_place.setdefault(_place(thing.__code__), []).append(thing)
            elif isinstance(thing, _lru_cache_wrapper) and _is_of(thing.__wrapped__, roots):
                found.caches.append(thing)
        gc.freeze()  # else pytest's last collection finds what the product has left open
        return found

    def replace(self, root: Path, mutant: Mutant) -> None:
        """Gives the mutant's code to the functions that it changes."""
        for code in _codes(mutant.code):
            for function in self.by_place.get((str(root / mutant.path), code.co_qualname, code.co_firstlineno), ()):
                if function.__code__ != code and function.__code__.co_freevars == code.co_freevars:
                    function.__code__ = code
        for cache in self.caches:
            cache.cache_clear()


def _is_of(function: Any, roots: tuple[str, ...]) -> bool:
    return isinstance(function, FunctionType) and function.__code__.co_filename.startswith(roots)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
