"""Lets scans share the sandbox's child process, whose start takes longer than the rest of a test's scan.

A child knows nothing of the files that it has examined, but it is only used again after an examination that ended: an
interrupted one leaves answers behind. tests/unit/sandbox/ and the deployed tests start a child for each scan.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self
from unittest.mock import patch

from openassent_analysis.sandbox import Sandbox
from openassent_analysis.sandbox.process import Child


@contextmanager
def warm_sandboxes(place: str = "scan_execution.service.Sandbox") -> Iterator[None]:
    """While open, scans take the children that an earlier scan has left, if there are any.

    place: where the scans take their sandbox from.
    """
    idle: list[Child] = []

    class Warm(Sandbox):
        def __enter__(self) -> Self:
            if not idle:
                return super().__enter__()
            self._children, idle[:] = idle[:], []
            return self

        def __exit__(self, *details: object) -> None:
            # One that isn't ready, or has files left, is of no use to another scan.
            idle.extend(child for child in self._children if child.ready and not child.tasks)
            self._children = [child for child in self._children if child not in idle]
            super().__exit__(*details)

    try:
        with patch(place, Warm):
            yield
    finally:
        for child in idle:
            child.end()
