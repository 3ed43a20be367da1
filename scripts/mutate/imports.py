"""Changes modules while they are imported."""

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any


def change_imports(change: Callable[[str, CodeType], CodeType]) -> None:
    """Makes every later import run the result of `change` for the module's path and code."""
    original = SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> CodeType | None:
        code = original(loader, name)
        return code and change(loader.path, code)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
