"""HTTP to one API address: timeouts, a total deadline, safe retries, and no token sent to other hosts.

A read (`ask`) is retried after a lost connection, a 5xx, or a rate limit that ends before the deadline. A write
(`tell`) is sent once: after that, only its response can tell whether it was applied.
"""

import json
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from controlplane.core import clock
from controlplane.core.observability import logger
from controlplane.github.errors import HostUnavailable, OutcomeUnknown, RateLimitedByHost, Refused, TarballTooLarge

# GitHub supports a version for at least two years after the next one is released.
API_VERSION = "2022-11-28"
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "assent-control-plane",
    "X-GitHub-Api-Version": API_VERSION,
}
_REDIRECTS = {301, 302, 307, 308}
# Following a 301 or 302 can turn a write into a read. GitHub redirects writes with 307.
_WRITE_REDIRECTS = {307, 308}
_REDIRECT_LIMIT = 3
_CHUNK_BYTES = 64 * 1024
# 100 issues of the maximum length are smaller.
_ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
# The wait that GitHub recommends if a secondary limit specifies no time.
_LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Patience:
    """The timeouts and retries of one operation. Times are in seconds."""

    connect_seconds: float = 3
    read_seconds: float = 10
    total_seconds: float = 20
    tries: int = 3
    first_pause_seconds: float = 0.25


