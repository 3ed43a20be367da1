"""Bare git repositories at <root>/<owner>/<name>.git, read with the git program."""

import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_CHUNK_BYTES = 64 * 1024
# The configuration, hooks, and credentials of the machine's user are ignored.
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}
_STATUSES = {"A": "added", "D": "removed", "M": "modified"}
_PERSON = "Demo Shop <developers@demo-shop.example> 1767603600 +0000"


class GitFailed(Exception):
    """git isn't installed, or failed."""


class Commit(NamedTuple):
    sha: str
    parents: tuple[str, ...]


class Change(NamedTuple):
    """A file that differs between two commits. status: as GitHub names it. patch: its hunks."""

    path: str
    status: str
    patch: str


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
            sha, *parents = self._git("rev-list", "--parents", "-1", "--end-of-options", revision, "--").split()
        except GitFailed:
            return None
        return Commit(sha, tuple(parents))

    def find_file(self, sha: str, path: str) -> bytes | None:
        """Returns the content of a file at a commit."""
        try:
            return _run(["--git-dir", str(self.path), "cat-file", "blob", f"{sha}:{path}"])
        except GitFailed:
            return None

    def changes(self, base: str, head: str) -> list[Change]:
        """Returns the files that the head changes since it left the base, in the order of their paths."""
        listed = self._git("diff", "--name-status", "--no-renames", "-z", f"{base}...{head}").split("\0")
        found = []
        for status, path in zip(listed[::2], listed[1::2], strict=False):
            patch = self._git("diff", "--no-renames", f"{base}...{head}", "--", f":(top,literal){path}")
            _, at, hunks = patch.partition("\n@@")
            found.append(Change(path, _STATUSES.get(status, "changed"), f"{at}{hunks}".strip("\n")))
        return found

    def commit_files(self, ref: str, files: Mapping[str, str], message: str, start: str | None = None) -> str:
        """Adds a commit to the ref, with these files changed. start: where a new ref begins. Returns the SHA."""
        contents = {path: content.encode() for path, content in files.items()}
        return self.commit(ref, contents, message, start=start)

    def commit(
        self, ref: str, files: Mapping[str, bytes], message: str, *, start: str | None = None, replaces: bool = False
    ) -> str:
        """Adds a commit to the ref, with these files. replaces: without any others. Returns the SHA."""
        former = next((it for it in (ref, start) if it and self.find_commit(it)), None)
        lines = [f"commit {ref}\n".encode(), *(f"{role} {_PERSON}\n".encode() for role in ("author", "committer"))]
        lines += [_data(message.encode()), *([f"from {former}^0\n".encode()] if former else [])]
        lines += [b"deleteall\n"] if replaces else []
        lines += [f"M 100644 inline {path}\n".encode() + _data(content) for path, content in sorted(files.items())]
        _run(["--git-dir", str(self.path), "fast-import", "--quiet", "--force"], b"".join(lines))
        return self._git("rev-parse", ref).strip()

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
        GitRepository(owner, name, unfinished).commit(f"refs/heads/{branch}", _read(source), "Open the shop")
        unfinished.replace(path)
        return GitRepository(owner, name, path)

    def commit(self, owner: str, name: str, source: Path, message: str, branch: str = "main") -> str:
        """Adds a commit to the branch with exactly the files below `source`. Returns its SHA."""
        repository = GitRepository(owner, name, self._root / owner / f"{name}.git")
        return repository.commit(f"refs/heads/{branch}", _read(source), message, replaces=True)


def _read(source: Path) -> dict[str, bytes]:
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in source.rglob("*") if path.is_file()}


def _data(content: bytes) -> bytes:
    """Returns the content as `git fast-import` reads it."""
    return b"data %d\n%b\n" % (len(content), content)


def stable_id(name: str) -> int:
    """Returns a number that depends only on the name."""
    return zlib.crc32(name.encode()) & 0x7FFFFFFF or 1


def _git() -> list[str]:
    # A checkout may belong to another user than the one who runs it.
    return ["git", "-c", "safe.directory=*", "-c", "core.autocrlf=false"]


def _run(arguments: list[str], content: bytes = b"") -> bytes:
    try:
        result = subprocess.run([*_git(), *arguments], env=_ENVIRONMENT, input=content, capture_output=True, check=True)
    except FileNotFoundError as failure:
        raise GitFailed("git is not installed") from failure
    except subprocess.CalledProcessError as failure:
        raise GitFailed(failure.stderr.decode(errors="replace").strip()) from failure
    return result.stdout
