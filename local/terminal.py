"""Ctrl-C under make: it reaches the stack alone, so that make sees a stack that ended well and reports no error."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_UNDER_MAKE = "MAKELEVEL" in os.environ
_STOP_SIGNALS = sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))


@contextmanager
def foreground() -> Iterator[None]:
    """Takes the terminal's foreground from make for as long as the stack runs.

    Without a terminal, in the background, or not under make, nothing changes.
    """
    terminal = _find_terminal() if _UNDER_MAKE and signal.getsignal(signal.SIGINT) != signal.SIG_IGN else None
    if terminal is None:
        yield
        return
    make_group = os.getpgrp()
    # A stopped stack would leave make waiting and no process reading Ctrl-C.
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpid())
    try:
        yield
    finally:
        os.tcsetpgrp(terminal, make_group)
        os.close(terminal)


def _find_terminal() -> int | None:
    """Returns the controlling terminal if this process group is in its foreground and make is its leader."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp() != os.getpid():
        return terminal
    os.close(terminal)
    return None


def stop_with_make() -> None:
    """Starts a thread that sends this process SIGTERM when make was killed, or was told to stop and waits for us."""
    if _UNDER_MAKE:
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(make: int) -> None:
    while os.getppid() == make and not _is_stopping(make):
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _is_stopping(make: int) -> bool:
    """Returns whether make handles a stop signal, which it does by waiting for its children. Linux only."""
    try:
        status = Path(f"/proc/{make}/status").read_text()
    except OSError:
        return False
    blocked = next((line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")), "0")
    return bool(int(blocked, 16) & _STOP_SIGNALS)
