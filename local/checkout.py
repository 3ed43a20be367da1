"""The state that this checkout's stack keeps between runs, all in .local/: ports, secrets, data, and credentials."""

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Tests run a stack of their own next to the one people use.
DIRECTORY = Path(os.environ.get("LOCAL_DIRECTORY", ROOT / ".local"))
CREDENTIALS = DIRECTORY / "credentials.json"
_MEMORY = DIRECTORY / "stack.json"
_LOCK = DIRECTORY / "lock"
_PAUSE_SECONDS = 0.02
_STOP_TIMEOUT_SECONDS = 30

HOST = "127.0.0.1"

# The import path of every function: its own package, and the layers.
SOURCES = ("functions", "layers/shared", "layers/analysis", "layers/audit")


class AlreadyRunning(Exception):
    """Another process runs this checkout's stack."""

    def __init__(self, process_id: int) -> None:
        super().__init__(f"This checkout's stack is already running (process {process_id}).")
        self.process_id = process_id


@dataclass
class Memory:
    """Created once per checkout, so that every run has the data of the previous one."""

    ministack_port: int
    deployed: str = ""
    """Digest of the template's part that is deployed to MiniStack."""

    started: float = 0
    """The Unix time when the functions of the current run got their variables, secrets included."""

    code_host: dict[str, str] | None = None
    """The functions' variables that lead to the code host, for the operator's command line."""

    demo: dict[str, Any] | None = None
    """The demo data in credentials.json, or None until all of it is written."""

    def save(self) -> None:
        write_private(_MEMORY, json.dumps(asdict(self), indent=2) + "\n")


def load_memory() -> Memory:
    """Returns the last run's memory, with a new MiniStack port if another process has taken it since."""
    try:
        stored = json.loads(_MEMORY.read_text())
        # Another version of this checkout may have stored more.
        memory = Memory(**{it.name: stored[it.name] for it in fields(Memory) if it.name in stored})
    except FileNotFoundError:
        memory = Memory(free_port())
    if not is_free(memory.ministack_port):
        memory.ministack_port = free_port()
    memory.save()
    return memory


def write_private(path: Path, text: str) -> None:
    """Replaces the file in one step, readable by its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    unfinished.replace(path)


@contextmanager
def sole_run() -> Iterator[None]:
    """Holds the checkout for this process. Raises AlreadyRunning where another one has it."""
    DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    with _LOCK.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(int(_LOCK.read_text() or 0)) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def stop() -> None:
    """Stops this checkout's stack if it is running, and returns when it has ended. Raises TimeoutError."""
    deadline, asked = time.monotonic() + _STOP_TIMEOUT_SECONDS, 0
    while time.monotonic() < deadline:
        try:
            with sole_run():
                return
        except AlreadyRunning as running:
            if running.process_id != asked:
                os.kill(running.process_id, signal.SIGTERM)
                asked = running.process_id
        time.sleep(_PAUSE_SECONDS)
    raise TimeoutError("The running stack did not stop.")


def is_free(port: int) -> bool:
    """Returns whether this process can listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_listening(port: int, host: str = HOST) -> bool:
    """Returns whether a process accepts connections on the port. Waits a moment before it returns False."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        time.sleep(_PAUSE_SECONDS)
        return False
    return True
