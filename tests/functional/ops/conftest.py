"""The operator's command line on each test's table."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import pytest
from moto import mock_aws
from typer.main import get_command
from typer.testing import CliRunner

from controlplane.store.table import table
from ops.cli import app


@dataclass
class Outcome:
    """A command's result. Each accessor also checks that the output went to the right stream."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """Returns the JSON document that a successful --json command printed as its only output."""
        assert self.exit_code == 0, self.stderr
        assert not self.stderr
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """Returns the error that a --json command failed with."""
        assert self.exit_code != 0
        assert not self.stdout
        error = json.loads(self.stderr)["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        return error


Ops = Callable[..., Outcome]


@pytest.fixture(scope="session", autouse=True)
def _one_command() -> Iterator[None]:
    """Makes the command of the app once, which otherwise each run does, and takes longer than most runs."""
    with mock.patch("typer.testing._get_command", cache(get_command)):
        yield


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    """Provides the queues that commands send to. The table is the engine's."""
    with mock_aws():
        yield


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Restores the variables and the table connection that a command sets."""
    name, client = table.name, table.client
    with mock.patch.dict(os.environ):
        yield
    table.name, table._client = name, client


@pytest.fixture
def run_without_table() -> Ops:
    """Runs a command line as given, without naming the test's table."""

    def run(*words: str, **options: Any) -> Outcome:
        result = CliRunner().invoke(app, list(words), **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def ops_text(run_without_table: Ops) -> Ops:
    """Runs a command as a person does. `input` is typed into a stdin that isn't a terminal."""

    def run(*words: str, **options: Any) -> Outcome:
        return run_without_table("--table", table.name, *words, **options)

    return run


@pytest.fixture
def ops(ops_text: Ops) -> Ops:
    """Runs a command as a program does, with --json."""

    def run(*words: str, **options: Any) -> Outcome:
        return ops_text(*words, "--json", **options)

    return run
