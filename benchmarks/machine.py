"""Prepares the machine for a run: two cores kept apart, a throw-away certificate, the DynamoDB engine.

Nothing here leaves the loopback interface.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"


class EngineMissing(Exception):
    """The DynamoDB engine that counts capacity units is not installed."""


def cores() -> tuple[set[int], set[int]]:
    """(cores of the stand-in and of this process, core of the measured function); the same where there is only one."""
    available = sorted(os.sched_getaffinity(0))
    measured = available[-1]
    return set(available[:-1]) or {measured}, {measured}


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that is its own authority, and its key; valid for a day."""
    cert, key = folder / "localhost.pem", folder / "localhost.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run(  # nosec B607  # the one that the shell finds
        ["openssl", "req", "-x509", *curve, "-days", "1", *subject, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def engine_path() -> Path:
    named = os.environ.get("DYNOXIDE") or shutil.which("dynoxide")
    path = Path(named) if named else ENGINE
    if not path.is_file():
        raise EngineMissing("npm ci  (installs the DynamoDB engine that counts capacity units)")
    return path


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """An empty in-memory DynamoDB engine for the length of the block; answers its address."""
    port = free_port()
    process = subprocess.Popen(
        [engine_path(), "serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError("the DynamoDB engine did not start")
