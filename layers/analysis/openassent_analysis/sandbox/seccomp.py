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


# From the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
ARCHITECTURES: Final = {
    "x86_64": Architecture(0xC000003E, {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
        "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
        "ioctl": 16, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35,
        "getpid": 39, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89, "getrusage": 98,
        "sysinfo": 99, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "sigaltstack": 131, "prctl": 157,
        "gettid": 186, "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219,
        "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234, "openat": 257,
        "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "ppoll": 271, "prlimit64": 302, "getrandom": 318,
        "statx": 332, "faccessat2": 439,
    }),
    "aarch64": Architecture(0xC00000B7, {
        "getcwd": 17, "fcntl": 25, "ioctl": 29, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61,
        "lseek": 62, "read": 63, "write": 64, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93,
        "exit_group": 94, "futex": 98, "nanosleep": 101, "clock_gettime": 113, "clock_nanosleep": 115,
        "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "tgkill": 131, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "uname": 160, "getrusage": 165, "prctl": 167,
        "getpid": 172, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
        "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261,
        "getrandom": 278, "statx": 291, "faccessat2": 439,
    }),
}  # fmt: skip

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
