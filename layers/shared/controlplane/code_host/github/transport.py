"""HTTP to one API address: timeouts, a total deadline, safe retries, and no token sent to other hosts.

`send_with_retries` retries after a lost connection, a 5xx, or a rate limit that ends before the deadline. A write that
must not be repeated is sent with `send_once`: after that, only its response can tell whether it was applied.
"""

import json
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Self
from urllib.parse import urlencode, urljoin, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from controlplane.code_host.github.errors import (
    CodeHostError,
    HostUnavailable,
    OutcomeUnknown,
    RateLimitedByHost,
    Refused,
    TarballTooLarge,
)
from controlplane.platform.core import clock
from controlplane.platform.core.observability import logger

# GitHub supports a version for at least two years after the next one is released.
API_VERSION = "2022-11-28"
_HEADERS = {
    "User-Agent": "assent-control-plane",
    "X-GitHub-Api-Version": API_VERSION,
}
_REDIRECTS = {301, 302, 307, 308}
# Following a 301 or 302 can turn a write into a read. GitHub redirects writes with 307.
_WRITE_REDIRECTS = {307, 308}
_REDIRECT_LIMIT = 3
_CHUNK_BYTES = 64 * 1024
# 100 issues of the maximum length are smaller.
_RESPONSE_LIMIT_BYTES = 64 * 1024 * 1024
# The wait that GitHub recommends if a secondary limit specifies no time.
_LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The timeouts and retries of one operation."""

    connect_timeout_seconds: float = 3
    read_timeout_seconds: float = 10
    total_timeout_seconds: float = 20
    max_attempts: int = 3
    first_backoff_seconds: float = 0.25


class Deadline:
    """The deadline of one operation, counted from its creation."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining_seconds(self) -> float:
        return self._end - time.monotonic()


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `operation` is the path template, for the log. `accept` is a media type of JSON."""

    method: str
    operation: str
    url: str
    authorization: str = field(repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    accept: str = "application/vnd.github+json"


@dataclass(frozen=True, slots=True)
class Response:
    """A response to `operation`. `content`: parsed JSON, None if the body isn't JSON, or the bytes of a `download`."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: Any = field(repr=False)
    operation: str = ""

    @property
    def request_id(self) -> str | None:
        """Returns GitHub's id of the request, which its support asks for."""
        return self.headers.get("X-GitHub-Request-Id")

    @property
    def date_seconds(self) -> float | None:
        """Returns the host's time when it responded, as Unix seconds."""
        return _date_seconds(self.headers.get("Date"))

    @property
    def context(self) -> dict[str, Any]:
        """Returns the context of an error of the response."""
        return {"operation": self.operation, "status": self.status, "requestId": self.request_id}

    def require(
        self,
        status: int,
        errors: Mapping[int, type[CodeHostError]] | None = None,
        otherwise: type[CodeHostError] = Refused,
    ) -> Self:
        """Returns the response if it has the status. Raises the error of its own status, or `otherwise`."""
        if self.status != status:
            raise (errors or {}).get(self.status, otherwise)(**self.context)
        return self

    def read[T](self, read: Callable[[Any], T], unreadable: type[HostUnavailable] = HostUnavailable) -> T:
        """Returns the content as `read` converts it. Raises `unreadable` if it isn't as expected."""
        try:
            return read(self.content)
        except (KeyError, TypeError, ValueError, AttributeError) as failure:
            raise unreadable(reason="unexpected response", **self.context) from failure


