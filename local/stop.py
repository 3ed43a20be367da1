"""Stops this checkout's stack if it is running: `python -m local.stop`."""

import os
import signal
import time

from local.checkout import AlreadyRunning, sole_run

_TIMEOUT_SECONDS = 30


def stop() -> None:
    """Returns when no process runs this checkout's stack any more. Raises TimeoutError."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    asked = False
    while time.monotonic() < deadline:
        try:
            with sole_run():
                return
        except AlreadyRunning as running:
            if not asked and running.process_id:
                os.kill(running.process_id, signal.SIGTERM)
                asked = True
        time.sleep(0.05)
    raise TimeoutError("The running stack did not stop.")


if __name__ == "__main__":
    stop()
