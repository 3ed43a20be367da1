"""HTTP/1.1 connections that are kept open, and end with the time limit.

A socket timeout restarts with each byte received. Here the timeout of every connect, send, and receive is capped at the
time left, so a response that trickles in ends in time, too.

A response that is too large, or whose end is ambiguous (RFC 9112), counts as none. Its connection is closed, because
the rest could be taken for the next response.
"""

import base64
import os
import re
import select
import socket
import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from awsclient.endpoints import Endpoint
from awsclient.errors import NoAnswer, StaleConnection

# A socket timeout of 0 means "don't block", so this is the timeout if no time is left.
_SHORTEST_SECONDS = 0.001


_CONNECT_SECONDS = 1.0
_READ_SECONDS = 3.0
# More threads than this never call a service at once.
_MOST_IDLE = 32
_MOST_HEADER_BYTES = 64 * 1024
_MOST_HEADERS = 100
# The largest response has 16 MB of items (BatchGetItem). JSON adds names of types, quotes, escapes, and base64.
_MOST_BYTES = 64 * 1024 * 1024
_RECEIVED_AT_ONCE = 64 * 1024
# RFC 9112 sections 4, 5, and 7.1. None of them takes a bare CR or LF, a folded line, or white space before a colon.
_HEAD = re.compile(
    rb"HTTP/1\.[0-9] [1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?"
    rb"(?:\r\n[!#$%%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*){0,%d}" % _MOST_HEADERS
)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?")
_LENGTH = re.compile(r"[0-9]{1,18}")
# The root certificates of AWS endpoints. Loading the full CA bundle takes 15 ms of the first call.
ROOTS = Path(__file__).with_name("amazon-roots.pem")


class TimeLimit:
    """The time that calls may still take, which the program that makes them decides.

    remaining: returns the seconds left, negative if they are exceeded, or None without a limit.
    """

    __slots__ = ("remaining",)

    def __init__(self, remaining: Callable[[], float | None]) -> None:
        self.remaining = remaining

    def is_over(self) -> bool:
        left = self.remaining()
        return left is not None and left <= 0

    def cap(self, seconds: float) -> float:
        """Returns the timeout, or the time left if that is shorter."""
        left = self.remaining()
        return seconds if left is None else max(min(seconds, left), _SHORTEST_SECONDS)


NO_LIMIT = TimeLimit(lambda: None)


class Response(NamedTuple):
    """A response. Header names are lowercase. The values of a repeated header are joined with commas."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Malformed(OSError):
    """The response isn't valid HTTP, or it is too large."""


def ca_file() -> str:
    """Returns the file of root certificates to trust."""
    return os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE") or str(ROOTS)


