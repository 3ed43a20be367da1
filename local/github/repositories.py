"""Bare git repositories at <root>/<owner>/<name>.git, read with the git program."""

import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_CHUNK_BYTES = 64 * 1024
# The configuration, hooks, and credentials of the machine's user are ignored.
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}
_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (
        ("NAME", "Demo Shop"),
        ("EMAIL", "developers@demo-shop.example"),
        ("DATE", "2026-01-05T09:00:00Z"),
    )
}


class GitFailed(Exception):
    """git isn't installed, or failed."""


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    message: str


@dataclass(frozen=True, slots=True)
class GitRepository:
    """One repository. `created_at` is when its folder was created."""

    owner: str
    name: str
    path: Path

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def repository_id(self) -> int:
        return stable_id(self.full_name)

    @property
    def created_seconds(self) -> float:
        return self.path.stat().st_mtime

    def default_branch(self) -> str:
        return self._git("symbolic-ref", "--short", "HEAD").strip()

    def find_commit(self, revision: str) -> Commit | None:
        """Returns the commit of a full ref name or a SHA."""
        try:
            text = self._git("log", "-1", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%B", revision, "--")
        except GitFailed:
            return None
        sha, tree, parents, author, email, date, message = text.rstrip("\n").split("\0")
        moment = datetime.fromisoformat(date).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Commit(sha, tree, tuple(parents.split()), author, email, moment, message.strip())

    def find_file(self, sha: str, path: str) -> bytes | None:
        """Returns the content of a file at a commit."""
        try:
            return _run(["--git-dir", str(self.path), "cat-file", "blob", f"{sha}:{path}"])
        except GitFailed:
            return None

    def commit_files(self, ref: str, files: Mapping[str, str], message: str, start: str | None = None) -> str:
        """Adds a commit to the ref, with these files changed. start: where a new ref begins. Returns the SHA."""
        git_dir = ["--git-dir", str(self.path)]
        head = self.find_commit(ref) or (self.find_commit(start) if start else None)
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            if head is not None:
                _run([*git_dir, "read-tree", head.sha], variables=index)
            for path, content in files.items():
                blob = _run([*git_dir, "hash-object", "-w", "--stdin"], content=content.encode()).decode().strip()
                _run([*git_dir, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"], variables=index)
            tree = _run([*git_dir, "write-tree"], variables=index).decode().strip()
        parents = ["-p", head.sha] if head else []
        sha = _run([*git_dir, "commit-tree", tree, *parents, "-m", message]).decode().strip()
        _run([*git_dir, "update-ref", ref, sha])
        return sha

    def archive(self, sha: str) -> Iterator[bytes]:
        """Returns a gzipped tar of the commit, in one folder, named as on GitHub."""
        prefix = f"--prefix={self.owner}-{self.name}-{sha[:7]}/"
        command = [*_git(), "--git-dir", str(self.path), "archive", "--format=tar.gz", prefix, sha]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=_ENVIRONMENT) as process:
            if process.stdout is None:
                raise GitFailed("archive")
            try:
                while chunk := process.stdout.read(_CHUNK_BYTES):
                    yield chunk
            finally:
                process.kill()

    def _git(self, *arguments: str) -> str:
        return _run(["--git-dir", str(self.path), *arguments]).decode(errors="replace")


class Repositories:
    """Every repository below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, owner: str, name: str) -> GitRepository | None:
        path = self._root / owner / f"{name}.git"
        is_inside = path.parent.parent == self._root and "/" not in owner + name and owner not in {".", ".."}
        return GitRepository(owner, name, path) if is_inside and path.is_dir() else None

    def list(self) -> list[GitRepository]:
        paths = sorted(self._root.glob("*/*.git"))
        return [GitRepository(path.parent.name, path.stem, path) for path in paths]

    def create(self, owner: str, name: str, source: Path, branch: str = "main") -> GitRepository:
        """Creates a repository with one commit of the files below `source`. The same files give the same commit."""
        path = self._root / owner / f"{name}.git"
        unfinished = path.with_suffix(".unfinished")  # so that a repository is there whole or not at all
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        _run(["init", "--quiet", "--bare", f"--initial-branch={branch}", str(unfinished)])
        _commit(GitRepository(owner, name, unfinished), source, "Open the shop", branch)
        unfinished.replace(path)
        return GitRepository(owner, name, path)

    def commit(self, owner: str, name: str, source: Path, message: str, branch: str = "main") -> str:
        """Adds a commit to the branch with exactly the files below `source`. Returns its SHA."""
        return _commit(GitRepository(owner, name, self._root / owner / f"{name}.git"), source, message, branch)


def _commit(repository: GitRepository, source: Path, message: str, branch: str) -> str:
    git_dir = ["--git-dir", str(repository.path)]
    _run([*git_dir, "--work-tree", str(source), "add", "--all", "--force", "."], source)
    tree = _run([*git_dir, "write-tree"]).decode().strip()
    head = repository.find_commit(f"refs/heads/{branch}")
    parents = ["-p", head.sha] if head else []
    sha = _run([*git_dir, "commit-tree", tree, *parents, "-m", message]).decode().strip()
    _run([*git_dir, "update-ref", f"refs/heads/{branch}", sha])
    return sha


def stable_id(name: str) -> int:
    """Returns a number that depends only on the name."""
    return zlib.crc32(name.encode()) & 0x7FFFFFFF or 1


def _git() -> list[str]:
    # A checkout may belong to another user than the one who runs it.
    return ["git", "-c", "safe.directory=*", "-c", "core.autocrlf=false"]


def _run(
    arguments: list[str],
    directory: Path | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    content: bytes = b"",
) -> bytes:
    command, environment = [*_git(), *arguments], _ENVIRONMENT | _AUTHOR | dict(variables or {})
    try:
        result = subprocess.run(command, cwd=directory, env=environment, input=content, capture_output=True, check=True)
    except FileNotFoundError as failure:
        raise GitFailed("git is not installed") from failure
    except subprocess.CalledProcessError as failure:
        raise GitFailed(failure.stderr.decode(errors="replace").strip()) from failure
    return result.stdout
