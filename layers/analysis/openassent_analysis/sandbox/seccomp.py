"""An allowlist of system calls for a process that parses hostile input, enforced by the kernel.

The process can read and write its two pipes, manage its own memory, and exit. The filter is classic BPF, built here
and installed with prctl(2); see the kernel's Documentation/userspace-api/seccomp_filter.rst. It applies to the whole
process, can't be removed, and kills the process at the first call that only an attacker would make.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from openassent_analysis.reading import resource

# Allowed with any arguments. The kernel resumes an interrupted futex with restart_syscall. rt_sigreturn is excluded:
# with it, a process could block the signal that kills it at its CPU time limit.
_ALLOWED: Final = (
    "munmap", "mremap", "brk", "madvise", "futex", "clock_gettime", "getrandom", "sched_yield", "restart_syscall",
    "getpid", "gettid", "exit", "exit_group",
)  # fmt: skip
# Fail with EPERM instead of killing the process: they are harmless, and libraries (also lazy imports) probe with them
# and continue.
_REFUSED: Final = (
    "open", "openat", "stat", "lstat", "newfstatat", "statx", "fstat", "lseek", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat", "getcwd", "getdents64", "ioctl", "fcntl", "close", "uname", "sysinfo", "prctl",
    "sched_getaffinity", "rt_sigaction", "rt_sigprocmask", "sigaltstack", "getuid", "geteuid", "getgid", "getegid",
    "getrusage", "prlimit64", "nanosleep", "clock_nanosleep", "poll", "ppoll",
)  # fmt: skip
_PROT_EXEC: Final = 4


class Architecture(NamedTuple):
    """An architecture: the kernel's constant for it (`audit`, AUDIT_ARCH_…) and its system call numbers."""

    audit: int
    numbers: Mapping[str, int]


ARCHITECTURES: Final = {name: Architecture(**known) for name, known in resource("system-calls").items()}

KILL: Final = 0x8000_0000
ALLOW: Final = 0x7FFF_0000
REFUSE: Final = 0x0005_0000 | 1  # EPERM

# BPF instructions: load a word of seccomp_data, jump if equal, jump if any bit is set, return.
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
# Offsets in seccomp_data. Arguments have 64 bits; both architectures are little-endian.
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

_Instruction: TypeAlias = tuple[int, int, int, int]


class SeccompUnavailable(Exception):
    """The kernel can't apply the filter, or the architecture isn't supported."""


def build(architecture: Architecture, pid: int) -> list[_Instruction]:
    """Returns the filter as (code, jump if true, jump if false, operand). `pid` may send itself only SIGABRT."""
    numbers = architecture.numbers
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for name in _ALLOWED:
        program += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, ALLOW)]
    for name in _REFUSED:
        if name in numbers:
            program += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, REFUSE)]
    program += _arguments(numbers["read"], [(0, 0)])
    program += _arguments(numbers["write"], [(0, 1)])
    # The C library aborts a process that ran out of memory this way.
    program += _arguments(numbers["tgkill"], [(0, pid), (2, signal.SIGABRT)])
    for name in ("mmap", "mprotect"):
        program += [
            (_EQUAL, 0, 4, numbers[name]),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * 2),
            (_ANY_BIT, 0, 1, _PROT_EXEC),
            (_RETURN, 0, 0, KILL),
            (_RETURN, 0, 0, ALLOW),
        ]
    program.append((_RETURN, 0, 0, KILL))
    return program


def _arguments(number: int, wanted: list[tuple[int, int]]) -> Iterator[_Instruction]:
    """Yields instructions that allow the call if all arguments (index, value) match, and else kill the process."""
    yield (_EQUAL, 0, 2 * len(wanted) + 2, number)
    for position, (index, value) in enumerate(wanted):
        yield (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)
        yield (_EQUAL, 0, 2 * (len(wanted) - position) - 1, value)
    yield (_RETURN, 0, 0, ALLOW)
    yield (_RETURN, 0, 0, KILL)


def confine() -> None:
    """Applies the filter to this process permanently. Raises SeccompUnavailable."""
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        raise SeccompUnavailable(platform.machine())
    instructions = build(architecture, os.getpid())
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *it) for it in instructions))
    # struct sock_fprog: the number of instructions, padding, and their address.
    header = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(program)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    # Without this, only root may install a filter.
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SeccompUnavailable(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header), 0, 0) != 0:
        raise SeccompUnavailable(f"seccomp: {os.strerror(ctypes.get_errno())}")
