"""Changes a function of the product while a test runs, to prove that a check notices the change."""

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType


@contextmanager
def mutant(function: FunctionType, text: str, replacement: str) -> Iterator[None]:
    """While open, the function runs with the first occurrence of `text` in its source replaced, for every caller."""
    source = textwrap.dedent(inspect.getsource(function))
    assert text in source, f"{function.__qualname__} has no {text}"
    module = compile(source.replace(text, replacement, 1), inspect.getfile(function), "exec", dont_inherit=True)
    original = function.__code__
    codes = [code for code in module.co_consts if isinstance(code, CodeType)]
    function.__code__ = next(code for code in codes if code.co_name == function.__name__)
    try:
        yield
    finally:
        function.__code__ = original
