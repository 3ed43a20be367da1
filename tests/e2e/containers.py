"""A Docker engine and the base image of Lambda functions, on a machine without an image registry.

The engine is the one that is already running, or else Debian's (package docker.io), started only for the tests. The
image is built from the machine's files: its Python, the Lambda runtime, SAM CLI's emulator, and the shell and libraries
that these need. AWS's image of the same name has them at the same paths.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.deployment import ROOT
from tests.support.engines import stop
from tests.support.missing import is_missing

IMAGE = "assent-e2e/lambda-python:3.13"
_START_SECONDS = 120
_RUNTIME = ROOT / ".tools" / "lambda" / "lib" / "python3.13" / "site-packages"
_BOOTSTRAP = """#!/bin/sh
export PYTHONPATH=/var/task:/opt/python:/var/runtime
exec /var/lang/bin/python3.13 -m awslambdaric "$_HANDLER"
"""
# SAM uses these to extend the image.
_PROGRAMS = ("sh", "mv", "cp", "rm", "chmod")
# Every Linux build may also assume these (PEP 600), and AWS's image has them.
_GIVEN_LIBRARIES = ("libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
_LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "site-packages", "test", "tkinter", "turtledemo"}


@contextmanager
def running_engine() -> Iterator[dict[str, str]]:
    """Yields the variables that point Docker's clients to the engine. Without one, fails in CI and skips elsewhere."""
    if sys.platform != "linux":
        pytest.skip("the image for functions is made of the programs of a Linux machine")
    if _answers({}):
        yield {}
        return
    if not shutil.which("dockerd") or not shutil.which("docker") or os.geteuid() != 0:
        is_missing("no Docker engine: none answers, and to start one takes root and the packages that .ci/run installs")
    with _own_engine() as variables:
        yield variables


@contextmanager
def _own_engine() -> Iterator[dict[str, str]]:
    # Not pytest's folder: a socket's path is limited to about a hundred characters.
    with TemporaryDirectory(prefix="engine-") as folder:
        variables = {"DOCKER_HOST": f"unix://{folder}/docker.sock"}
        log_file = Path(folder) / "log"
        had_bridge = Path("/sys/class/net/docker0").exists()
        with log_file.open("w") as log:
            process = subprocess.Popen(
                [
                    "dockerd",
                    *("--data-root", f"{folder}/data"),
                    *("--exec-root", f"{folder}/exec"),
                    *("--pidfile", f"{folder}/pid"),
                    *("--host", variables["DOCKER_HOST"]),
                    # Containers only talk to this machine: the firewall and routes stay unchanged.
                    *("--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _answers(variables):
                ended = process.poll() is not None
                if ended or time.monotonic() > deadline:
                    said = log_file.read_text()
                    if ended and re.search("operation not permitted|permission denied", said, re.IGNORECASE):
                        pytest.skip(f"no Docker engine: this machine doesn't allow starting one\n{said}")
                    pytest.fail(f"dockerd did not start:\n{said}", pytrace=False)
                time.sleep(0.2)
            yield variables
        finally:
            stop(process, within_seconds=20)
            _unmount(folder)
            if not had_bridge and shutil.which("ip"):
                subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)


def _answers(variables: dict[str, str]) -> bool:
    if not shutil.which("docker"):
        return False
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=False).returncode == 0


def _unmount(folder: str) -> None:
    """Unmounts file systems that a killed engine left behind, which couldn't be deleted otherwise."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((mount for mount in mounts if mount.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)


@contextmanager
def imported_image(variables: dict[str, str]) -> Iterator[str]:
    """Yields the name under which the engine knows the image while the block runs."""
    changes = (
        "ENV PATH=/var/lang/bin:/usr/bin:/bin",
        "ENV LAMBDA_TASK_ROOT=/var/task",
        "ENV LAMBDA_RUNTIME_DIR=/var/runtime",
        "WORKDIR /var/task",
    )
    environment = {**os.environ, **variables}
    with TemporaryDirectory() as folder:
        archive = Path(folder) / "image.tar"
        _write_image(archive, Path(folder))
        options = [word for change in changes for word in ("--change", change)]
        subprocess.run(
            ["docker", "import", *options, archive, IMAGE], env=environment, check=True, stdout=subprocess.DEVNULL
        )
    try:
        yield IMAGE
    finally:
        subprocess.run(["docker", "image", "rm", "--force", IMAGE], env=environment, capture_output=True, check=False)


def _write_image(archive: Path, scratch: Path) -> None:
    python = Path(sys.base_prefix)
    programs = {name: Path(str(shutil.which(name, path="/bin:/usr/bin"))).resolve() for name in _PROGRAMS}
    compiled = [*programs.values(), python / "bin" / "python3.13", *python.glob("lib/python3.13/lib-dynload/*.so")]
    bootstrap = scratch / "bootstrap"
    bootstrap.write_text(_BOOTSTRAP)
    bootstrap.chmod(0o755)
    empty = scratch / "empty"
    empty.mkdir()
    with tarfile.open(archive, "w", dereference=True) as image:
        for folder in ("opt", "tmp", "var/rapid", "var/task"):
            image.add(empty, folder)
        image.add(python / "bin" / "python3.13", "var/lang/bin/python3.13")
        image.add(python / "lib" / "python3.13", "var/lang/lib/python3.13", filter=_without_what_no_function_needs)
        image.add(_RUNTIME, "var/runtime", filter=_without_installers)
        image.add(bootstrap, "var/runtime/bootstrap")
        for name, program in programs.items():
            image.add(program, f"bin/{name}")
        libraries = _libraries([*compiled, *_RUNTIME.rglob("*.so")])
        (home,) = {Path(library).parent for library in libraries if library.endswith("/libc.so.6")}
        for library in sorted(libraries | {str(home / name) for name in _GIVEN_LIBRARIES}):
            image.add(library, library.lstrip("/"))


def _without_what_no_function_needs(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = Path(entry.name).name
    return None if name in _LEFT_OUT or name.startswith("config-") else entry


def _without_installers(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    first = Path(entry.name).relative_to("var/runtime").parts[:1]
    return None if first and re.match(r"(pip|uv)\b", first[0]) else entry


def _libraries(compiled: Iterable[Path]) -> set[str]:
    """Returns these files' shared libraries, including indirect ones, by the paths where the loader looks for them."""
    # ldd also reports libraries of another architecture that a package includes; that isn't a failure.
    listed = subprocess.run(["ldd", *map(str, compiled)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(?:=>|^\s+)\s*(/\S+)\s+\(0x", listed, re.MULTILINE))
