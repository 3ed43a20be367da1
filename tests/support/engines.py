"""The DynamoDB of the tests.

Functional tests, whose requests are sequential, run on moto, in the test's own process.

Race tests need an engine that is atomic under threads, which moto isn't. They use dynoxide, or MiniStack without it.
With neither, they fail in CI, and a local run skips them with the reason, so that pytest counts them.
"""

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from moto import mock_aws

from controlplane.platform.core.aws_clients import create_client
from controlplane.platform.core.settings import settings
from local.checkout import free_port, is_listening
from tests.support.missing import is_missing
from tests.support.moto import MotoClient

ROOT = Path(__file__).parents[2]
_START_SECONDS = 30
# Reachable only from this machine, without persistent state, and without other listeners that could collide.
_MINISTACK = {"BIND_HOST": "127.0.0.1", "PERSIST_STATE": "0", "SFTP_ENABLED": "0", "IOT_MTLS_ENABLED": "0"}

type SequentialEngine = Literal["moto", "fast"]


@dataclass(frozen=True)
class Engine:
    name: str
    endpoint_url: str

    @cached_property
    def client(self) -> Any:
        """Returns the product's own client, connected to the engine."""
        return create_client("dynamodb", self.endpoint_url)


def find_engine() -> tuple[str, Path] | None:
    """Returns the name and program of the engine to use, or None if none is installed."""
    architecture = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine()
    )
    package = f"{platform.system().lower()}-{architecture}"
    for name, program in (
        ("dynoxide", ROOT / "node_modules" / "@dynoxide" / package / "dynoxide"),
        ("MiniStack", ROOT / ".tools" / "ministack" / "bin" / "ministack"),
    ):
        if os.access(program, os.X_OK):
            return name, program
    return None


@contextmanager
def running_engine(name: str, *program: Path) -> Iterator[Engine]:
    """Runs an empty engine on a free local port, and stops it when the block ends."""
    port = free_port()
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*program, "serve", "--port", str(port)] if name == "dynoxide" else program,
            cwd=folder,
            env={**os.environ, **_MINISTACK, "GATEWAY_PORT": str(port), "TMPDIR": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_listening(process, port)
            yield Engine(name, f"http://127.0.0.1:{port}")
        finally:
            stop(process)


def stop(process: subprocess.Popen[Any], within_seconds: int = 10) -> None:
    """Terminates the process, and kills it if it doesn't exit in time."""
    process.terminate()
    try:
        process.wait(within_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def required_engine() -> Iterator[Engine]:
    """Runs the installed engine. Without one, fails in CI and skips in a local run."""
    found = find_engine()
    if found is None:
        is_missing("no engine with real atomicity: `make races` installs dynoxide by npm, `make run` MiniStack")
    with running_engine(*found) as engine:
        yield engine


@contextmanager
def sequential_engine(name: SequentialEngine) -> Iterator[Any]:
    """Runs an engine for sequential requests, and yields a client of it.

    name: "fast" is dynoxide if it is installed, otherwise also moto.
    """
    found = find_engine() if name == "fast" else None
    if found is not None and found[0] == "dynoxide":
        with running_engine(*found) as running:
            yield running.client
    elif settings.aws_client == "boto3":
        client = create_client("dynamodb")
        with mock_aws():
            yield client
    else:
        yield MotoClient()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with required_engine() as running:
        yield running


def wait_until_listening(process: subprocess.Popen[Any], port: int, within_seconds: float = _START_SECONDS) -> None:
    """Raises RuntimeError if the process exits, and TimeoutError if it doesn't listen in time."""
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended at once, with exit code {process.returncode}")
        if is_listening(port):
            return
    raise TimeoutError(f"{process.args!r} did not listen on port {port} within {within_seconds} seconds")
