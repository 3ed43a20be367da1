"""What the sandboxed process runs: reads one file at a time from its input, and writes a report of each to its output.

It starts without an environment and with an import path of its own, limits itself, loads everything that the analysis
needs, closes the sandbox, and only then looks at the first byte that a tenant wrote. It is run as a program; its one
argument is a `Configuration` as JSON. A request is three lengths (path, language, content) and the three; an answer is
a length and that many bytes.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any, TypedDict

_REQUEST = struct.Struct(">III")
_ANSWER = struct.Struct(">I")
_NO_LIMIT = resource.RLIM_INFINITY


class Configuration(TypedDict):
    import_path: list[str]
    # module:function. Called with the limits, it loads all it will need and returns (path, language, content) -> bytes.
    entry: str
    limits: dict[str, Any]
    cpu_seconds: int
    memory_bytes: int


def _limit(configuration: Configuration) -> None:
    """Everything that a process may be refused. The parent raises the processor time with each file."""
    cpu = configuration["cpu_seconds"]
    for what, soft, hard in (
        (resource.RLIMIT_CPU, cpu, _NO_LIMIT),
        (resource.RLIMIT_AS, configuration["memory_bytes"], configuration["memory_bytes"]),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
    ):
        most = resource.getrlimit(what)[1]
        if most != _NO_LIMIT and (hard == _NO_LIMIT or hard > most):
            soft, hard = soft if soft != _NO_LIMIT and soft <= most else most, most  # noqa: PLW2901
        resource.setrlimit(what, (soft, hard))


def _confine() -> None:
    from scan_execution.sandbox import seccomp  # noqa: PLC0415 - the import path is set only now

    # No descriptor can be opened beyond the three.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    if sys.platform == "linux":
        seccomp.confine()


def _read(count: int) -> bytes:
    """That many bytes, or fewer if the parent is gone."""
    pieces = []
    while count:
        piece = os.read(0, count)
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _write(answer: bytes) -> None:
    unsent = memoryview(_ANSWER.pack(len(answer)) + answer)
    while unsent:
        unsent = unsent[os.write(1, unsent) :]


def _serve(examine: Callable[[str, str, bytes], bytes]) -> None:
    while len(lengths := _read(_REQUEST.size)) == _REQUEST.size:
        path, language, content = (_read(length) for length in _REQUEST.unpack(lengths))
        try:
            answer = examine(path.decode(errors="replace"), language.decode(), content)
        except MemoryError:
            answer = b'{"skipped":"needed too much memory"}'
        except BaseException:  # noqa: BLE001 (a parser's panic is no Exception; whatever it is, it is about this file)
            answer = b'{"skipped":"failed"}'
        _write(answer)


def start_analysis(limits: dict[str, Any]) -> Callable[[str, str, bytes], bytes]:
    """The entry of ordinary scans."""
    from scan_execution.analysis.examine import examine, warm_up  # noqa: PLC0415
    from scan_execution.analysis.files import Skipped  # noqa: PLC0415
    from scan_execution.analysis.limits import Limits  # noqa: PLC0415
    from scan_execution.analysis.report import write_report  # noqa: PLC0415

    bounds = Limits(**limits)

    def answer(path: str, language: str, content: bytes) -> bytes:
        try:
            return write_report(examine(path, language, content, bounds))
        except Skipped as skipped:
            return write_report(skipped)

    warm_up(Limits())
    return answer


def main() -> None:
    os.environ.clear()
    configuration: Configuration = json.loads(sys.argv[1])
    sys.path[:] = [*sys.path, *configuration["import_path"]]
    try:
        _limit(configuration)
        module, _, name = configuration["entry"].partition(":")
        examine = getattr(importlib.import_module(module), name)(configuration["limits"])
        # What exists now is never garbage.
        gc.collect()
        gc.freeze()
        _confine()
    except Exception as failure:  # noqa: BLE001 (no tenant's byte was read: the parent can be told what it is)
        _write(f"{type(failure).__name__}: {failure}".encode()[:1_000])
        return
    _write(b"ready")
    _serve(examine)


if __name__ == "__main__":
    main()
