"""Lets scans share the sandbox's child process, whose start takes longer than the rest of a test's scan.

A child knows nothing of the files that it has examined, but it is only used again after an examination that ended: an
interrupted one leaves answers behind. tests/unit/sandbox/ and the deployed tests start a child for each scan.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from scan_execution.analysis.report import Answer, Request
from scan_execution.sandbox import Sandbox


@contextmanager
def warm_sandboxes() -> Iterator[None]:
    """While open, scans take a child that an earlier scan has left, if there is one."""
    idle: list[Any] = []

    class Warm(Sandbox):
        _is_between = True

        def __enter__(self) -> Self:
            if not idle:
                return super().__enter__()
            self._child = idle.pop()
            return self

        def __exit__(self, *details: object) -> None:
            if self._child is not None and self._child._ready and self._is_between:
                idle.append(self._child)
            else:
                super().__exit__(*details)
            self._child = None

        def examine(self, requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
            self._is_between = False
            yield from super().examine(requests, deadline)
            self._is_between = True

    try:
        with patch("scan_execution.service.Sandbox", Warm):
            yield
    finally:
        for child in idle:
            child.end()
