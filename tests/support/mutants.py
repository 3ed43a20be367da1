"""Changes a function of the product while a test runs, to prove that a check notices the change."""

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


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
