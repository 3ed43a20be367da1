"""MiniStack, the local AWS, as a process of its own: the server restarts at every edit, and the data stays."""

import os
import subprocess
import time

from local.checkout import DIRECTORY, HOST, ROOT, is_listening

_PYTHON = ROOT / ".tools/ministack/bin/python"
_PROGRAM = ROOT / "local/ministack_process.py"
MINISTACK_DIRECTORY = DIRECTORY / "ministack"
_LOG = DIRECTORY / "ministack.log"
_START_TIMEOUT_SECONDS = 30
_STOP_TIMEOUT_SECONDS = 15


class MiniStackFailed(Exception):
    """MiniStack ended, or didn't respond in time."""


class DeployFailed(Exception):
    """MiniStack's CloudFormation refused the stateful resources."""


class MiniStack:
    """A running MiniStack. It writes its state to disk when it ends, however this process ends."""

    def __init__(self, port: int, host: str = HOST) -> None:
        self._address = port, host
        self.endpoint = f"http://{host}:{port}"
        MINISTACK_DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        environment |= {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": host,
            "MINISTACK_HOST": host,
            # Other protocols, which listen on every address.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "PERSIST_STATE": "1",
            "STATE_DIR": str(MINISTACK_DIRECTORY / "state"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(MINISTACK_DIRECTORY / "s3"),
            "TMPDIR": str(MINISTACK_DIRECTORY),
            "LOG_LEVEL": "WARNING",
        }
        with _LOG.open("w") as log:
            # A session of its own, so that Ctrl-C reaches it through us alone, after the server has let go of it.
            self._process = subprocess.Popen(
                [_PYTHON, "-P", _PROGRAM, MINISTACK_DIRECTORY / "lock"],  # -P: nothing here hides its own modules
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Returns when MiniStack accepts requests. Raises MiniStackFailed."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not is_listening(*self._address):
            if self._process.poll() is not None:
                raise MiniStackFailed(f"MiniStack ended while it started. {_LOG} says why.")
            if time.monotonic() > deadline:
                raise MiniStackFailed(f"MiniStack didn't respond within {_START_TIMEOUT_SECONDS} s. {_LOG} says more.")

    def stop(self) -> None:
        """Lets MiniStack write its state and waits for its end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
