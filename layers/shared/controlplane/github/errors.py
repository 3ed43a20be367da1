"""What can come of asking the code host: one class per outcome that a caller would treat differently.

Every class but `OutcomeUnknown` is definite: when it was raised by a write, nothing was written.
"""

from typing import Any


class CodeHostError(Exception):
    """The code host did not do what it was asked. `context` is for the log: it holds no name, token or body."""

    def __init__(self, **context: Any) -> None:
        super().__init__(type(self).__name__)
        self.context = {name: value for name, value in context.items() if value is not None}


class RepositoryGone(CodeHostError):
    """There is no such repository, or the installation does not see it: GitHub says the same of both."""


class BranchGone(CodeHostError):
    """The repository is there and has no such branch."""


class CommitGone(CodeHostError):
    """The repository is there and the commit is not: its branch was rewritten."""


class AccessLost(CodeHostError):
    """The installation was removed or suspended, or it does not grant the permission that this takes."""


class Refused(CodeHostError):
    """The code host answered with a status that no other class stands for, and repeating the request changes nothing.

    For an issue, 410 means that the repository has issues turned off, and 422 that the text was not acceptable.
    """

    def __init__(self, status: int, **context: Any) -> None:
        super().__init__(status=status, **context)
        self.status = status


class RateLimitedByHost(CodeHostError):
    """Too many requests, by the primary or a secondary limit. Nothing was done; ask again after that many seconds."""

    def __init__(self, retry_after_seconds: int, **context: Any) -> None:
        super().__init__(retryAfterSeconds=retry_after_seconds, **context)
        self.retry_after_seconds = retry_after_seconds


class HostUnavailable(CodeHostError):
    """No usable answer in time. It is worth asking again later."""


class OutcomeUnknown(HostUnavailable):
    """A write was sent and its answer is missing or no answer: it may have been done. Never send it again unlooked."""


class TarballTooLarge(CodeHostError):
    """The archive is larger than the caller takes. `limit_bytes` says what that is."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limitBytes=limit_bytes)
        self.limit_bytes = limit_bytes


class InvalidName(CodeHostError):
    """No code host has an owner, repository, branch or commit of such a name. It was not asked."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind=kind)


class AppNotConfigured(CodeHostError):
    """The App's id or the place of its private key is not set."""


class AppKeyUnreadable(CodeHostError):
    """The App's private key cannot be fetched, or is no RSA key in PEM form."""
