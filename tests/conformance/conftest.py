"""The tools that know the API by its document alone, and an API for them to call."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.served import Served

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools" / "conformance"
_END_SECONDS = 20


@pytest.fixture(scope="session")
def tools() -> Path:
    """The programs of the environment. Without it CI fails and a person's run skips."""
    if not (TOOLS / ".ready").exists():
        reason = "the tools that read the document are not installed: `make test` does that"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return TOOLS / "bin"


class Api:
    """The whole API in a process of its own: what it serves, and after its end what it answered."""

    def __init__(self) -> None:
        paths = os.pathsep.join(["functions", "layers/shared", "."])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.served"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "LOG_LEVEL": "CRITICAL"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.kill()
            pytest.fail("the API ended before it was ready")
        self.served = Served(**json.loads(line))

    def end(self) -> dict[str, dict[str, int]]:
        """How often each operation answered with which status."""
        answers, _ = self._process.communicate(timeout=_END_SECONDS)
        counted: dict[str, dict[str, int]] = json.loads(answers)
        return counted

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    yield made
    made.kill()
