"""Calls DynamoDB and SQS. Requests are signed and retried as in the standard mode of AWS's SDKs.

Every attempt that failed for a reason that may pass is repeated, including writes whose outcome is unknown, so the
caller's writes need conditions.
"""

import json
import os
import platform
import secrets
import threading
import time
import zlib
from typing import Any, NamedTuple

from pydantic_core import from_json

from awsclient.connection import NO_LIMIT, Connections, Response, TimeLimit
from awsclient.credentials import CredentialSource, Scope, authorization, canonical_path
from awsclient.endpoints import find_endpoint, region
from awsclient.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError, StaleConnection

_USER_AGENT = f"awsclient Python/{platform.python_version()}"
_SKEWED = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "InvalidSignatureException"}
# AWS rejects signatures of more than five minutes before or after its own time. The others have another cause.
_SKEW_SECONDS = 240
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


class Service(NamedTuple):
    """target: what names an operation in a header. scale_seconds: the longest pause before the first retry."""

    target: str
    scale_seconds: float
    headers: tuple[tuple[str, str], ...] = ()


_SERVICES = {
    "dynamodb": Service("DynamoDB_20120810", 0.025),
    # The header asks for the error codes of its earlier protocol, which botocore reports.
    "sqs": Service("AmazonSQS", 0.05, (("x-amzn-query-mode", "true"),)),
}


class Client:
    """A client of one service. Operations are methods, named as in botocore: `get_item` calls GetItem.

    They take and return what is in the service's JSON, and raise the errors of `awsclient.errors`.
    """

    def __init__(self, service: str) -> None:
        self.service = service

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        operation = name.title().replace("_", "")
        return lambda **parameters: self.call(operation, parameters)


class OwnClient(Client):
    """Calls the service directly. Threads can share it. It holds no connection or credential until its first call."""

    def __init__(self, service: str, endpoint_url: str | None = None, limit: TimeLimit = NO_LIMIT) -> None:
        super().__init__(service)
        self._details = _SERVICES[service]
        self._scope = Scope(region(), service)
        endpoint = find_endpoint(service, endpoint_url)
        self._host, self._path = endpoint.host_header, endpoint.path
        self._limit = limit
        self._connections = Connections(endpoint, limit)
        self._credentials = CredentialSource(limit)
        self._quota = Quota()
        # How far the service's clock is ahead of ours.
        self._skew_seconds = 0.0

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Raises ServiceError, NoAnswer, Misconfigured."""
        if operation == "TransactWriteItems":  # all attempts are one transaction
            parameters = {"ClientRequestToken": secrets.token_hex(16), **parameters}
        body = json.dumps(parameters).encode()
        attempts = Attempts(self._quota, self._details.scale_seconds, self._limit)
        while True:
            attempts.made += 1
            try:
                answer = read_response(operation, self._exchange(self._request(operation, body)))
            except (ServiceError, NoAnswer) as failure:
                pause = self._pause_after(failure, attempts)
                if pause is None:
                    raise
                if pause:
                    time.sleep(pause)
            else:
                attempts.succeeded()
                return answer

    def _exchange(self, request: bytes) -> Response:
        return self._connections.exchange(request)

    def _request(self, operation: str, body: bytes) -> bytes:
        """Returns the bytes of a request that is signed now."""
        credentials = self._credentials.current()
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + self._skew_seconds))
        headers = {
            "host": self._host,
            "content-type": "application/x-amz-json-1.0",
            "x-amz-date": timestamp,
            "x-amz-target": f"{self._details.target}.{operation}",
            **dict(self._details.headers),
        }
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        path = canonical_path(self._path)
        headers["authorization"] = authorization(credentials, self._scope, path, headers, body)
        headers["content-length"] = str(len(body))
        headers["user-agent"] = _USER_AGENT
        # The trace of this invocation.
        if trace := os.environ.get("_X_AMZN_TRACE_ID"):
            headers["x-amzn-trace-id"] = trace
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([f"POST {self._path} HTTP/1.1", *lines, "", ""]).encode() + body

    def _pause_after(self, failure: ServiceError | NoAnswer, attempts: Attempts) -> float | None:
        if isinstance(failure, ServiceError):
            failure.retries = attempts.made - 1
            if attempts.may_repeat() and self._correct_clock(failure):
                return 0
        return attempts.pause_after(failure)

    def _correct_clock(self, failure: ServiceError) -> bool:
        """Returns whether the signature was rejected for our clock's time. Later ones use the service's time."""
        if failure.code not in _SKEWED:
            return False
        from email.utils import mktime_tz, parsedate_tz  # noqa: PLC0415 (slow to import, and rarely needed)

        date = parsedate_tz(failure.headers.get("date", ""))
        if date is None:
            return False
        skew = mktime_tz(date) - time.time()
        if abs(skew - self._skew_seconds) < _SKEW_SECONDS:
            return False
        self._skew_seconds = skew
        return True


def read_response(operation: str, response: Response) -> dict[str, Any]:
    """Returns the content of a response. Raises ServiceError if the service refused, NoAnswer if it can't be read."""
    checksum = response.headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(zlib.crc32(response.body)):
        raise NoAnswer("wrong checksum")
    if response.status >= 300:
        raise _read_refusal(operation, response)
    try:
        content = from_json(response.body or b"{}")
    except ValueError as error:
        raise NoAnswer("malformed response") from error
    if not isinstance(content, dict):
        raise NoAnswer("malformed response")
    return content


def _read_refusal(operation: str, response: Response) -> AwsError:
    """Returns the error that botocore reports for the response."""
    try:
        content = from_json(response.body)
    except ValueError:  # a page of a gateway in between, for example
        content = None
    fields = content if isinstance(content, dict) else {}
    named = response.headers.get("x-amzn-errortype", response.status)
    code = str(fields.pop("__type", named)).partition(":")[0].rpartition("#")[2]
    earlier_code, mark, _ = response.headers.get("x-amzn-query-error", "").partition(";")
    message = fields.get("message", fields.get("Message")) or ""
    return ServiceError(
        operation,
        earlier_code if mark and earlier_code else code,
        str(message),
        status=response.status,
        fields=fields,
        headers=response.headers,
    )
