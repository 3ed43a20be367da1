"""HTTP connections that keep the request's deadline, for every client that calls a dependency within a request.

A socket's timeout starts anew with each byte that arrives. So a server that trickles its answer could hold a request
for ever, and a second try could start when the time is up. Here every connect, send and receive gets what the deadline
leaves (`controlplane.deadline`), and botocore's pause before a retry must end before the deadline does.
"""

import io
import socket
from http.client import HTTPResponse
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.retries import standard

from controlplane import deadline


class _BoundedStream(io.RawIOBase):
    """The bytes of an answer. Each wait for more of them is as long as the deadline allows."""

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
    """Mixed into a connection of http.client or urllib3, whose `timeout` is that of the next socket operation."""

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
    """Makes a new botocore client keep the deadline. `attempts` as its configuration says, in standard mode."""
    session = client._endpoint.http_session
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = _POOLS
    name = client.meta.service_model.service_id.hyphenize()
    event, unique_id = f"needs-retry.{name}", f"retry-config-{name}"
    client.meta.events.unregister(event, unique_id=unique_id)
    handler = standard.register_retry_handler(client, attempts)
    client.meta.events.unregister(event, unique_id=unique_id)

    def pause_before_retry(**outcome: Any) -> float | None:
        """The pause, or None to take the outcome as it is."""
        pause: float | None = handler.needs_retry(**outcome)
        left = deadline.remaining()
        return None if pause is None or (left is not None and pause >= left) else pause

    client.meta.events.register(event, pause_before_retry, unique_id=unique_id)
