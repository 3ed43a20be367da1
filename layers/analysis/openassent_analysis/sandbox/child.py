"""The program of the sandboxed process: reads one file at a time from stdin and writes a report on each to stdout.

It starts with an empty environment and its own import path, sets its limits, loads everything that the analysis needs,
closes the sandbox, and only then reads tenant input. Its one argument is a `Configuration` as JSON. A request consists
of three lengths (path, language, content) followed by the three values; an answer is a length and that many bytes.
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
    # module:function. Given the limits, it loads everything it needs and returns (path, language, content) -> bytes.
    entry: str
    limits: dict[str, Any]
    cpu_seconds: int
    memory_bytes: int


def _limit(configuration: Configuration) -> None:
    """Sets this process's resource limits. The parent raises the CPU time limit with each file."""
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
        try:
            resource.setrlimit(what, (soft, hard))
        except (OSError, ValueError):
            # macOS rejects limits of the address space below what every process has. It has no sandbox to close either.
            if sys.platform == "linux":
                raise


def _confine() -> None:
    from openassent_analysis.sandbox import seccomp  # noqa: PLC0415 - the import path is set only now

    # The process can't open any descriptor beyond the three standard ones.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    if sys.platform == "linux":
        seccomp.confine()


def _read(count: int) -> bytes:
    """Returns `count` bytes, or fewer if the parent has exited."""
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
        except BaseException:  # noqa: BLE001 (a parser's panic isn't an Exception; any failure concerns only this file)
            answer = b'{"skipped":"failed"}'
        _write(answer)


def start_analysis(limits: dict[str, Any]) -> Callable[[str, str, bytes], bytes]:
    """Loads the analysis and returns its function for one file. The default entry."""
    from openassent_analysis.examine import examine, load  # noqa: PLC0415
    from openassent_analysis.files import Skipped  # noqa: PLC0415
    from openassent_analysis.limits import Limits  # noqa: PLC0415
    from openassent_analysis.report import write_report  # noqa: PLC0415

    bounds = Limits(**limits)

    def answer(path: str, language: str, content: bytes) -> bytes:
        try:
            return write_report(examine(path, language, content, bounds))
        except Skipped as skipped:
            return write_report(skipped)

    load()
    return answer


def main() -> None:
    # Modules and rules are never garbage, so nothing is collected while they load.
    gc.disable()
    os.environ.clear()
    configuration: Configuration = json.loads(sys.argv[1])
    sys.path[:] = [*sys.path, *configuration["import_path"]]
    try:
        _limit(configuration)
        module, _, name = configuration["entry"].partition(":")
        examine = getattr(importlib.import_module(module), name)(configuration["limits"])
        # Excludes them from later collections, too.
        gc.freeze()
        gc.enable()
        _confine()
    except Exception as failure:  # noqa: BLE001 (no tenant input was read yet, so the message is safe to send)
        _write(f"{type(failure).__name__}: {failure}".encode()[:1_000])
        return
    _write(b"ready")
    _serve(examine)


if __name__ == "__main__":
    main()
