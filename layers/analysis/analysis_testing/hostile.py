"""An analysis that its input controls, to test the sandbox. Runs only in the sandbox's child process.

A file below `attack/` names an attack by its path. Other files get the ordinary analysis. The outcome of an attack that
didn't kill the process is reported as the number of lines: the errno, or the attack's count.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openassent_analysis.sandbox.child import start_analysis
from openassent_analysis.sandbox.seccomp import ARCHITECTURES

_PROCESS, _PARENT = os.getpid(), os.getppid()
_libc = ctypes.CDLL(None, use_errno=True)
_MEBIBYTE = 1024**2
_NUMBERS = ARCHITECTURES[os.uname().machine].numbers


def start(limits: dict[str, Any]) -> Callable[[str, str, bytes], bytes]:
    ordinary = start_analysis(limits)

    def answer(path: str, language: str, content: bytes) -> bytes:
        return _attack(path) if path.startswith("attack/") else ordinary(path, language, content)

    return answer


def start_attacks(_: dict[str, Any]) -> Callable[[str, str, bytes], bytes]:
    """Starts faster, because it knows only attacks."""
    return lambda path, _language, _content: _attack(path)


def _attack(path: str) -> bytes:
    try:
        outcome = ATTACKS[path.removeprefix("attack/").removesuffix(".js")]()
    except OSError as refused:
        outcome = refused.errno
    return outcome if isinstance(outcome, bytes) else json.dumps([outcome, [False] * 3, [], *[[]] * 10, ""]).encode()


def start_nothing(_: dict[str, Any]) -> Callable[[str, str, bytes], bytes]:
    raise RuntimeError("no filter")


def _syscall(number: int, *arguments: int) -> int:
    if _libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return 0


def _environment() -> int:
    held = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    count = 0
    while held[count]:
        count += 1
    return count + len(os.environ)


def _allocate() -> int:
    held = []
    while True:
        held.append(b"x" * _MEBIBYTE)


def _abort_full() -> int:
    """Allocates memory until it runs out, and then aborts, like a parser written in C."""
    held = []
    try:
        while True:
            held.append(b"x" * _MEBIBYTE)
    except MemoryError:
        os.abort()


def _burn() -> int:
    while True:
        pass


def _hang() -> int:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
    return 0


def _executable_memory() -> int:
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
        return 0


def _say(content: bytes) -> Callable[[], int]:
    def attack() -> int:
        os.write(1, content)
        return 0

    return attack


def forged_match(**changes: Any) -> Callable[[], bytes]:
    fields = {
        "rule_id": "tracking-cookie-written", "names": {"vendor": ""}, "vendor_id": None, "package": None,
        "start_line": 1, "end_line": 1, "start_column": 1, "end_column": 2, "snippet": "", "fingerprint": "0" * 32,
        "content": "0" * 32, "ordinal": 0, "shape": "",
        "gating": ["open", [], [], ""], "depends_on_consent_mode": False,
        "started": False, "places": [], "around": [],
    }  # fmt: skip
    content = json.dumps([1, [False] * 3, [list({**fields, **changes}.values())], *[[]] * 10, ""]).encode()
    return lambda: content


def forged_lists(settings: Any = "", **lists: list[Any]) -> Callable[[], bytes]:
    names = ("parts", "loads", "uses", "providers", "own_names", "addresses", "choices", "traits", "setups", "ignores")
    content = json.dumps([1, [False] * 3, [], *(lists.get(name, []) for name in names), settings]).encode()
    return lambda: content


_EMPTY = forged_lists()()

# Rejected with an error that the attack reports. The process continues.
REFUSED: dict[str, Callable[[], Any]] = {
    "read-a-file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "read-the-parent-s-environment": lambda: os.open(f"/proc/{_PARENT}/environ", os.O_RDONLY),
    "read-its-own-environment": lambda: os.open("/proc/self/environ", os.O_RDONLY),
    "write-a-file": lambda: os.open("left-behind", os.O_WRONLY | os.O_CREAT),
    "write-to-the-temporary-folder": lambda: os.open("/tmp/left-behind", os.O_WRONLY | os.O_CREAT),
    "list-a-folder": lambda: next(os.scandir("/")),
    "ignore-the-time-limit": lambda: signal.signal(signal.SIGXCPU, signal.SIG_IGN),
    "sleep": lambda: time.sleep(1),
    "raise-a-limit": lambda: _syscall(_NUMBERS["prlimit64"], 0, resource.RLIMIT_CPU, 0, 0),
    "become-traceable": lambda: _syscall(_NUMBERS["prctl"], 4, 1),
}
# Only an attack makes these calls: the process is killed.
KILLED: dict[str, Callable[[], Any]] = {
    "open-a-socket": socket.socket,
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "fork": os.fork,
    "thread": lambda: threading.Thread(target=print).start(),
    "signal-the-parent": lambda: os.kill(_PARENT, 0),
    "trace-the-parent": lambda: _libc.ptrace(16, _PARENT, 0, 0),
    "read-the-parent-s-memory": lambda: _libc.process_vm_readv(_PARENT, None, 0, None, 0, 0),
    "write-to-the-log": lambda: os.write(2, b"forged"),
    "executable-memory": _executable_memory,
    "queue-calls": lambda: _syscall(425, 1, 0),  # io_uring_setup
    "another-table-of-calls": lambda: _syscall(0x4000_0000 | 2, 0, 0, 0),
    "remove-a-file": lambda: Path("left-behind").unlink(),
    "make-a-pipe": os.pipe,
}
FATAL: dict[str, Callable[[], Any]] = {
    "segmentation-fault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(0),
}
# Answers that aren't reports, after each of which the process is replaced.
CHATTY: dict[str, Callable[[], Any]] = {
    "garbage": lambda: b"\xff\x00garbage",
    "huge-length": _say(b"\xff\xff\xff\xff"),
    "place-that-is-no-list": forged_match(places=[5]),
    "many-places": forged_match(places=[["tag", 1, "<a>", 0, 3, {"tag": [0, 3], "name": [1, 2]}]] * 9),
    "unknown-place": forged_match(places=[["file", 1, "<a>", 0, 3, {}]]),
    "place-without-a-tag": forged_match(places=[["tag", 1, "<a>", 0, 3, {}]]),
    "place-beyond-its-lines": forged_match(places=[["statement", 1, "a()", 0, 4, {}]]),
    "place-at-no-line": forged_match(places=[["statement", 0, "a()", 0, 3, {}]]),
    "long-place": forged_match(places=[["statement", 1, "a" * 10_000, 0, 3, {}]]),
    "long-snippet": forged_match(snippet="x" * 10_000),
    "long-line-around": forged_match(around=["x" * 161]),
    "many-lines-around": forged_match(around=["x"] * 23),
}
# Reports whose rule, vendor, or library only the scan knows to be wrong. The process continues.
UNKNOWN: dict[str, Callable[[], Any]] = {
    "unknown-rule": forged_match(rule_id="no-such-rule"),
    "unknown-vendor": forged_match(vendor_id="no-such-vendor"),
    "unknown-library": forged_match(package="no-such-library"),
    "load-of-an-unknown-vendor": forged_lists(loads=[["no-such-vendor", "a.example"]]),
    "host-that-is-no-host": forged_lists(loads=[["segment", "<script>"]]),
}
FORGED: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "invalid-json": lambda: b"[1, [true, true, true], [",
    "deep-json": lambda: b"[" * 100_000,
    "another-shape": lambda: b'{"lines": 1}',
    "reason-of-its-own": lambda: b'{"skipped": "<script>"}',
    "huge-number": lambda: (
        b"[" + b"9" * 4_000 + b", [true, true, true], [], [], [], [], [], [], [], [], [], [], [], []]"
    ),
    "not-a-number": lambda: b"[NaN, [true, true, true]" + b", []" * 12 + b"]",
    "many-matches": lambda: json.dumps([1, [False] * 3, [[]] * 10_000, *[[]] * 10, ""]).encode(),
    "another-path": forged_match(rule_id=["../../etc/passwd"]),
    "surrogate": forged_match(snippet="\ud800"),
    "long-name": forged_match(names={"vendor": "x" * 10_000}),
    "names-that-are-no-text": forged_match(names={"vendor": {"a": 1}}),
    "negative-line": forged_match(start_line=-1),
    "line-that-is-no-number": forged_match(start_line=True),
    "end-before-the-start": forged_match(start_line=2),
    "column-zero": forged_match(start_column=0),
    "end-at-column-zero": forged_match(end_column=0),
    "many-names": forged_match(names={str(number): "" for number in range(1_000)}),
    "name-with-a-long-key": forged_match(names={"x" * 10_000: ""}),
    "long-vendor": forged_match(vendor_id="x" * 10_000),
    "library-that-is-no-text": forged_match(package=5),
    "consent-mode-that-is-no-boolean": forged_match(depends_on_consent_mode=1),
    "start-that-is-no-boolean": forged_match(started="no"),
    "short-fingerprint": forged_match(fingerprint="0"),
    "fingerprint-that-is-no-digest": forged_match(fingerprint="#" * 32),
    "short-content": forged_match(content="0"),
    "short-shape": forged_match(shape="0"),
    "negative-ordinal": forged_match(ordinal=-1),
    "many-parts": forged_lists(parts=[["framework", "react", "", ""]] * 10_000),
    "long-version": forged_lists(parts=[["framework", "react", "", "1" * 10_000]]),
    "version-that-is-no-text": forged_lists(parts=[["framework", "react", "", 5]]),
    "part-without-a-version": forged_lists(parts=[["framework", "react", ""]]),
    "many-loads": forged_lists(loads=[["segment", "segment.com"]] * 10_000),
    "long-host": forged_lists(loads=[["segment", "a" * 1_000]]),
    "load-without-a-host": forged_lists(loads=[["segment"]]),
    "many-uses": forged_lists(uses=[[["./a", "b"], ["open", [], [], ""]]] * 10_000),
    "uses-of-long-names": forged_lists(uses=[[["./a", "b" * 10_000], ["open", [], [], ""]]]),
    "use-of-a-number": forged_lists(uses=[[["./a", 5], ["open", [], [], ""]]]),
    "use-that-many-provide": forged_lists(uses=[[["./a", "b"], ["open", [], [["./c", "d"]] * 10_000, ""]]]),
    "use-of-nothing": forged_lists(uses=[[["./a"], ["open", [], [], ""]]]),
    "unknown-gate": forged_lists(uses=[[["./a", "b"], ["ajar", [], [], ""]]]),
    "unknown-doubt": forged_lists(uses=[[["./a", "b"], ["open", [], [], "<script>"]]]),
    "many-callers": forged_lists(uses=[[["./a", "b"], ["callers", ["c"] * 10_000, [], ""]]]),
    "caller-that-is-no-text": forged_lists(uses=[[["./a", "b"], ["callers", [5], [], ""]]]),
    "many-providers": forged_lists(providers=[["a", None]] * 10_000),
    "provider-with-a-long-name": forged_lists(providers=[["a" * 10_000, None]]),
    "provider-of-a-number": forged_lists(providers=[["a", 5]]),
    "provider-of-another-shape": forged_lists(providers=[["a"]]),
    "many-own-names": forged_lists(own_names=["a.example"] * 10_000),
    "many-choices": forged_lists(choices=["a"] * 10_000),
    "choice-that-is-no-text": forged_lists(choices=[5]),
    "many-traits": forged_lists(traits=["a"] * 10_000),
    "many-setups": forged_lists(setups=["a"] * 10_000),
    "trait-that-is-no-text": forged_lists(traits=[5]),
    "many-ignores": forged_lists(ignores=[[1, 1, "a", "b"]] * 10_000),
    "ignore-that-ends-before-its-start": forged_lists(ignores=[[2, 1, "a", "b"]]),
    "ignore-for-a-long-reason": forged_lists(ignores=[[1, 1, "a", "b" * 10_000]]),
    "ignore-without-a-reason": forged_lists(ignores=[[1, 1, "a"]]),
    "settings-that-are-no-text": forged_lists(settings=5),
    "long-settings": forged_lists(settings="a" * 1_000_000),
    "long-own-name": forged_lists(own_names=["a" * 1_000]),
    "own-name-that-is-no-text": forged_lists(own_names=[5]),
    "many-addresses": forged_lists(addresses=[["./a", "b", "c"]] * 10_000),
    "long-address": forged_lists(addresses=[["./a", "b", "c" * 10_000]]),
    "address-of-a-number": forged_lists(addresses=[["./a", 5, "c"]]),
}
MEMORY: dict[str, Callable[[], Any]] = {"allocate": _allocate, "abort-full": _abort_full}
COUNTED: dict[str, Callable[[], Any]] = {"environment": _environment}
TIME: dict[str, Callable[[], Any]] = {"burn": _burn, "hang": _hang}
# Tells which of the processes answers.
HARMLESS: dict[str, Callable[[], Any]] = {"say-who": lambda: _PROCESS}
# Answers once more than it was asked.
TALKATIVE: dict[str, Callable[[], Any]] = {
    "answer-twice": _say(len(_EMPTY).to_bytes(4, "big") + _EMPTY),
}
ATTACKS = HARMLESS | TALKATIVE | REFUSED | KILLED | FATAL | CHATTY | UNKNOWN | MEMORY | COUNTED | TIME
