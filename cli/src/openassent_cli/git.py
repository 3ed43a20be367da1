"""Facts about a git working tree. Every function raises Problem if git isn't installed or refuses."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from openassent_cli.exits import Exit
from openassent_cli.problems import Problem


def root(folder: Path) -> Path | None:
    """Returns the top folder of the working tree, or None outside of one."""
    try:
        return Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    except Problem:
        return None


def commit(folder: Path, *, of_merge: bool = False) -> str:
    """Returns the ID of the commit that is checked out.

    of_merge: of a merge, which pipelines check out for a merge request, returns the commit that was merged.
    """
    return _git(folder, "rev-parse", "HEAD^2" if of_merge and has(folder, "HEAD^2") else "HEAD").strip()


def changed_since(folder: Path, reference: str) -> frozenset[str]:
    """Returns the files, relative to the folder, that differ from their state where this branch left the reference.

    Includes changes that aren't committed, and new files that aren't ignored.
    """
    base = _left(folder, reference)
    differing = _git(folder, "diff", "--name-only", "-z", "--relative", "--diff-filter=d", base, "--")
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(it for it in (differing + new).split("\0") if it)


def remote_name(folder: Path) -> str | None:
    """Returns `owner/name` of the remote `origin`, or None if it doesn't exist."""
    from openassent_analysis.git import repository_of  # noqa: PLC0415 (the package takes long to import)

    return repository_of(folder) or None


def _git(folder: Path, *arguments: str) -> str:
    from openassent_analysis.git import run  # noqa: PLC0415 (the package takes long to import)

    result = run(folder, *arguments)
    if result is None:
        raise Problem("git isn't installed.", code=Exit.USAGE)
    if result.returncode:
        message = result.stderr.strip().splitlines()
        raise Problem(message[-1] if message else "git failed.", code=Exit.USAGE)
    return result.stdout


def _left(folder: Path, reference: str) -> str:
    """Returns the commit at which this branch left the reference."""
    if reference.startswith("-"):
        raise Problem(f"{reference} isn't a commit.", code=Exit.USAGE)
    return _git(folder, "merge-base", "HEAD", reference).strip()


@contextlib.contextmanager
def checked_out(folder: Path, reference: str) -> Iterator[Path]:
    """Yields a temporary working tree of the commit where this branch left the reference."""
    base = _left(folder, reference)
    with tempfile.TemporaryDirectory(prefix="assent-") as temporary:
        tree = Path(temporary) / "tree"
        _git(folder, "worktree", "add", "--detach", "--quiet", str(tree), base)
        try:
            yield tree
        finally:
            _git(folder, "worktree", "remove", "--force", str(tree))


def has(folder: Path, reference: str) -> bool:
    """Returns whether the reference names a commit."""
    try:
        _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except Problem:
        return False
    return True


def is_tip(folder: Path, wanted: str, branch: str) -> bool:
    """Returns whether the commit is the newest of the remote's branch, as far as this clone knows."""
    return has(folder, f"origin/{branch}") and _git(folder, "rev-parse", f"origin/{branch}").strip() == wanted
