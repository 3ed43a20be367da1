"""Prepares the machine for a run: two separate cores, a temporary certificate, the DynamoDB engine.

Nothing here leaves the loopback interface.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.engines import find_engine, running_engine

ROOT = Path(__file__).resolve().parents[1]


class EngineMissing(Exception):
    """The DynamoDB engine that counts capacity units is not installed."""


def cores() -> tuple[set[int], set[int]]:
    """(cores of the stand-in and of this process, core of the measured function); the same where there is only one."""
    available = sorted(os.sched_getaffinity(0))
    measured = available[-1]
    return set(available[:-1]) or {measured}, {measured}


def certificate(folder: Path) -> tuple[Path, Path]:
    """Creates a self-signed certificate for localhost, and its key; valid for a day."""
    cert, key = folder / "localhost.pem", folder / "localhost.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run(  # nosec B607  # the one that the shell finds
        ["openssl", "req", "-x509", *curve, "-days", "1", *subject, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """Runs an empty in-memory DynamoDB engine, and yields its address."""
    found = find_engine()
    if found is None or found[0] != "dynoxide":
        raise EngineMissing("npm ci  (installs the DynamoDB engine that counts capacity units)")
    with running_engine(*found) as running:
        yield running.endpoint_url
