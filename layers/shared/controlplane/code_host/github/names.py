"""Checks names before they become part of a URL."""

import re
from urllib.parse import quote

from controlplane.code_host.github.errors import InvalidName
from controlplane.platform.core.naming import is_branch

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def repository_names(owner: str, name: str) -> dict[str, str]:
    """Returns the names as parts of a path. Raises InvalidName."""
    if not _OWNER.fullmatch(owner):
        raise InvalidName("owner")
    if not _NAME.fullmatch(name):
        raise InvalidName("repository")
    return {"owner": owner, "repo": name}


def is_commit(sha: str) -> bool:
    """Tells whether it is a whole SHA-1 or SHA-256 in hexadecimal."""
    return _COMMIT.fullmatch(sha) is not None


def checked_commit(sha: str) -> str:
    """Returns the commit's SHA. Raises InvalidName."""
    if not is_commit(sha):
        raise InvalidName("commit")
    return sha


def checked_branch(branch: str) -> str:
    """Returns the branch quoted as one path segment. Raises InvalidName."""
    if not is_branch(branch):
        raise InvalidName("branch")
    try:
        return quote(branch, safe="")
    except UnicodeEncodeError as failure:
        raise InvalidName("branch") from failure
