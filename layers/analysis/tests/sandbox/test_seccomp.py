"""The seccomp filter, run by our own interpreter for both architectures, whichever this machine has."""

import errno
import gc
import os
import platform
import struct
import sys

import pytest

from openassent_analysis.sandbox import child, seccomp
from openassent_analysis.sandbox.seccomp import ALLOW, ARCHITECTURES, KILL, REFUSE

PID = 4711
SIGABRT = 6


def decide(program, audit, number, *arguments):
    """Returns the kernel's verdict; see linux/filter.h and seccomp_data in linux/seccomp.h."""
    call = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    accumulator = at = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", call, operand)
        elif code == 0x15:
            at += if_true if accumulator == operand else if_false
        elif code == 0x45:
            at += if_true if accumulator & operand else if_false
        else:
            assert code == 0x06
            return operand


@pytest.fixture(params=ARCHITECTURES)
def call(request):
    architecture = ARCHITECTURES[request.param]
    program = seccomp.build(architecture, PID)

    def call(name, *arguments):
        number = architecture.numbers[name] if isinstance(name, str) else name
        return decide(program, architecture.audit, number, *arguments)

    call.numbers = architecture.numbers
    call.program = program
    return call


class TestFilter:
    def test_the_filter_allows_its_two_pipes_and_no_other_descriptor(self, call):
        assert [call("read", n) for n in range(4)] == [ALLOW, KILL, KILL, KILL]
        assert [call("write", n) for n in range(4)] == [KILL, ALLOW, KILL, KILL]

    def test_the_filter_allows_memory_that_isnt_executable(self, call):
        for name in ("mmap", "mprotect"):
            assert [call(name, 0, 4096, protection) for protection in (0, 3, 4, 7)] == [ALLOW, ALLOW, KILL, KILL]

    def test_the_filter_allows_a_process_to_abort_itself_and_signal_no_other(self, call):
        assert call("tgkill", PID, PID, SIGABRT) == ALLOW
        assert {call("tgkill", 1, 1, SIGABRT), call("tgkill", PID, PID, 9)} == {KILL}

    def test_the_filter_allows_few_calls_with_any_arguments(self, call):
        assert {name for name in call.numbers if call(name, 7, 7, 7) == ALLOW} == {
            "munmap", "mremap", "brk", "madvise", "futex", "clock_gettime", "getrandom", "sched_yield",
            "restart_syscall", "getpid", "gettid", "exit", "exit_group",
        }  # fmt: skip

    def test_the_filter_refuses_to_open_what_libraries_probe_for(self, call):
        for name in ("openat", "newfstatat", "statx", "prctl", "rt_sigaction", "prlimit64"):
            assert call(name) == REFUSE
        assert REFUSE & 0xFFFF == errno.EPERM

    def test_the_filter_kills_for_every_call_it_doesnt_name(self, call):
        known = set(call.numbers.values())
        assert {call(number) for number in range(600) if number not in known} == {KILL}
        # The other system call tables of an x86_64 kernel: x32, and numbers that only a negative value could be.
        assert {call(0x4000_0000 | number) for number in known} == {KILL}

    def test_the_filter_kills_for_a_call_of_another_architecture(self, call):
        for audit in (0x40000003, 0x40000028, 0):
            assert decide(call.program, audit, call.numbers["getpid"]) == KILL

    def test_the_filter_is_short_enough_for_the_kernel(self, call):
        assert len(call.program) < 4096


class TestConfine:
    def test_confining_fails_on_an_architecture_without_a_table(self, monkeypatch):
        monkeypatch.setattr(platform, "machine", lambda: "riscv64")
        with pytest.raises(seccomp.SeccompUnavailable, match="riscv64"):
            seccomp.confine()

    def test_a_failure_at_startup_is_reported_before_any_file_is_read(self, monkeypatch):
        written: list[bytes] = []
        monkeypatch.setattr(child, "_write", written.append)
        monkeypatch.setattr(child, "_limit", lambda _: None)
        monkeypatch.setattr(child, "_confine", lambda: (_ for _ in ()).throw(seccomp.SeccompUnavailable("none")))
        monkeypatch.setattr(child, "_serve", lambda _: pytest.fail("it reads"))
        monkeypatch.setattr(os, "environ", dict(os.environ))
        configuration = '{"import_path": [], "entry": "json:dumps", "limits": {}}'
        monkeypatch.setattr(sys, "argv", ["", configuration])
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(gc, "freeze", lambda: None)
        child.main()
        assert written == [b"SeccompUnavailable: none"]