@lru_cache(maxsize=2)
def tls_context(roots: str) -> ssl.SSLContext:
    """Returns a context that verifies the certificate and the host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(roots)
    return context


class Connection:
    """One connection, which is open from its creation. Failures are OSErrors, after which it must be closed.

    context: verifies the server of an endpoint with TLS. By default, it trusts what AWS's endpoints need.
    """

    def __init__(self, endpoint: Endpoint, limit: TimeLimit = NO_LIMIT, context: ssl.SSLContext | None = None) -> None:
        near = endpoint.proxy or endpoint
        self._limit = limit
        self._socket = socket.create_connection((near.host, near.port), limit.cap(_CONNECT_SECONDS))
        self._received = bytearray()
        self._left = _MOST_BYTES
        # Whether the response to the latest request has begun.
        self.has_begun = False
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.proxy:
                self._open_tunnel(endpoint)
            if endpoint.is_tls:
                self._socket.settimeout(limit.cap(_CONNECT_SECONDS))
                context = context or tls_context(ca_file())
                self._socket = context.wrap_socket(self._socket, server_hostname=endpoint.host)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def is_dead(self) -> bool:
        """Returns whether the server has closed the connection. An idle one has nothing else to say."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def exchange(self, request: bytes) -> tuple[Response, bool]:
        """Sends a request. Returns the response, and whether the connection stays open."""
        self.has_begun = False
        self._received.clear()
        self._left = _MOST_BYTES
        self._limit_time()
        self._socket.sendall(request)
        status, headers, stays_open = self._read_head()
        while status < 200:
            status, headers, stays_open = self._read_head()
        if status in {204, 304}:
            body = b""
        elif "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
                raise _Malformed("the end of the body is ambiguous")
            body = self._read_chunks()
        elif "content-length" in headers:
            body = self._read_exactly(_length(headers["content-length"]))
        else:
            body, stays_open = self._read_until_closed(), False
        return Response(status, headers, body), stays_open and not self._received

    def _limit_time(self) -> None:
        self._socket.settimeout(self._limit.cap(_READ_SECONDS))
        if self._limit.is_over():
            raise TimeoutError("timed out")

    def _receive(self) -> bool:
        """Receives the bytes that have arrived, or waits for some. Returns False at the end of the stream."""
        self._limit_time()
        arrived = self._socket.recv(_RECEIVED_AT_ONCE)
        self.has_begun = self.has_begun or bool(arrived)
        self._left -= len(arrived)
        if self._left < 0:
            raise _Malformed("the response is too large")
        self._received += arrived
        return bool(arrived)

    def _read_until(self, mark: bytes) -> bytes:
        while (end := self._received.find(mark, 0, _MOST_HEADER_BYTES)) < 0:
            if len(self._received) >= _MOST_HEADER_BYTES:
                raise _Malformed("the header is too long")
            if not self._receive():
                raise ConnectionResetError("closed before the response was complete")
        found = bytes(self._received[:end])
        del self._received[: end + len(mark)]
        return found

    def _read_exactly(self, size: int) -> bytes:
        if size > _MOST_BYTES:
            raise _Malformed("the response is too large")
        while len(self._received) < size:
            if not self._receive():
                raise ConnectionResetError("closed before the response was complete")
        found = bytes(self._received[:size])
        del self._received[:size]
        return found

    def _read_chunks(self) -> bytes:
        chunks: list[bytes] = []
        while size := int(_matched(_CHUNK, self._read_until(b"\r\n"))[1], 16):
            chunks.append(self._read_exactly(size))
            if self._read_exactly(2) != b"\r\n":
                raise _Malformed("a chunk is longer than its size")
        while trailer := self._read_until(b"\r\n"):
            if b"\r" in trailer or b"\n" in trailer:
                raise _Malformed("a malformed trailer")
        return b"".join(chunks)

    def _read_until_closed(self) -> bytes:
        while self._receive():
            pass
        return bytes(self._received)

    def _read_head(self) -> tuple[int, dict[str, str], bool]:
        """Returns the status, the headers, and whether the connection stays open after the body."""
        head = _matched(_HEAD, self._read_until(b"\r\n\r\n"))[0].decode("latin-1")
        first, *lines = head.split("\r\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        version, status = first[:8], int(first[9:12])
        if version == "HTTP/1.0" and "transfer-encoding" in headers:
            raise _Malformed("HTTP/1.0 has no chunks")
        stays_open = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        return status, headers, stays_open

    def _open_tunnel(self, endpoint: Endpoint) -> None:
        target = f"{endpoint.host}:{endpoint.port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if endpoint.proxy and endpoint.proxy.userinfo:
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(endpoint.proxy.userinfo.encode()).decode()}")
        self._limit_time()
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        status, _, _ = self._read_head()
        if status != 200:
            raise ConnectionRefusedError("the proxy refused the connection")


def _matched(pattern: re.Pattern[bytes], text: bytes) -> re.Match[bytes]:
    match = pattern.fullmatch(text)
    if match is None:
        raise _Malformed("not HTTP")
    return match


def _length(value: str) -> int:
    """Returns the length that the header gives, or gives several times (RFC 9112 section 6.3)."""
    first, *others = {length.strip(" \t") for length in value.split(",")}
    if others or not _LENGTH.fullmatch(first):
        raise _Malformed("the length isn't a number")
    return int(first)


class Connections:
    """The open connections to an endpoint. Threads can share them: each call has a connection to itself."""

    def __init__(self, endpoint: Endpoint, limit: TimeLimit = NO_LIMIT) -> None:
        self._endpoint = endpoint
        self._limit = limit
        self._idle: list[Connection] = []

    def exchange(self, request: bytes) -> Response:
        """Raises NoAnswer, or StaleConnection if an open connection turned out to be closed."""
        connection = self._take_idle()
        is_new = connection is None
        try:
            connection = connection or Connection(self._endpoint, self._limit)
            response, stays_open = connection.exchange(request)
        except OSError as error:
            if connection is None:
                raise NoAnswer(type(error).__name__) from error
            connection.close()
            if is_new or connection.has_begun or isinstance(error, TimeoutError):
                raise NoAnswer(type(error).__name__) from error
            self.close_idle()  # all of them have been idle for about as long
            raise StaleConnection(type(error).__name__) from error
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        if stays_open and len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def __del__(self) -> None:
        self.close_idle()

    def close_idle(self) -> None:
        while connection := self._pop():
            connection.close()

    def _take_idle(self) -> Connection | None:
        """Returns the connection that was used last, or None. Closes those that the server has closed."""
        while (connection := self._pop()) and connection.is_dead():
            connection.close()
        return connection

    def _pop(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have taken the last one
            return None
