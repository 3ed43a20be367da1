"""Takes the compiled methods of dataclasses from a file of the build instead of compiling them at each cold start.

A dataclass generates the source of its methods and compiles it, which is a sixth of a cold start: pydantic, FastAPI,
and our own items have about a hundred. The file has the code by the digest of its source. A class that isn't in it, or
that has changed, is compiled as usual; without the file, every class is. So the line of scripts/artifacts.py that has
the file written turns this off.
"""

import builtins
import dataclasses
import hashlib
import importlib.util
import marshal  # nosec B403  # a file of the build, like the bytecode of the modules
import zlib
from pathlib import Path
from types import CodeType
from typing import Any

# Written by scripts.precompile.
FILE = Path(__file__).with_name("dataclass_code.bin")


def digest(source: str) -> bytes:
    return hashlib.blake2b(source.encode(), digest_size=16).digest()


def dump(sources: set[str]) -> bytes:
    """Returns the content of the file for the methods with these sources."""
    codes = {digest(source): zlib.compress(marshal.dumps(_compiled(source)), 9) for source in sorted(sources)}
    return importlib.util.MAGIC_NUMBER + marshal.dumps(codes)


def _compiled(source: str) -> CodeType:
    """Returns the code without positions, which take half of its size and refer to a source that isn't stored."""

    def without_positions(code: CodeType) -> CodeType:
        constants = (without_positions(it) if isinstance(it, CodeType) else it for it in code.co_consts)
        return code.replace(co_linetable=b"", co_consts=tuple(constants))

    return without_positions(compile(source, "<string>", "exec"))


def install(file: Path = FILE) -> None:
    """Lets dataclasses take their methods from the file, if it exists and is this Python's."""
    content, magic = file.read_bytes() if file.is_file() else b"", importlib.util.MAGIC_NUMBER
    if not content.startswith(magic):
        return
    codes: dict[bytes, bytes] = marshal.loads(content[len(magic) :])  # nosec B302  # noqa: S302

    def execute(source: str, *namespaces: Any) -> None:
        # A function has only some of the classes, so only their code is unpacked.
        code = codes.get(digest(source))
        builtins.exec(marshal.loads(zlib.decompress(code)) if code else source, *namespaces)  # nosec B102 B302  # noqa: S102, S302

    # Shadows the builtin function in that module.
    dataclasses.exec = execute  # type: ignore[attr-defined]
