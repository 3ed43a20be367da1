"""A server that accepts connections and then fails like a broken dependency, in virtual time.

It has no connections, and nothing waits: a wait for it ends at once, and moves the clock by the time that the socket
would have waited. The clock replaces the one of deadlines and of pauses between attempts.
"""

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any
from unittest.mock import patch

from controlplane.platform.core import deadline


class FailureMode(StrEnum):
    """The ways in which the server fails."""

    SILENT = "never answers"
    TRICKLING = "sends a byte now and then"
    STALLING = "sends headers and no body"
    RESETTING = "resets each connection"
    REFUSING = "accepts no connection"


_TRICKLE_SECONDS = 0.05
_HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 1000\r\n\r\n{"
_PORTS = itertools.count(1)


class VirtualTime:
    """A clock that waits move. Two waits that begin at the same time also end at the same time."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self._seconds

    def wait(self, seconds: float, since: float | None = None) -> None:
        until = (self._seconds if since is None else since) + seconds
        with self._lock:
            self._seconds = max(self._seconds, until)


class HungServer:
    """`url` is its address; `connections` counts the accepted connections; `time` is the clock."""

    def __init__(self, failure_mode: FailureMode) -> None:
        self.failure_mode = failure_mode
        self.connections = 0
        self.time = VirtualTime()
        self.port = next(_PORTS)
        self.url = f"http://127.0.0.1:{self.port}"

    def accept(self) -> None:
        if self.failure_mode is FailureMode.REFUSING:
            raise ConnectionRefusedError
        self.connections += 1

    def send(self, sent: int, timeout: float | None, since: float | None) -> bytes:
        """Returns the bytes that follow those already sent. Raises what a socket raises.

        timeout: the client's, which began at `since`, or begins now.
        """
        if self.failure_mode is FailureMode.RESETTING:
            raise ConnectionResetError
        if self.failure_mode is FailureMode.STALLING and not sent:
            return _HEADERS
        assert timeout is not None, "the client would wait forever"
        if self.failure_mode is FailureMode.TRICKLING and timeout > _TRICKLE_SECONDS:
            self.time.wait(_TRICKLE_SECONDS, since)
            return (_HEADERS[sent:] or b" ")[:1]
        self.time.wait(timeout, since)
        raise TimeoutError("timed out")


@contextmanager
def hung_server(failure_mode: FailureMode = FailureMode.SILENT) -> Iterator[HungServer]:
    server = HungServer(failure_mode)

    class Socket(socket.socket):
        """A socket that may be connected to the server. Otherwise, it is an ordinary one."""

        is_hung = False
        received = 0
        since: float | None = None

        def connect(self, address: Any) -> None:
            self.is_hung = address[1] == server.port
            if self.is_hung:
                server.accept()
            else:
                super().connect(address)

        def settimeout(self, value: float | None) -> None:
            super().settimeout(value)
            self.since = server.time()

        def sendall(self, data: Any, flags: int = 0) -> None:
            if not self.is_hung:
                super().sendall(data, flags)

        def recv(self, bufsize: int, flags: int = 0) -> bytes:
            return self._receive() if self.is_hung else super().recv(bufsize, flags)

        def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
            if not self.is_hung:
                return super().recv_into(buffer, nbytes, flags)
            arrived = self._receive()
            buffer[: len(arrived)] = arrived
            return len(arrived)

        def _receive(self) -> bytes:
            since, self.since = self.since, None
            arrived = server.send(self.received, self.gettimeout(), since)
            self.received += len(arrived)
            return arrived

    with (
        patch.object(socket, "socket", Socket),
        patch.object(deadline, "source", server.time),
        patch.object(time, "sleep", server.time.wait),
    ):
        yield server
