"""A server on this machine that answers requests as a script says, to break a client's connection at every point."""

import contextlib
import json
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

type Step = Callable[["Conversation"], bool]
"""Answers one request. Returns whether the connection stays open."""


@dataclass
class Conversation:
    """A request, and the connection that it came through."""

    connection: socket.socket
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


@dataclass
class ScriptedServer:
    """`requests` are those received; `connections` counts those accepted. The last step repeats."""

    steps: list[Step]
    tls: ssl.SSLContext | None = None
    requests: list[Conversation] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()

    def close_connections(self) -> None:
        """Ends what is open. Its thread closes it: until then, no other connection can get its number."""
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self._open.append(connection)
            while conversation := _receive(connection):
                with self._lock:
                    self.requests.append(conversation)
                    step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
                if not step(conversation):
                    break
        connection.close()


def _receive(connection: socket.socket) -> Conversation | None:
    pending = b""
    while b"\r\n\r\n" not in pending:
        if not (received := connection.recv(65_536)):
            return None
        pending += received
    head, _, body = pending.partition(b"\r\n\r\n")
    conversation = Conversation(connection, head, body)
    while len(conversation.body) < int(conversation.headers.get("content-length", "0")):
        conversation.body += connection.recv(65_536)
    return conversation


def answer(content: Any, status: int = 200, **headers: str) -> Step:
    """Answers with JSON and its checksum. Headers are added, with `_` for `-`; an empty one removes a default."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    named = {"x-amz-crc32": str(zlib.crc32(body)), "content-length": str(len(body))}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return raw(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body)


def raw(response: bytes, *, stays_open: bool = True) -> Step:
    def step(conversation: Conversation) -> bool:
        conversation.connection.sendall(response)
        return stays_open

    return step


def reset(conversation: Conversation) -> bool:
    """Resets the connection without a response."""
    conversation.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def hang_up(conversation: Conversation) -> bool:
    """Closes the connection without a response."""
    return False


def silence(conversation: Conversation) -> bool:
    """Never answers."""
    return True


@contextmanager
def scripted_server(*steps: Step, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    server = ScriptedServer(list(steps), tls)
    try:
        yield server
    finally:
        server.close()
