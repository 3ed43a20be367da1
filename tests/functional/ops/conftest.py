"""The operator's command line over the table of each test."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from moto import mock_aws
from typer.testing import CliRunner

from controlplane.store.table import table
from ops.cli import app


@dataclass
class Outcome:
    """How a command ended. Every one of these tests proves what goes where."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """What a command with --json said, which is the whole of its output."""
        assert self.exit_code == 0, self.stderr
        assert not self.stderr
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """What a command with --json refused with."""
        assert self.exit_code != 0
        assert not self.stdout
        error = json.loads(self.stderr)["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        return error


Ops = Callable[..., Outcome]


@pytest.fixture(scope="package", autouse=True)
def _aws() -> Iterator[None]:
    """The queues that commands send to. The table is the engine's."""
    with mock_aws():
        yield


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """A command sets variables and connects the table: both are put back."""
    name, client = table.name, table.client
    with mock.patch.dict(os.environ):
        yield
    table.name, table._client = name, client


@pytest.fixture
def anywhere() -> Ops:
    """Runs a command line as it stands, without naming the test's table."""

    def run(*words: str, **options: Any) -> Outcome:
        result = CliRunner().invoke(app, list(words), **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def plain(anywhere: Ops) -> Ops:
    """Runs a command as a person does. `input` is what they type, on something that is no terminal."""

    def run(*words: str, **options: Any) -> Outcome:
        return anywhere("--table", table.name, *words, **options)

    return run


@pytest.fixture
def ops(plain: Ops) -> Ops:
    """Runs a command as a program does, with --json."""

    def run(*words: str, **options: Any) -> Outcome:
        return plain(*words, "--json", **options)

    return run
