"""Runs a test for each of many cases, as one test with one setup.

Like `pytest.mark.parametrize`, for cases that don't change what the others see, such as invalid values. Every case runs,
and a failure names its case.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

type Names = Callable[[Any], object] | Iterable[object] | None


def each(names: str | tuple[str, ...], cases: Iterable[Any], ids: Names = None) -> Callable[[Any], Any]:
    """Returns a decorator of a test, or of a class of tests, with the arguments of `pytest.mark.parametrize`."""
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    listed = [case if isinstance(case, type(pytest.param())) else _param(case, arguments) for case in cases]
    assert listed, "no cases"
    assert not any(case.marks for case in listed)
    given = None if ids is None or callable(ids) else [*ids]
    assert given is None or len(given) == len(listed)

    def named(place: int) -> object:
        if given is not None:
            return given[place]
        case = listed[place]
        shown = [ids(value) for value in case.values] if callable(ids) else [repr(value)[:200] for value in case.values]
        return case.id or ", ".join(map(str, shown))

    def decorate(test: Any) -> Any:
        if inspect.isclass(test):
            for name, method in [*vars(test).items()]:
                if name.startswith("test_"):
                    setattr(test, name, decorate(method))
            return test

        @functools.wraps(test)
        def run(*parts: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for place, case in enumerate(listed):
                try:
                    test(*parts, **fixtures, **dict(zip(arguments, case.values, strict=True)))
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"with {', '.join(arguments)} = {named(place)}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(listed)} cases fail", failures)

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        assert len(rest) == len(signature.parameters) - len(arguments), "an argument is missing"
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate


def _param(case: Any, arguments: list[str]) -> Any:
    return pytest.param(case) if len(arguments) == 1 else pytest.param(*case)
