"""Errors of the code host: one class per outcome that callers handle differently.

Every class except `OutcomeUnknown` is definite: if a write raises it, nothing was written.
"""

from typing import Any


class CodeHostError(Exception):
    """The base class of code host errors. `context` is for the log: it contains no name, token, or body."""

    def __init__(self, **context: Any) -> None:
        super().__init__(type(self).__name__)
        self.context = {name: value for name, value in context.items() if value is not None}


class RepositoryGone(CodeHostError):
    """The repository doesn't exist or isn't visible to the installation: GitHub answers both the same way."""


class BranchGone(CodeHostError):
    """The repository exists, but the branch doesn't."""


class IssueGone(CodeHostError):
    """The repository exists, but the issue doesn't."""


class CommitGone(CodeHostError):
    """The repository exists, but the commit doesn't: its branch was rewritten."""


class AccessLost(CodeHostError):
    """The installation was removed or suspended, or doesn't grant the required permission."""


class Refused(CodeHostError):
    """The code host returned a status that no other class covers, and a retry won't help.

    For an issue, 410 means that the repository has issues disabled, and 422 that the text was rejected.
    """

    def __init__(self, status: int, **context: Any) -> None:
        super().__init__(status=status, **context)
        self.status = status


class RateLimitedByHost(CodeHostError):
    """The primary or a secondary rate limit was exceeded. Nothing was done; retry after `retry_after_seconds`."""

    def __init__(self, retry_after_seconds: int, **context: Any) -> None:
        super().__init__(retryAfterSeconds=retry_after_seconds, **context)
        self.retry_after_seconds = retry_after_seconds


class HostUnavailable(CodeHostError):
    """No usable response arrived in time. Retry later."""


class OutcomeUnknown(HostUnavailable):
    """A write was sent without a usable response, so it may have been applied. Check before you retry it."""


class TarballTooLarge(CodeHostError):
    """The archive is larger than the caller's limit, `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limitBytes=limit_bytes)
        self.limit_bytes = limit_bytes


class InvalidName(CodeHostError):
    """The name of the owner, repository, branch, or commit is invalid. No request was sent."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind=kind)


class InstallationGone(CodeHostError):
    """The App has no such installation, or it was suspended or removed."""


class CodeRejected(CodeHostError):
    """The code that was to identify a person is unknown, used, or expired, or is another App's."""


class AppNotConfigured(CodeHostError):
    """The App's id, or the location of its private key or of its client secret, isn't set."""


class AppKeyUnreadable(CodeHostError):
    """The App's private key or client secret can't be fetched, or the key isn't an RSA key in PEM format."""
