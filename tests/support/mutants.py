"""Changes a function of the product while a test runs, to prove that a check notices the change."""

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import CodeType, FunctionType
from typing import Any

from tools.mutate.mutants import Mutant


def mutant(function: FunctionType, text: str, replacement: str) -> AbstractContextManager[None]:
    """While open, the function runs with the first occurrence of `text` in its source replaced, for every caller."""
    source = textwrap.dedent(inspect.getsource(function))
    assert text in source, f"{function.__qualname__} has no {text}"
    code = compile(source.replace(text, replacement, 1), inspect.getfile(function), "exec", dont_inherit=True)
    return _replaced(function, code)


def planted(made: Mutant) -> AbstractContextManager[None]:
    """While open, the function that the mutant changes runs with the change, for every caller."""
    path = made.path.removeprefix("layers/shared/").removeprefix("layers/analysis/")
    module: Any = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    return _replaced(getattr(module, made.scope), made.code)


@contextmanager
def _replaced(function: FunctionType, module: CodeType) -> Iterator[None]:
    """While open, the function has the code of the one with its name in the compiled module."""
    original = function.__code__
    codes = [code for code in module.co_consts if isinstance(code, CodeType)]
    function.__code__ = next(code for code in codes if code.co_name == function.__name__)
    try:
        yield
    finally:
        function.__code__ = original
