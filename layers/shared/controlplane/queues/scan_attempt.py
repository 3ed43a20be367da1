"""Code shared by both scan workers: one attempt under a lease, and the mapping of the code host's errors to failures.

An attempt ends the work or releases it for the next delivery; the last attempt always ends it. If a worker crashes, the
sweep releases the work. So every scan ends, regardless of what fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.core.observability import describe, logger
from controlplane.github import errors as host
from controlplane.queues.worker import LeftToSweep, Postponed, Rejected, is_last_delivery
from controlplane.store import leases
from controlplane.store.leases import Lease
from controlplane.store.scans import Failure

_UNAVAILABLE_SECONDS = 30

_GAVE_UP = Failure("INTERNAL_ERROR", "The scan failed on our side. Start another one.")
_NO_HOST = Failure("CODE_HOST_UNAVAILABLE", "The code host could not be reached. Start another scan later.")
_REFUSALS: dict[type[host.CodeHostError], Failure] = {
    host.RepositoryGone: Failure(
        "REPOSITORY_GONE", "The repository is gone from the code host, or the app may no longer see it."
    ),
    host.AccessLost: Failure("ACCESS_LOST", "The app was removed from the repository. Install it again."),
    host.BranchGone: Failure("BRANCH_GONE", "The production branch does not exist in the repository."),
    host.CommitGone: Failure("COMMIT_GONE", "The commit is gone: its branch was rewritten. Start another scan."),
    host.TarballTooLarge: Failure("ARCHIVE_TOO_LARGE", "The repository is larger than a scan reads."),
    host.InvalidName: Failure("REPOSITORY_GONE", "The code host has no repository or branch of that name."),
    host.Refused: Failure("CODE_HOST_REFUSED", "The code host refused to hand out the repository."),
}


class PermanentFailure(Exception):
    """A permanent failure: a retry would have the same result."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


@contextmanager
def asking_the_code_host() -> Iterator[None]:
    """Converts the code host's errors to PermanentFailure or Postponed, except for errors in our configuration."""
    try:
        yield
    except host.RateLimitedByHost as limited:
        raise Postponed(limited.retry_after_seconds, "rate limited by the code host") from limited
    except host.HostUnavailable as unavailable:
        raise Postponed(_UNAVAILABLE_SECONDS, "code host unavailable") from unavailable
    except host.CodeHostError as refusal:
        failure = _REFUSALS.get(type(refusal))
        if failure is None:
            raise
        raise PermanentFailure(failure) from refusal


def attempt[T](
    acquire: Callable[[], tuple[Lease, T]],
    work: Callable[[Lease, T], None],
    fail: Callable[[Failure, Lease | None], None],
) -> None:
    """Runs one attempt for a delivery. If the work is already finished, this is a success.

    acquire: takes the lease, as `leases.acquire` does. work: does the work and ends it. fail: ends it as failed.
    Raises Postponed, Rejected after the work has ended as failed, LeftToSweep, or the errors of `work`.
    """
    try:
        lease, item = acquire()
    except leases.Finished:
        return
    except leases.Held as held:
        raise _held(held.seconds) from None
    except leases.Exhausted:
        _end(fail, _GAVE_UP, None)
        raise Rejected("no attempt came to an end") from None
    try:
        work(lease, item)
    except leases.LeaseLost:
        logger.warning("lease lost")  # another delivery holds the lease or has ended the work, so don't retry
    except PermanentFailure as hopeless:
        logger.info("given up", extra={"reason": hopeless.failure.code})
        _end(fail, hopeless.failure, lease)
    except Postponed as postponed:
        _give_back(lease, postponed.reason, lambda: _end(fail, _NO_HOST, lease))
        raise
    except Exception as failure:  # any error: the last attempt ends the work, and the worker logs the error
        described = describe(failure)
        reason = f"{described['errorType']} at {(described['stack'] or ['?'])[-1]}"
        _give_back(lease, reason, lambda: _end(fail, _GAVE_UP, lease))
        raise


def _held(seconds: int) -> Exception:
    """Returns the error for a delivery whose work is leased by another one. If that one crashes, the sweep retries."""
    reason = "held by another delivery"
    return LeftToSweep(reason) if is_last_delivery() else Postponed(seconds, reason)


def _give_back(lease: Lease, reason: str, end: Callable[[], None]) -> None:
    """Releases the lease for the message's next delivery. Raises LeftToSweep if the message isn't redelivered.

    If this was the last attempt, calls `end` to end the work and raises Rejected.
    """
    if lease.last:
        end()
        raise Rejected(reason)
    leases.release(lease, redelivered=not is_last_delivery())
    if is_last_delivery():
        raise LeftToSweep(reason)


def _end(fail: Callable[[Failure, Lease | None], None], failure: Failure, lease: Lease | None) -> None:
    try:
        fail(failure, lease)
    except leases.LeaseLost:
        logger.warning("ended by another")
