"""Facts about a git working tree. Every function raises Problem if git isn't installed or refuses.

Git runs filters that the scanned repository configures whenever it compares or writes files. So another repository,
which shares only the objects, does both.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from openassent_cli.problems import Exit, Problem

# How git writes the ends of lines, and where the repository is from.
_KEPT = ("core.autocrlf", "core.eol", "remote.origin.url")
_SHA256_LETTERS = 64
_IF_PARTIAL = "If this is a partial clone, clone it without --filter: missing files aren't fetched."


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
    from openassent_analysis.git import list_files  # noqa: PLC0415 (the package takes long to import)

    top = root(folder)
    with _repository_at(folder, _left(folder, reference)) as base:
        in_base = (f"--git-dir={base / '.git'}", f"--work-tree={top}")
        same = set(_git(folder, *in_base, "ls-files", "-z").split("\0"))
        # `diff` would look into submodules, with their configuration.
        compared = ("diff", "--name-only", "-z", "--relative", "--ignore-submodules", "--", ".")
        same -= set(_git(folder, *in_base, *compared, advice=_IF_PARTIAL).split("\0"))
    return frozenset(list_files(folder) or ()) - same


def remote_name(folder: Path) -> str | None:
    """Returns `owner/name` of the remote `origin`, or None if it doesn't exist."""
    from openassent_analysis.git import repository_of  # noqa: PLC0415 (the package takes long to import)

    return repository_of(folder) or None


def _git(folder: Path, *arguments: str, advice: str | None = None) -> str:
    from openassent_analysis.git import run  # noqa: PLC0415 (the package takes long to import)

    result = run(folder, *arguments)
    if result is None:
        raise Problem("git isn't installed.", code=Exit.USAGE)
    if result.returncode:
        message = result.stderr.strip().splitlines()
        raise Problem(message[-1] if message else "git failed.", advice, Exit.USAGE)
    return result.stdout


def _left(folder: Path, reference: str) -> str:
    """Returns the commit at which this branch left the reference."""
    if reference.startswith("-") or not has(folder, reference):
        raise Problem(f"There is no commit or branch {reference}.", "Fetch it, or give another one.", Exit.USAGE)
    return _git(folder, "merge-base", "HEAD", reference).strip()


@contextlib.contextmanager
def checked_out(folder: Path, reference: str) -> Iterator[Path]:
    """Yields a temporary working tree of the commit where this branch left the reference. Files aren't filtered."""
    with _repository_at(folder, _left(folder, reference)) as tree:
        _git(tree, "checkout-index", "--all", advice=_IF_PARTIAL)
        yield tree


@contextlib.contextmanager
def _repository_at(folder: Path, commit: str) -> Iterator[Path]:
    """Yields a temporary repository without files, whose index is the commit.

    It has the objects of the folder's repository, and of its configuration only values that name no program.
    """
    objects = folder / _git(folder, "rev-parse", "--git-path", "objects").removesuffix("\n")
    with tempfile.TemporaryDirectory(prefix="assent-") as temporary:
        tree = Path(temporary) / "tree"
        formats = ["--object-format=sha256"] if len(commit) == _SHA256_LETTERS else []
        _git(Path(temporary), "init", "--quiet", "--template=", *formats, str(tree))
        for name in _KEPT:
            if values := _git(folder, "config", "--default=", "--get", name).splitlines():
                _git(tree, "config", name, values[0])
        (tree / ".git" / "objects" / "info" / "alternates").write_text(f"{objects.resolve()}\n")
        # Comes before every .gitattributes.
        (tree / ".git" / "info").mkdir(exist_ok=True)
        (tree / ".git" / "info" / "attributes").write_text("* -filter\n")
        _git(tree, "read-tree", commit)
        yield tree


def has(folder: Path, reference: str) -> bool:
    """Returns whether the reference names a commit."""
    try:
        _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except Problem:
        return False
    return True


def is_tip(folder: Path, wanted: str, branch: str) -> bool:
    """Returns whether the commit is the newest of the remote's branch that this clone has fetched."""
    return has(folder, f"origin/{branch}") and _git(folder, "rev-parse", f"origin/{branch}").strip() == wanted
