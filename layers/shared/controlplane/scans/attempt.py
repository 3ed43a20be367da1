"""Code shared by both scan workers: one attempt under a lease, and the mapping of the code host's errors to failures.

An attempt ends the work or releases it for the next delivery; the last attempt always ends it. If a worker crashes, the
sweep releases the work. So every scan ends, regardless of what fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.code_host.github import errors as host
from controlplane.code_host.requests import retried_later
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.queues.worker import Delayed, LeftToSweep, Postponed, Rejected, is_last_delivery
from controlplane.platform.table import leases
from controlplane.platform.table.leases import Lease
from controlplane.scans.failures import ACCESS_LOST, CODE_HOST_UNAVAILABLE, fail_attempted
from controlplane.scans.items import Failure, WorkId

_UNAVAILABLE_SECONDS = 30

_INTERNAL_ERROR = Failure("INTERNAL_ERROR", "The scan failed on our side. Start another one.")
_HOST_UNAVAILABLE = Failure(CODE_HOST_UNAVAILABLE, "The code host could not be reached. Start another scan later.")
_HOST_FAILURES: dict[type[host.CodeHostError], Failure] = {
    host.RepositoryGone: Failure(
        "REPOSITORY_GONE", "The repository is gone from the code host, or the app may no longer see it."
    ),
    host.AccessLost: Failure(ACCESS_LOST, "The app was removed from the repository. Install it again."),
    host.BranchGone: Failure("BRANCH_GONE", "The production branch does not exist in the repository."),
    host.CommitGone: Failure("COMMIT_GONE", "The commit is gone: its branch was rewritten. Start another scan."),
    host.InvalidName: Failure("REPOSITORY_GONE", "The code host has no repository or branch of that name."),
    host.Refused: Failure("CODE_HOST_REFUSED", "The code host refused to hand out the repository."),
}


class PermanentFailure(Exception):
    """A permanent failure: a retry would have the same result."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def run_attempt[T](work_id: WorkId, acquire: Callable[[], tuple[Lease, T]], work: Callable[[Lease, T], None]) -> None:
    """Runs one attempt for a delivery. If the work is already finished, this is a success.

    acquire: takes the lease, as `leases.acquire` does. work: does the work and ends it.
    Raises Postponed, Delayed, Rejected after the work has ended as failed, LeftToSweep, or the errors of `work`.
    """
    try:
        lease, item = acquire()
    except leases.Finished:
        return
    except leases.Held as held:
        if is_last_delivery():  # if the worker that holds the lease crashes, the sweep retries
            raise LeftToSweep("held by another delivery") from None
        raise Postponed(held.seconds, "held by another delivery") from None
    except leases.Exhausted:
        _fail(work_id, _INTERNAL_ERROR, None)
        raise Rejected("no attempt came to an end") from None
    try:
        work(lease, item)
    except leases.LeaseLost:
        logger.warning("lease lost")  # another delivery holds the lease or has ended the work, so don't retry
    except PermanentFailure as permanent:
        logger.info("given up", extra={"reason": permanent.failure.code})
        _fail(work_id, permanent.failure, lease)
    except Delayed:
        leases.release(lease, counted=False)
        raise
    except Postponed as postponed:
        _release_or_fail(work_id, lease, postponed.reason, _HOST_UNAVAILABLE)
        raise
    except Exception as error:  # any error: the last attempt ends the work, and the worker logs the error
        described = describe(error)
        reason = f"{described['errorType']} at {described['stack'][-1]}"
        _release_or_fail(work_id, lease, reason, _INTERNAL_ERROR)
        raise


def _release_or_fail(work_id: WorkId, lease: Lease, reason: str, failure: Failure) -> None:
    """Releases the lease for the message's next delivery. Raises LeftToSweep if the message isn't redelivered.

    If this was the last attempt, ends the work with the failure and raises Rejected.
    """
    if lease.last:
        _fail(work_id, failure, lease)
        raise Rejected(reason)
    leases.release(lease, redelivered=not is_last_delivery())
    if is_last_delivery():
        raise LeftToSweep(reason)


def _fail(work_id: WorkId, failure: Failure, lease: Lease | None) -> None:
    try:
        fail_attempted(work_id, failure, lease)
    except leases.LeaseLost:
        logger.warning("ended by another")


@contextmanager
def code_host_errors(installation_id: int) -> Iterator[None]:
    """Converts the code host's errors to PermanentFailure, Postponed, or Delayed, and keeps to its limits."""
    try:
        with retried_later(installation_id, _UNAVAILABLE_SECONDS):
            yield
    except host.CodeHostError as error:
        failure = _HOST_FAILURES.get(type(error))
        if failure is None:
            raise
        raise PermanentFailure(failure) from error
