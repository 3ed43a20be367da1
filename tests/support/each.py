"""Runs a test for each of many cases, as one test with one setup.

Like `pytest.mark.parametrize`, for cases that don't change what the others see, such as invalid values. Every case
runs, and each failure names its case.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

type Ids = Callable[[Any], object] | Iterable[object] | None


def each(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Ids = None,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Callable[[Any], Any]:
    """Returns a decorator of a test, or of a class of tests, with the arguments of `pytest.mark.parametrize`.

    around: returns a context for each case, such as `restored`.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    listed = [case if isinstance(case, type(pytest.param())) else _param(case, arguments) for case in cases]
    assert listed, "no cases"
    assert not any(case.marks for case in listed)
    if ids is None or callable(ids):
        shown = [case.id or ", ".join(str((ids or _short)(value)) for value in case.values) for case in listed]
    else:
        shown = [*map(str, ids)]
    named = [
        (f"with {', '.join(arguments)} = {name}", dict(zip(arguments, case.values, strict=True)))
        for name, case in zip(shown, listed, strict=True)
    ]

    def decorate(test: Any) -> Any:
        if not inspect.isclass(test):
            return _loop(test, arguments, named, around)
        for name, method in [*vars(test).items()]:
            if name.startswith("test_"):
                setattr(test, name, _loop(method, arguments, named, around))
        return test

    return decorate


def _loop(
    test: Callable[..., None],
    arguments: list[str],
    cases: list[tuple[str, dict[str, Any]]],
    around: Callable[[], AbstractContextManager[None]],
) -> Any:
    @functools.wraps(test)
    def run(*parts: Any, **fixtures: Any) -> None:
        failures: list[BaseException] = []
        for name, values in cases:
            try:
                with around():
                    test(*parts, **fixtures, **values)
            except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001  # all are raised below
                failure.add_note(name)
                failures.append(failure)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases fail", failures)

    signature = inspect.signature(test)
    rest = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
    assert len(rest) == len(signature.parameters) - len(arguments), "an argument is missing"
    run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    return run


def _param(case: Any, arguments: list[str]) -> Any:
    return pytest.param(case) if len(arguments) == 1 else pytest.param(*case)


def _short(value: object) -> str:
    return repr(value)[:200]
