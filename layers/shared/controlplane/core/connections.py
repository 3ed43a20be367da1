"""HTTP connections that honor the request's deadline, for all clients that call a dependency during a request.

A socket timeout restarts with each byte received, so a server that trickles its response could block a request forever,
and a retry could start after the deadline. Here the timeout of every connect, send, and receive is capped at the time
left (`controlplane.core.deadline`), and botocore retries only if its backoff ends before the deadline.
"""

import io
import socket
from http.client import HTTPResponse
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.retries import standard

from controlplane.core import deadline


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


class _Connection(BoundedConnection, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _TlsConnection(BoundedConnection, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _Connection


class _TlsPool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _TlsConnection


_POOLS = {"http": _Pool, "https": _TlsPool}


def bound(client: Any, attempts: int) -> None:
    """Makes a new botocore client honor the deadline.

    The client must use the standard retry mode; `attempts` is its configured total_max_attempts.
    """
    session = client._endpoint.http_session
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = _POOLS
    name = client.meta.service_model.service_id.hyphenize()
    event, unique_id = f"needs-retry.{name}", f"retry-config-{name}"
    client.meta.events.unregister(event, unique_id=unique_id)
    handler = standard.register_retry_handler(client, attempts)
    client.meta.events.unregister(event, unique_id=unique_id)

    def pause_before_retry(**outcome: Any) -> float | None:
        """Returns the backoff in seconds, or None to accept the outcome without a retry."""
        pause: float | None = handler.needs_retry(**outcome)
        left = deadline.remaining()
        return None if pause is None or (left is not None and pause >= left) else pause

    client.meta.events.register(event, pause_before_retry, unique_id=unique_id)
