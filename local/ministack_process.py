"""Runs MiniStack until standard input closes: then, also when its parent was killed, it writes its state and ends.

It runs in MiniStack's own environment and so imports nothing of this project. Its argument is the file whose lock makes
it wait for the end of a predecessor that still writes.
"""

import fcntl
import os
import signal
import sys
import threading
from pathlib import Path


def stop_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    lock = Path(sys.argv.pop()).open("w")  # noqa: SIM115 - held as long as the process lives
    fcntl.flock(lock, fcntl.LOCK_EX)

    from ministack.app import main

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    main()