class _ConnectionFailed(Exception):
    """The connection failed. `sent`: whether the request may have reached the host."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        # A failed name resolution also counts as a connection that was not made.
        self.sent = not isinstance(cause, NewConnectionError | ConnectTimeoutError)


class Transport:
    """HTTP requests to one API address. `sleep` is used for waits between retries."""

    def __init__(
        self, api_url: str, policy: RetryPolicy | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.api_url = api_url
        self.policy = policy or RetryPolicy()
        self._sleep = sleep
        self._pool = _new_pool()

    def url(self, path: str, **query: str) -> str:
        return f"{self.api_url}{path}" + (f"?{urlencode(query)}" if query else "")

    def send_with_retries(self, request: Request, deadline: Deadline) -> Response:
        """Sends a request, with retries after failures, and returns the response of any status.

        Raises RateLimitedByHost, HostUnavailable, and Refused.
        """

        def attempt() -> Response:
            raw = self._follow(self._pool, request, deadline, _REDIRECTS)
            return _read_response(request, raw, deadline)

        return self._retry(request, deadline, attempt)

    def send_once(self, request: Request, deadline: Deadline) -> Response:
        """Sends a request once and returns its response.

        Raises RateLimitedByHost, Refused, HostUnavailable if the host was not reached, and OutcomeUnknown if it was
        reached without a usable response.
        """
        # A new connection: a pooled one that the host closed while idle fails only after the request is sent.
        with _new_pool() as pool:
            try:
                response = _read_response(request, self._follow(pool, request, deadline, _WRITE_REDIRECTS), deadline)
            except _ConnectionFailed as failure:
                unavailable = OutcomeUnknown if failure.sent else HostUnavailable
                raise unavailable(operation=request.operation, reason=str(failure)) from failure
        if response.status >= 500 or (response.status < 300 and response.content is None):
            raise OutcomeUnknown(**response.context)
        seconds = seconds_to_wait(response)
        if seconds is not None:
            raise RateLimitedByHost(seconds, **response.context)
        return response

    def download(self, request: Request, deadline: Deadline, limit_bytes: int) -> Response:
        """Returns the response. If its status is 200, its content is an iterator of the bytes of the file.

        Retries and raises as `send_with_retries`. While streaming, raises HostUnavailable if the stream is cut off or
        too slow, and TarballTooLarge.
        """

        def attempt() -> Response:
            raw = self._follow(self._pool, request, deadline, _REDIRECTS, allow_other_hosts=True)
            if raw.status == 200:
                return Response(200, raw.headers, _limit_size(raw, request, deadline, limit_bytes))
            return _read_response(request, raw, deadline)

        return self._retry(request, deadline, attempt)

    def _retry(self, request: Request, deadline: Deadline, attempt: Callable[[], Response]) -> Response:
        backoff_seconds = self.policy.first_backoff_seconds
        for attempts_left in reversed(range(self.policy.max_attempts)):
            failure: RateLimitedByHost | HostUnavailable
            wait_seconds: float | None = None
            try:
                response = attempt()
            except _ConnectionFailed as lost:
                failure = HostUnavailable(operation=request.operation, reason=str(lost))
            else:
                limit_seconds = seconds_to_wait(response)
                if response.status >= 500:
                    failure, wait_seconds = HostUnavailable(**response.context), _retry_after(response)
                elif limit_seconds is not None:
                    failure, wait_seconds = RateLimitedByHost(limit_seconds, **response.context), limit_seconds
                else:
                    return response
            if wait_seconds is None:
                # Not `random`: instances restored from one snapshot would all retry at the same moments.
                wait_seconds = backoff_seconds * secrets.randbelow(1000) / 1000
            if not attempts_left or wait_seconds >= deadline.remaining_seconds:
                raise failure
            logger.info("code host request retried", extra=failure.context | {"waitSeconds": wait_seconds})
            self._sleep(wait_seconds)
            backoff_seconds *= 2
        raise AssertionError("unreachable")

    def _follow(
        self,
        pool: urllib3.PoolManager,
        request: Request,
        deadline: Deadline,
        redirects: set[int],
        *,
        allow_other_hosts: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """Follows redirects and returns the final response.

        Only the original host gets the token. `allow_other_hosts` allows redirects to other hosts, without the token.
        """
        url, authorization = request.url, request.authorization
        redirects_left = _REDIRECT_LIMIT
        while True:
            raw = self._send(pool, request, url, authorization, deadline)
            target = raw.headers.get("Location")
            if raw.status not in redirects or target is None:
                return raw
            raw.close()
            try:
                url = urljoin(url, target)
                is_other_host = _origin(url) != _origin(request.url)
            except ValueError as failure:
                raise Refused(raw.status, operation=request.operation, reason="malformed redirect") from failure
            if is_other_host:
                authorization = ""
                if not allow_other_hosts or not _keeps_tls(url, request.url):
                    raise Refused(raw.status, operation=request.operation, reason="redirect to another host")
            if not redirects_left:
                raise Refused(raw.status, operation=request.operation, reason="too many redirects")
            redirects_left -= 1

    def _send(
        self, pool: urllib3.PoolManager, request: Request, url: str, authorization: str, deadline: Deadline
    ) -> urllib3.BaseHTTPResponse:
        remaining_seconds = deadline.remaining_seconds
        if remaining_seconds <= 0:
            raise _ConnectionFailed(ConnectTimeoutError())
        timeout = urllib3.Timeout(
            connect=min(self.policy.connect_timeout_seconds, remaining_seconds),
            read=min(self.policy.read_timeout_seconds, remaining_seconds),
        )
        headers = {"Accept": request.accept, **_HEADERS, **({"Authorization": authorization} if authorization else {})}
        body = None
        if request.body is not None:
            headers |= {"Content-Type": "application/json"}
            body = json.dumps(request.body).encode()
        try:
            return pool.request(
                request.method,
                url,
                headers=headers,
                body=body,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except HTTPError as failure:
            raise _ConnectionFailed(failure) from failure


def seconds_to_wait(response: Response) -> int | None:
    """Returns how long a rate limit asks to wait, at least 1 second, or None if the response isn't a rate limit.

    https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: a rate limit returns 403 or 429 with
    the time in one of two headers; without either header, the wait is one minute.
    """
    if response.status not in (403, 429):
        return None
    wait_seconds = _retry_after(response)
    if wait_seconds is not None:
        return max(1, round(wait_seconds))
    if response.headers.get("X-RateLimit-Remaining") == "0":
        reset = response.headers.get("X-RateLimit-Reset", "")
        if reset.isdecimal():
            return max(1, int(reset) - int(response.date_seconds or clock.now()))
        return _LIMIT_SECONDS
    # A secondary limit can come without any header. The documentation link in its body identifies it.
    about = response.content.get("documentation_url") if isinstance(response.content, dict) else None
    is_limit = response.status == 429 or (isinstance(about, str) and "rate-limit" in about)
    return _LIMIT_SECONDS if is_limit else None


def _retry_after(response: Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    if value.isdecimal():
        return float(value)
    moment = _date_seconds(value)
    return None if moment is None else max(0.0, moment - (response.date_seconds or clock.now()))


def _date_seconds(value: str | None) -> float | None:
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def _read_response(request: Request, raw: urllib3.BaseHTTPResponse, deadline: Deadline) -> Response:
    body = bytearray()
    try:
        for chunk in _chunks(raw, deadline):
            body += chunk
            if len(body) > _RESPONSE_LIMIT_BYTES:
                raise _ConnectionFailed(OverflowError())
    finally:
        raw.close()  # after the whole body the connection is back in the pool, and this does nothing
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return Response(raw.status, raw.headers, content, request.operation)


def _chunks(raw: urllib3.BaseHTTPResponse, deadline: Deadline) -> Iterator[bytes]:
    """Yields the body as it arrives. Each wait has the read timeout, so a slow host is detected at the deadline."""
    try:
        # Not `stream`: it blocks until a whole chunk has arrived, however long that takes.
        while chunk := raw.read1(_CHUNK_BYTES, decode_content=False):
            yield chunk
            if deadline.remaining_seconds <= 0:
                raise _ConnectionFailed(TimeoutError())
    except HTTPError as failure:
        raise _ConnectionFailed(failure) from failure


def _limit_size(
    raw: urllib3.BaseHTTPResponse, request: Request, deadline: Deadline, limit_bytes: int
) -> Iterator[bytes]:
    total_bytes = 0
    try:
        for chunk in _chunks(raw, deadline):
            total_bytes += len(chunk)
            if total_bytes > limit_bytes:
                raise TarballTooLarge(limit_bytes)
            yield chunk
    except _ConnectionFailed as failure:
        raise HostUnavailable(operation=request.operation, reason=str(failure)) from failure
    finally:
        raw.close()


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _keeps_tls(url: str, origin: str) -> bool:
    """Returns whether a redirect from `origin` keeps TLS. Only the local fake doesn't use TLS."""
    scheme = urlsplit(url).scheme
    return scheme == "https" or (scheme == "http" == urlsplit(origin).scheme)


def _new_pool() -> urllib3.PoolManager:
    return urllib3.PoolManager(maxsize=4, ssl_context=_tls())


@cache
def _tls() -> ssl.SSLContext:
    """Returns a context with the operating system's CA certificates. The layer has only those for AWS."""
    return ssl.create_default_context()
