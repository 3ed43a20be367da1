"""The worker's secrets, as seen by a process that it starts: hidden."""

import os
import subprocess
import sys

import pytest

from local.checkout import ROOT

SECRETS = {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": "wJalr/XUtn", "AWS_SESSION_TOKEN": "IQoJb3"}
# The parent imitates the worker, and its child the browser, which is another process of the same user.
PARENT = """
import ctypes, os, subprocess, sys
from website_audits import confinement
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as if it had started as this user
HIDES
subprocess.run(["/bin/sh", "-c", "env; for it in environ maps mem; do echo $it; head -c 9999 /proc/$PPID/$it; done"],
    stderr=subprocess.STDOUT)
"""
REFUSED = "confinement._PR_SET_DUMPABLE = 9999"


def learned(hides: str) -> tuple[list[str], str]:
    """Returns the secrets that the child gets or can read, and its output."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "functions"), "LEFT": "as it is", **SECRETS}
    command = [sys.executable, "-S", "-c", PARENT.replace("HIDES", hides)]
    made = subprocess.run(command, env=environment, capture_output=True, check=True)
    said = made.stdout.decode(errors="replace")
    assert "LEFT=as it is" in said
    return [it for it in SECRETS.values() if it in said], said


@pytest.mark.skipif(sys.platform != "linux", reason="Lambda's kernel is Linux")
class TestHiddenSecrets:
    def test_an_ordinary_process_shows_them(self):
        assert learned("")[0] == [*SECRETS.values()]

    def test_a_child_finds_none_and_cant_read_the_workers_memory(self):
        found, said = learned("assert confinement.hide_secrets()")
        assert found == []
        assert said.count("Permission denied") == 3

    def test_a_child_finds_none_in_the_environment_if_the_kernel_refuses_to_protect_it(self):
        found, said = learned(f"{REFUSED}; assert not confinement.hide_secrets()")
        assert found == []
        assert "environ\n" in said
