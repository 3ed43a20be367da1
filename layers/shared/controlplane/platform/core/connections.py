"""HTTP connections of libraries that honor the request's deadline (`controlplane.platform.core.deadline`).

A socket timeout restarts with each byte received, so a server that trickles its response could block a request forever.
Here the timeout of every connect, send, and receive is capped at the time left.
"""

import io
import socket
from http.client import HTTPResponse
from typing import Any

from controlplane.platform.core import deadline


class _BoundedStream(io.RawIOBase):
    """The bytes of a response. The deadline caps the timeout of each read."""

    def __init__(self, stream: io.RawIOBase, sock: socket.socket) -> None:
        self._stream, self._sock = stream, sock
        self._timeout = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(deadline.bounded(self._timeout))
        if deadline.is_over():
            raise TimeoutError("timed out")
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _BoundedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_BoundedStream(self.fp.detach(), sock))


class BoundedConnection:
    """Mixin for connections of http.client or urllib3. They read `timeout` before each socket operation."""

    response_class: Any = _BoundedResponse
    _timeout: float | None = None

    @property
    def timeout(self) -> float | None:
        return deadline.bounded(self._timeout)

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._timeout = seconds
