"""The files and commands in the guides of /docs, for tests that try them word by word."""

import re
from pathlib import Path

from local.checkout import ROOT

_FENCED = re.compile(r"^( *)```(\w+)(?: (\S+))?\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def text_of(guide: str) -> str:
    (path,) = ROOT.glob(f"docs/**/{guide}.md")
    return path.read_text(encoding="utf-8")


def files_of(guide: str) -> dict[str, str]:
    """Returns the guide's code by the name of the file, which follows the language."""
    return {name: code for _, _, name, code in _FENCED.findall(text_of(guide)) if name}


def commands_of(guide: str) -> list[str]:
    """Returns the lines of the guide's shell commands."""
    found = [code for _, language, _, code in _FENCED.findall(text_of(guide)) if language == "sh"]
    return [line.strip() for code in found for line in code.splitlines()]


def write(files: dict[str, str], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
