"""Changes a function of the product while a test runs, to prove that a check notices the change."""

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from tools.mutate.mutants import Mutant


@contextmanager
def mutant(function: FunctionType, text: str, replacement: str) -> Iterator[None]:
    """While open, the function runs with the first occurrence of `text` in its source replaced, for every caller."""
    source = textwrap.dedent(inspect.getsource(function))
    assert text in source, f"{function.__qualname__} has no {text}"
    made: dict[str, Any] = {}
    code = compile(source.replace(text, replacement, 1), inspect.getfile(function), "exec", dont_inherit=True)
    exec(code, dict(function.__globals__), made)  # the product's own source
    original = function.__code__
    function.__code__ = made[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = original


@contextmanager
def planted(made: Mutant) -> Iterator[None]:
    """While open, the function that the mutant changes runs with the change, for every caller."""
    path = made.path.removeprefix("layers/shared/").removeprefix("layers/analysis/")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, str(made.scope))
    original = function.__code__
    function.__code__ = next(
        code for code in made.code.co_consts if isinstance(code, CodeType) and code.co_name == made.scope
    )
    try:
        yield
    finally:
        function.__code__ = original
