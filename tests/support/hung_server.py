"""A server that accepts connections and then fails like a broken dependency."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class FailureMode(StrEnum):
    """The ways in which the server fails."""

    SILENT = "never answers"
    TRICKLING = "sends a byte now and then"
    STALLING = "sends headers and no body"
    RESETTING = "resets each connection"
    REFUSING = "accepts no connection"


_TRICKLE_SECONDS = 0.05
_HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 1000\r\n\r\n{"


class HungServer:
    """`url` is its address; `connections` counts the accepted connections."""

    def __init__(self, failure_mode: FailureMode) -> None:
        self.failure_mode = failure_mode
        self.connections = 0
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        if failure_mode is FailureMode.REFUSING:
            self._listener.close()
        else:
            threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if self.failure_mode is FailureMode.RESETTING:
                # Closing with a linger time of 0 sends an RST.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if self.failure_mode is FailureMode.STALLING:
                connection.recv(65_536)
                connection.sendall(_HEADERS)
            elif self.failure_mode is FailureMode.TRICKLING:
                connection.recv(65_536)
                for byte in _HEADERS + b" " * 10_000:
                    if self._closed.wait(_TRICKLE_SECONDS):
                        return
                    connection.sendall(bytes([byte]))
            self._closed.wait()


@contextmanager
def hung_server(failure_mode: FailureMode = FailureMode.SILENT) -> Iterator[HungServer]:
    server = HungServer(failure_mode)
    try:
        yield server
    finally:
        server.close()
