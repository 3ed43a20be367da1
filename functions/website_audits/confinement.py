"""Hides the credentials of this process from the processes that it starts, which run strangers' code."""

import ctypes
import os
import re

_SECRET = re.compile("CREDENTIAL|KEY|SECRET|TOKEN")
_PR_SET_DUMPABLE = 4


def hide_secrets() -> bool:
    """Removes secrets from the environment, also from the kernel's copy of it, and protects this process's memory.

    Returns False if the kernel refuses the protection. Lambda refuses some calls of this kind.
    """
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    for name in filter(_SECRET.search, list(os.environ)):
        # Where /proc/PID/environ reads it, as long as nothing has changed it.
        ctypes.memset(library.getenv(os.fsencode(name)), 0, len(os.fsencode(os.environ[name])))
        del os.environ[name]
    return bool(library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
