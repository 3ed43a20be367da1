"""What both workers of a scan share: one attempt from its lease to its end, and what the code host's refusals mean.

An attempt ends the work, or gives it back for the next delivery; the last one always ends it. So whoever asked for a
scan learns how it came out, whatever fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.github import errors as host
from controlplane.observability import describe, logger
from controlplane.store import leases
from controlplane.store.leases import Lease
from controlplane.store.scans import Failure
from controlplane.worker import Postponed, Rejected

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


class Hopeless(Exception):
    """The work cannot be done, and another attempt would find the same."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


@contextmanager
def asking_the_code_host() -> Iterator[None]:
    """Turns what the code host refuses into Hopeless or Postponed. How this service is set up stays its own failure."""
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
        raise Hopeless(failure) from refusal


def attempt[T](
    acquire: Callable[[], tuple[Lease, T]],
    work: Callable[[Lease, T], None],
    fail: Callable[[Failure, Lease | None], None],
) -> None:
    """One delivery's try at the work. Finished work is a success; raises Postponed or Rejected, or what `work` raises.

    acquire: takes the lease, as `leases.acquire` does. work: does it, and ends it. fail: ends it with that failure.
    """
    try:
        lease, item = acquire()
    except leases.Finished:
        return
    except leases.Held as held:
        raise Postponed(held.seconds, "held by another delivery") from None
    except leases.Exhausted:
        _end(fail, _GAVE_UP, None)
        raise Rejected("no attempt came to an end") from None
    try:
        work(lease, item)
    except leases.LeaseLost:
        logger.warning("lease lost")  # another delivery has the work, or has ended it: it is not ours to repeat
    except Hopeless as hopeless:
        logger.info("given up", extra={"reason": hopeless.failure.code})
        _end(fail, hopeless.failure, lease)
    except Postponed as postponed:
        if lease.last:
            _end(fail, _NO_HOST, lease)
            raise Rejected(postponed.reason) from postponed
        leases.release(lease)
        raise
    except Exception as failure:  # whatever it is: the last attempt ends the work, and the worker tells of it
        if not lease.last:
            leases.release(lease)
            raise
        described = describe(failure)
        _end(fail, _GAVE_UP, lease)
        raise Rejected(f"{described['errorType']} at {(described['stack'] or ['?'])[-1]}") from failure


def _end(fail: Callable[[Failure, Lease | None], None], failure: Failure, lease: Lease | None) -> None:
    try:
        fail(failure, lease)
    except leases.LeaseLost:
        logger.warning("ended by another")
