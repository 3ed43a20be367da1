"""Reports phrases that docs/style.md tells us not to write, in code, template, pages, and docs.

The patterns are read from the table in docs/style.md, so that the page and the check can't disagree.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / "docs" / "style.md"
_ROW = re.compile(r"^\| `(?P<pattern>.+?)` \| (?P<instead>.+?) \|$", re.MULTILINE)
_SUFFIXES = {".py", ".md", ".html", ".yaml", ".yml", ".txt", ".toml", ".sh", ""}
# Texts of others, data, descriptions of fields, and the table itself.
_EXCLUDED = re.compile(r"docs/style\.md|(cli/)?LICENSE|tests/data/.*|.*requirements.*\.txt|local/github/demo/.*")


def phrases() -> list[tuple[re.Pattern[str], str]]:
    """Returns the patterns of the table, each with its replacement."""
    rows = _ROW.findall(STYLE.read_text(encoding="utf-8"))
    return [(re.compile(pattern.replace(r"\|", "|")), instead) for pattern, instead in rows]


def findings(name: str, text: str) -> Iterator[str]:
    """Yields a line for each phrase in the text of a file."""
    for pattern, instead in phrases():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: {match[0].strip()!r}: {instead}"


def main() -> int:
    """Prints the findings. Returns 1 if there are any."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)  # nosec B607  # noqa: S607
    names = [name for name in listed.stdout.splitlines() if not _EXCLUDED.fullmatch(name)]
    found = [
        finding
        for name in names
        if (ROOT / name).suffix in _SUFFIXES and (ROOT / name).is_file()
        for finding in findings(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
