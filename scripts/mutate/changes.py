"""Finds the lines of the product that a change touches, by git.

The change is everything since the base: the branch point from `main`, or in a clone that has no `main` or is on it, the
commit before the last one (for a merge, the one that it was merged into). Files that aren't committed count, too. The
first commit of all is compared with nothing, so that all of its lines are new.
"""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

PRODUCT = ("functions", "layers")
TESTS = ("tests",)
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name of a tree without files
_FILE = re.compile(r"^\+\+\+ b/(.*)$")
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class NoHistory(Exception):
    """This isn't a git repository, or has no such revision."""


def find_base(root: Path, wanted: str | None = None) -> str:
    """Returns the commit to compare with. Raises NoHistory."""
    head = _git(root, "rev-parse", "HEAD").strip()
    if wanted:
        return _git(root, "merge-base", wanted, "HEAD").strip()
    for main in ("main", "origin/main"):
        try:
            base = _git(root, "merge-base", main, "HEAD").strip()
        except NoHistory:
            continue
        if base != head:
            return base
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", "HEAD^1").strip()
    except NoHistory:
        return _EMPTY


def changed_lines(root: Path, base: str) -> dict[str, set[int]]:
    """Returns the numbers of the new and changed lines of each module of the product."""
    changed: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in _git(root, "diff", "--unified=0", "--no-color", base, "--", *PRODUCT).splitlines():
        if match := _FILE.match(line):
            path = match[1]
        elif (match := _HUNK.match(line)) and path.endswith(".py"):
            first, count = int(match[1]), int(match[2] or 1)
            changed[path].update(range(first, first + count))
    for path in _new_files(root, *PRODUCT):
        changed[path].update(range(1, len((root / path).read_text().splitlines()) + 1))
    return {path: lines for path, lines in sorted(changed.items()) if lines}


def changed_tests(root: Path, base: str) -> list[str]:
    """Returns the test files that are new or changed."""
    listed = _git(root, "diff", "--name-only", "--diff-filter=d", base, "--", *TESTS).splitlines()
    found = {*listed, *_new_files(root, *TESTS)}
    return sorted(path for path in found if Path(path).name.startswith("test_") and path.endswith(".py"))


def _new_files(root: Path, *folders: str) -> list[str]:
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "--", *folders).splitlines()
    return [path for path in listed if path.endswith(".py")]


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)  # nosec B607  # noqa: S603, S607
    if done.returncode:
        raise NoHistory(done.stderr.strip() or " ".join(arguments))
    return done.stdout