class Deadline:
    """The deadline of one operation, counted from its creation."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left_seconds(self) -> float:
        return self._end - time.monotonic()


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `operation` is the path template, for the log."""

    method: str
    operation: str
    url: str
    authorization: str = field(repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete response. `content` is the parsed JSON, or None if the body isn't JSON."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: Any = field(repr=False)

    @property
    def request_id(self) -> str | None:
        """Returns GitHub's id of the request, which its support asks for."""
        return self.headers.get("X-GitHub-Request-Id")

    @property
    def date_seconds(self) -> float | None:
        """Returns the host's time when it responded, as Unix seconds."""
        return _date_seconds(self.headers.get("Date"))


class _Unanswered(Exception):
    """The connection failed. `sent`: whether the request may have reached the host."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        # A failed name resolution also counts as a connection that was not made.
        self.sent = not isinstance(cause, NewConnectionError | ConnectTimeoutError)


class Transport:
    """HTTP requests to one API address. `sleep` is used for waits between retries."""

    def __init__(
        self, api_url: str, patience: Patience | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.api_url = api_url
        self.patience = patience or Patience()
        self._sleep = sleep
        self._pool = _new_pool()

    def url(self, path: str, **query: str) -> str:
        return f"{self.api_url}{path}" + (f"?{urlencode(query)}" if query else "")

    def ask(self, request: Request, deadline: Deadline) -> Answer:
        """Sends a read and returns the response of any status. Raises RateLimitedByHost, HostUnavailable, Refused."""

        def attempt() -> Answer:
            return _read_answer(self._follow(self._pool, request, deadline, _REDIRECTS), deadline)

        return self._repeat(request, deadline, attempt)

    def tell(self, request: Request, deadline: Deadline) -> Answer:
        """Sends a write once and returns its response.

        Raises RateLimitedByHost, Refused, HostUnavailable if the host was not reached, and OutcomeUnknown if it was
        reached without a usable response.
        """
        # A new connection: a pooled one that the host closed while idle fails only after the request is sent.
        with _new_pool() as pool:
            try:
                answer = _read_answer(self._follow(pool, request, deadline, _WRITE_REDIRECTS), deadline)
            except _Unanswered as failure:
                unavailable = OutcomeUnknown if failure.sent else HostUnavailable
                raise unavailable(operation=request.operation, reason=str(failure)) from failure
        if answer.status >= 500 or (answer.status < 300 and answer.content is None):
            raise OutcomeUnknown(operation=request.operation, status=answer.status, requestId=answer.request_id)
        seconds = seconds_to_wait(answer)
        if seconds is not None:
            raise RateLimitedByHost(seconds, operation=request.operation, requestId=answer.request_id)
        return answer

    def download(self, request: Request, deadline: Deadline, limit_bytes: int) -> Answer | Iterator[bytes]:
        """Streams the bytes of a file, or returns the response if its status isn't 200.

        Raises the errors of `ask`. While streaming, raises HostUnavailable if the stream is cut off or too slow, and
        TarballTooLarge.
        """
        streamed: list[urllib3.BaseHTTPResponse] = []

        def attempt() -> Answer:
            response = self._follow(self._pool, request, deadline, _REDIRECTS, elsewhere=True)
            if response.status == 200:
                streamed.append(response)
                return Answer(200, response.headers, None)
            return _read_answer(response, deadline)

        answer = self._repeat(request, deadline, attempt)
        return _limited(streamed[0], request, deadline, limit_bytes) if streamed else answer

    def _repeat(self, request: Request, deadline: Deadline, attempt: Callable[[], Answer]) -> Answer:
        pause_seconds = self.patience.first_pause_seconds
        for tries_left in reversed(range(self.patience.tries)):
            failure, wait_seconds = self._try(request, attempt)
            if isinstance(failure, Answer):
                return failure
            if wait_seconds is None:
                # Not `random`: instances restored from one snapshot would all retry at the same moments.
                wait_seconds = pause_seconds * secrets.randbelow(1000) / 1000
            if not tries_left or wait_seconds >= deadline.left_seconds:
                raise failure
            logger.info("The code host is asked again", extra=failure.context | {"waitSeconds": wait_seconds})
            self._sleep(wait_seconds)
            pause_seconds *= 2
        raise AssertionError("unreachable")

    def _try(
        self, request: Request, attempt: Callable[[], Answer]
    ) -> tuple[Answer | RateLimitedByHost | HostUnavailable, float | None]:
        """Returns the outcome of one attempt, and how long the host asks to wait before the next."""
        try:
            answer = attempt()
        except _Unanswered as failure:
            return HostUnavailable(operation=request.operation, reason=str(failure)), None
        context = {"operation": request.operation, "requestId": answer.request_id}
        if answer.status >= 500:
            return HostUnavailable(status=answer.status, **context), _retry_after(answer)
        seconds = seconds_to_wait(answer)
        if seconds is not None:
            return RateLimitedByHost(seconds, **context), seconds
        return answer, None

    def _follow(
        self,
        pool: urllib3.PoolManager,
        request: Request,
        deadline: Deadline,
        redirects: set[int],
        *,
        elsewhere: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """Follows redirects and returns the final response.

        Only the original host gets the token. `elsewhere` allows redirects to other hosts, without the token.
        """
        url, authorization = request.url, request.authorization
        redirects_left = _REDIRECT_LIMIT
        while True:
            response = self._send(pool, request, url, authorization, deadline)
            target = response.headers.get("Location")
            if response.status not in redirects or target is None:
                return response
            response.close()
            try:
                url = urljoin(url, target)
                is_elsewhere = _origin(url) != _origin(request.url)
            except ValueError as failure:
                raise Refused(response.status, operation=request.operation, reason="redirect nowhere") from failure
            if is_elsewhere:
                authorization = ""
                if not elsewhere or not _is_as_safe(url, request.url):
                    raise Refused(response.status, operation=request.operation, reason="redirect to another host")
            if not redirects_left:
                raise Refused(response.status, operation=request.operation, reason="redirects without end")
            redirects_left -= 1

    def _send(
        self, pool: urllib3.PoolManager, request: Request, url: str, authorization: str, deadline: Deadline
    ) -> urllib3.BaseHTTPResponse:
        left_seconds = deadline.left_seconds
        if left_seconds <= 0:
            raise _Unanswered(ConnectTimeoutError())
        timeout = urllib3.Timeout(
            connect=min(self.patience.connect_seconds, left_seconds),
            read=min(self.patience.read_seconds, left_seconds),
        )
        headers = _HEADERS | ({"Authorization": authorization} if authorization else {})
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
            raise _Unanswered(failure) from failure


def seconds_to_wait(answer: Answer) -> int | None:
    """Returns how long a rate limit asks to wait, at least 1 second, or None if the response isn't a rate limit.

    https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: a rate limit returns 403 or 429 with
    the time in one of two headers; without either header, the wait is one minute.
    """
    if answer.status not in (403, 429):
        return None
    wait_seconds = _retry_after(answer)
    if wait_seconds is not None:
        return max(1, round(wait_seconds))
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        reset = answer.headers.get("X-RateLimit-Reset", "")
        if reset.isdecimal():
            return max(1, int(reset) - int(answer.date_seconds or clock.now()))
        return _LIMIT_SECONDS
    # A secondary limit can come without any header. The documentation link in its body identifies it.
    about = answer.content.get("documentation_url") if isinstance(answer.content, dict) else None
    is_limit = answer.status == 429 or (isinstance(about, str) and "rate-limit" in about)
    return _LIMIT_SECONDS if is_limit else None


def _retry_after(answer: Answer) -> float | None:
    value = answer.headers.get("Retry-After", "")
    if value.isdecimal():
        return float(value)
    moment = _date_seconds(value)
    return None if moment is None else max(0.0, moment - (answer.date_seconds or clock.now()))


def _date_seconds(value: str | None) -> float | None:
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def _read_answer(response: urllib3.BaseHTTPResponse, deadline: Deadline) -> Answer:
    body = bytearray()
    try:
        for chunk in _chunks(response, deadline):
            body += chunk
            if len(body) > _ANSWER_LIMIT_BYTES:
                raise _Unanswered(OverflowError())
    finally:
        response.close()  # after the whole body the connection is back in the pool, and this does nothing
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return Answer(response.status, response.headers, content)


def _chunks(response: urllib3.BaseHTTPResponse, deadline: Deadline) -> Iterator[bytes]:
    """Yields the body as it arrives. Each wait has the read timeout, so a slow host is detected at the deadline."""
    try:
        # Not `stream`: it blocks until a whole chunk has arrived, however long that takes.
        while chunk := response.read1(_CHUNK_BYTES, decode_content=False):
            yield chunk
            if deadline.left_seconds <= 0:
                raise _Unanswered(TimeoutError())
    except HTTPError as failure:
        raise _Unanswered(failure) from failure


def _limited(
    response: urllib3.BaseHTTPResponse, request: Request, deadline: Deadline, limit_bytes: int
) -> Iterator[bytes]:
    total_bytes = 0
    try:
        for chunk in _chunks(response, deadline):
            total_bytes += len(chunk)
            if total_bytes > limit_bytes:
                raise TarballTooLarge(limit_bytes)
            yield chunk
    except _Unanswered as failure:
        raise HostUnavailable(operation=request.operation, reason=str(failure)) from failure
    finally:
        response.close()


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _is_as_safe(url: str, origin: str) -> bool:
    """Returns whether a redirect from `origin` keeps TLS. Only the local fake doesn't use TLS."""
    scheme = urlsplit(url).scheme
    return scheme == "https" or (scheme == "http" == urlsplit(origin).scheme)


def _new_pool() -> urllib3.PoolManager:
    return urllib3.PoolManager(maxsize=4, ssl_context=_tls())


@cache
def _tls() -> ssl.SSLContext:
    """Returns a context with the operating system's CA certificates. The layer has only those for AWS."""
    return ssl.create_default_context()
