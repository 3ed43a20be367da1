"""The forward proxy through which all traffic of the browser goes.

It resolves names itself and connects to the address that it has checked, so a name that resolves to something else the
next time (rebinding) gains nothing. It serves CONNECT and plain HTTP, doesn't look into encrypted traffic, and listens
on the loopback interface for the length of a visit.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from openassent_audit.limits import Limits
from openassent_audit.network import PORTS, Network, Streams, is_public, literal

_LARGEST_HEAD: Final = 65_536
_CHUNK: Final = 65_536
_CONNECT_SECONDS: Final = 15
_HEADER: Final = 5
_APPLICATION_DATA: Final = 23
# The end of a handshake, and the settings of HTTP/2, are in records of application data, too.
_LARGEST_HANDSHAKE: Final = 260
_HOP_BY_HOP: Final = ("proxy-connection", "proxy-authorization", "connection", "keep-alive")


class Refused(Exception):
    """The browser asked for something that isn't allowed."""


@dataclass
class Proxy:
    """A running proxy. `aliases` has the name behind each host that is an alias, `refused` what wasn't allowed.

    on_limit: gets the reason when a limit is reached. From then on, the proxy connects to nothing.
    on_data: gets an address of each host that the browser has sent something to, which a mere connection isn't.
    """

    limits: Limits
    network: Network
    on_limit: Callable[[str], None]
    on_data: Callable[[str], None]
    aliases: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    received: int = 0
    connections: int = 0
    _closed: bool = False
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_LARGEST_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        if self._server is None:
            raise RuntimeError("the proxy isn't running")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """Ends all connections, and accepts no others."""
        self._closed = True
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._closed:
            writer.close()
            return
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the browser reports a failed request
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
        method, target, _ = request.split(" ", 2)
        try:
            there = await self._reach(method, target)
        except Refused as reason:
            self.refused.setdefault(target[:200], str(reason))
            await _answer(writer, "403 Forbidden")
            return
        except (OSError, TimeoutError):
            await _answer(writer, "502 Bad Gateway")
            return
        self._writers.add(there[1])
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                told = f"https://{target.rpartition(':')[0]}/"
                records = Records(lambda: self.on_data(told))
                await self._relay((reader, writer), there, records.read)
            else:
                self.on_data(f"http://{urlsplit(target).netloc}/")
                there[1].write(_forwarded(method, target, headers))
                await self._relay((reader, writer), there, len)
        finally:
            self._writers.discard(there[1])
            there[1].transport.abort()

    async def _reach(self, method: str, target: str) -> Streams:
        """Connects to what a request asks for. Raises Refused and OSError."""
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        if method != "CONNECT" and parts.scheme != "http":
            raise Refused("not an HTTP request")
        port = parts.port or 80
        host = (parts.hostname or "").rstrip(".")
        if not host or port not in PORTS:
            raise Refused(f"port {port}")
        self.connections += 1
        if self.connections > self.limits.connections:
            self._end(f"It opened more than {self.limits.connections:,} connections.")
            raise Refused("too many connections")
        async with asyncio.timeout(_CONNECT_SECONDS):
            found = literal(host) or await self.network.resolve(host, port)
            if found.canonical != host:
                self.aliases[host] = found.canonical
            public = [it for it in found.addresses if is_public(it)]
            if not public:
                raise Refused(f"not a public address: {', '.join(found.addresses) or 'none'}")
            return await self._connect(public, port)

    async def _connect(self, addresses: list[str], port: int) -> Streams:
        error = OSError("no address")
        for address in addresses[:4]:
            try:
                return await self.network.connect(address, port)
            except OSError as raised:
                error = raised
        raise error

    async def _relay(self, browser: Streams, site: Streams, watch: Callable[[bytes], object]) -> None:
        """Copies both ways until both have ended."""
        await asyncio.gather(_copy(browser[0], site[1], watch), _copy(site[0], browser[1], self._count))

    def _count(self, content: bytes) -> None:
        self.received += len(content)
        if self.received > self.limits.bytes:
            self._end(f"It received more than {self.limits.bytes // 1_000_000:,} MB.")

    def _end(self, reason: str) -> None:
        self.on_limit(reason)
        self.stop()


class Records:
    """Reads the lengths of TLS records (RFC 8446 section 5.1), to tell a request from a connection made in advance."""

    def __init__(self, on_data: Callable[[], None]) -> None:
        self._on_data = on_data
        self._head = b""
        self._rest = 0
        self._sent = 0

    def read(self, content: bytes) -> None:
        while content and self._sent <= _LARGEST_HANDSHAKE:
            skipped = min(self._rest, len(content))
            content, self._rest = content[skipped:], self._rest - skipped
            if self._rest or not content:
                return
            wanted = _HEADER - len(self._head)
            self._head, content = self._head + content[:wanted], content[wanted:]
            if len(self._head) == _HEADER:
                self._rest = int.from_bytes(self._head[3:])
                self._sent += self._rest if self._head[0] == _APPLICATION_DATA else 0
                self._head = b""
                if self._sent > _LARGEST_HANDSHAKE:
                    self._on_data()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, watch: Callable[[bytes], object]) -> None:
    while content := await source.read(_CHUNK):
        watch(content)
        sink.write(content)
        await sink.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if sink.can_write_eof():
            sink.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
    await writer.drain()


def _forwarded(method: str, target: str, headers: list[str]) -> bytes:
    """Returns the head for the origin server. The connection serves one request, so the host can't change."""
    parts = urlsplit(target)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    kept = [it for it in headers if it.partition(":")[0].strip().lower() not in _HOP_BY_HOP]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "connection: close", "", ""]).encode("latin-1")
