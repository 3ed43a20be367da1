"""The internet of the tests of audits: small websites and their third parties, on servers of this machine.

Every name resolves to the same public address, and connections to it go to the local servers.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.machine import certificate
from local.checkout import ROOT
from openassent_audit import Network
from openassent_audit.network import Resolution, Streams
from tests.audits.sites import ID, TAG, YEAR, Site

MODULES = ROOT / "node_modules"
# A public address that nothing here connects to.
PUBLIC = "93.184.215.14"
FILES = {
    "cookieconsent.umd.js": "vanilla-cookieconsent/dist/cookieconsent.umd.js",
    "cookieconsent.js": "vanilla-cookieconsent-2/dist/cookieconsent.js",
    "cookieconsent.css": "vanilla-cookieconsent-2/dist/cookieconsent.css",
    "klaro.js": "klaro/dist/klaro.js",
    "cookieconsent.min.js": "cookieconsent/build/cookieconsent.min.js",
    "orejime-standard-en.js": "orejime/dist/orejime-standard-en.js",
    "c15t.css": "@c15t/react/dist/styles.tw3.css",
}


def certified(folder: Path) -> ssl.SSLContext:
    """Returns the context of a server whose certificate only the tests' browser accepts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))
    return context


@dataclass
class Internet:
    """The websites and their third parties. asked: hosts that got a connection."""

    sites: dict[str, Site]
    folder: Path
    ports: dict[int, int] = field(default_factory=dict)
    answers: dict[str, Callable[[int], Resolution]] = field(default_factory=dict)
    lookups: Counter[str] = field(default_factory=Counter)
    connected: list[str] = field(default_factory=list)

    @property
    def network(self) -> Network:
        return Network(self.resolve, self.connect)

    async def resolve(self, host: str, port: int) -> Resolution:
        self.lookups[host] += 1
        if host in self.answers:
            return self.answers[host](self.lookups[host])
        name, _, rest = host.partition(".")
        site = self.sites.get(host) or self.sites.get(rest)
        aliases = site.aliases if site else {}
        return Resolution((PUBLIC,), aliases.get(f"{name}.SITE", host))

    async def connect(self, address: str, port: int) -> Streams:
        self.connected.append(address)
        if address != PUBLIC:
            raise OSError("unreachable")
        return await asyncio.open_connection("127.0.0.1", self.ports[port])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request, *lines = head.split("\r\n")
                named = dict(it.lower().split(": ", 1) for it in lines if ": " in it)
                if size := int(named.get("content-length", 0)):
                    await reader.readexactly(size)
                status, headers, body = await self.answer(named["host"], urlsplit(request.split(" ")[1]).path, writer)
                listed = [*headers, ("content-length", str(len(body)))]
                writer.write(f"HTTP/1.1 {status} -\r\n".encode())
                writer.write("".join(f"{name}: {value}\r\n" for name, value in listed).encode() + b"\r\n" + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.transport.abort()

    async def answer(
        self, host: str, path: str, writer: asyncio.StreamWriter
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        site = self.sites.get(host)
        if site is None:
            return third_party(host, path)
        if path == "/never":
            await asyncio.sleep(60)
        if path == "/huge":
            writer.write(b"HTTP/1.1 200 -\r\ncontent-type: text/plain\r\n\r\n")
            for _ in range(200):
                writer.write(b"x" * 1_000_000)
                await writer.drain()
        file = path.strip("/")
        if file in FILES or file.startswith("tarteaucitron/"):
            stored = MODULES / (FILES.get(file) or file.replace("tarteaucitron/", "tarteaucitronjs/"))
            kind = "text/css" if file.endswith(".css") else "text/javascript"
            return 200, [("content-type", kind)], stored.read_bytes()
        if path == "/c15t.js":
            return 200, [("content-type", "text/javascript")], (self.folder / "c15t.js").read_bytes()
        if path == "/go":
            return 302, [("location", "https://www.facebook.com/tr?id=1")], b""
        if path == "/":
            return site.status, [("content-type", "text/html"), *site.headers], page(site.body, host)
        if path in site.pages:
            return 200, [("content-type", "text/html")], page(site.pages[path], host)
        return 404, [], b""


def third_party(host: str, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
    if host == "ad.doubleclick.net":
        return 200, [("set-cookie", f"IDE={ID}; Max-Age={YEAR}; Secure; SameSite=None")], b""
    if path == "/nested":
        return 200, [("content-type", "text/html")], page(TAG, host)
    return 200, [("content-type", "text/javascript"), ("access-control-allow-origin", "*")], b""


def page(body: str, host: str) -> bytes:
    markup = f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>{body}'
    return markup.replace("SITE", host).encode()


@asynccontextmanager
async def internet(sites: dict[str, Site], folder: Path) -> AsyncIterator[Internet]:
    made = Internet(sites, folder)
    plain = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    encrypted = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=certified(folder))
    made.ports = {80: plain.sockets[0].getsockname()[1], 443: encrypted.sockets[0].getsockname()[1]}
    yield made
    plain.close()
    encrypted.close()
