"""Tools that know the API only from its document, and an API for them to call."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.served import Served
from tests.support.missing import is_missing

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools" / "conformance"


@pytest.fixture(scope="session")
def tools() -> Path:
    """Returns the tools of the environment. If it is missing, fails in CI and skips elsewhere."""
    if not (TOOLS / ".ready").exists():
        is_missing("the tools that read the document are not installed: `make test` does that")
    return TOOLS / "bin"


class Api:
    """The whole API in its own process: the data that it serves, and the statuses that it has returned."""

    def __init__(self) -> None:
        paths = os.pathsep.join(["functions", "layers/shared", "layers/analysis", "."])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.served"],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "PYTHONHASHSEED": "0",
                "LOG_LEVEL": "CRITICAL",
                "ORGANIZATIONS_PER_PERSON": "1000",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.served = Served(**self._read())

    def answers(self) -> dict[str, dict[str, int]]:
        """Returns how often each operation has returned each status."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.end()
            pytest.fail("the API has ended")
        read: dict[str, Any] = json.loads(line)
        return read

    def end(self) -> None:
        """Closes the process's input, so that it stops its engine and exits."""
        try:
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    yield made
    made.end()
