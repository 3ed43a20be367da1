"""When a call is sent again, and after which pause: as in the standard mode of AWS's SDKs.

Every attempt that failed for a reason that may pass is repeated, including writes whose outcome is unknown, so the
caller's writes need conditions.
"""

import secrets
import threading

from awsclient.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError, StaleConnection
from awsclient.time_limit import TimeLimit

ATTEMPTS = 3
_TRANSIENT_STATUS = {500, 502, 503, 504}
_TRANSIENT = {
    "PriorRequestNotComplete",
    "ReplicatedWriteConflictException",
    "RequestTimeout",
    "RequestTimeoutException",
}
_THROTTLING = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
}
_THROTTLING_SCALE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 20.0
_RETRY_AFTER_MOST_SECONDS = 5.0
# The quota's size, and the cost of a retry. A call that succeeds gives back the cost of its last retry, or 1.
_CAPACITY = 500
_RETRY_COST = 14
_THROTTLING_RETRY_COST = 5


def is_throttling(failure: AwsError) -> bool:
    return isinstance(failure, ServiceError) and (failure.code in _THROTTLING or failure.status == 429)


def is_transient(failure: AwsError) -> bool:
    """Returns whether the same request may succeed later."""
    if isinstance(failure, ServiceError):
        return failure.status in _TRANSIENT_STATUS or failure.code in _TRANSIENT or is_throttling(failure)
    return isinstance(failure, NoAnswer) and not isinstance(failure, CredentialsUnavailable)


class Quota:
    """Limits the retries of a client, so that they don't add to the load of a service that is down."""

    def __init__(self) -> None:
        self._left = _CAPACITY
        self._lock = threading.Lock()

    def take(self, cost: int) -> bool:
        with self._lock:
            if cost > self._left:
                return False
            self._left -= cost
            return True

    def give_back(self, cost: int) -> None:
        if self._left == _CAPACITY:
            return
        with self._lock:
            self._left = min(self._left + cost, _CAPACITY)


class Attempts:
    """The attempts of one call. `scale_seconds`: the longest pause before the first retry, unless it is throttled."""

    __slots__ = ("_cost", "_limit", "_quota", "_scale_seconds", "made")

    def __init__(self, quota: Quota, scale_seconds: float, limit: TimeLimit) -> None:
        self._quota = quota
        self._limit = limit
        self._scale_seconds = scale_seconds
        self._cost = 0
        self.made = 0

    def may_repeat(self) -> bool:
        return self.made < ATTEMPTS and not self._limit.is_over()

    def pause_after(self, failure: AwsError) -> float | None:
        """Returns the seconds until the next attempt, or None if that was the last one.

        A stale connection is replaced without a pause. No pause exceeds the time limit.
        """
        if not self.may_repeat() or not is_transient(failure):
            return None
        if isinstance(failure, StaleConnection):
            return 0
        throttled = is_throttling(failure)
        cost = _THROTTLING_RETRY_COST if throttled else _RETRY_COST
        if not self._quota.take(cost):
            return None
        self._cost = cost
        scale = _THROTTLING_SCALE_SECONDS if throttled else self._scale_seconds
        pause = _jitter() * min(scale * 2 ** (self.made - 1), _LONGEST_PAUSE_SECONDS)
        pause = max(pause, min(_retry_after(failure), pause + _RETRY_AFTER_MOST_SECONDS))
        left = self._limit.remaining()
        return None if left is not None and pause >= left else pause

    def succeeded(self) -> None:
        self._quota.give_back(self._cost or 1)


def _jitter() -> float:
    # Not `random`: instances restored from one snapshot would all use the same jitter.
    return secrets.randbelow(1000) / 1000


def _retry_after(failure: AwsError) -> float:
    """Returns the seconds that the service asks for, or 0."""
    milliseconds = failure.headers.get("x-amz-retry-after", "") if isinstance(failure, ServiceError) else ""
    return int(milliseconds) / 1000 if milliseconds.isdecimal() else 0.0
