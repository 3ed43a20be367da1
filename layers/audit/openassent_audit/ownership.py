"""Proof that a website belongs to who audits it: a DNS record, a file, or a request to the project's consent instance.

The token is in the TXT record `_BRAND-audit.HOST`, or in the file BRAND-audit.txt of the folder `.well-known`.
"""

import asyncio
import http.client
import re
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from openassent_audit.limits import Limits
from openassent_audit.network import Network
from openassent_audit.proxy import Proxy
from openassent_audit.recording import split
from openassent_audit.report import Audit
from openassent_audit.sites import same_site

Proof = Literal["dns", "file", "consent"]

_SECONDS: Final = 10
_MOST_BYTES, _MOST_CHARACTERS = 100_000, 1_000  # a certificate's chain has some thousand
_RESOLVERS: Final = Path("/etc/resolv.conf")
_PORT, _TXT = 53, 16
# RFC 6891: answers of up to 1,232 bytes.
_EDNS: Final = bytes.fromhex("00 0029 04d0 00000000 0000")


async def read_texts(name: str) -> Sequence[str]:
    """Returns the texts of a DNS name, from the system's resolvers. Raises OSError and ValueError."""
    listed = re.findall(r"^nameserver\s+(\S+)", await asyncio.to_thread(_RESOLVERS.read_text), re.MULTILINE)
    error = OSError("no resolver")
    for server in listed[:3]:
        try:
            return await asyncio.to_thread(_ask, server, name)
        except OSError as raised:
            error = raised
    raise error


async def find_proof(
    audit: Audit,
    token: str,
    *,
    brand: str,
    consent_url: str | None = None,
    network: Network,
    lookup: Callable[[str], Awaitable[Sequence[str]]] = read_texts,
    trusted: ssl.SSLContext | None = None,
) -> Proof | None:
    """Returns the kind of proof that the audited website is the organization's, or None.

    consent_url: the address below which pages with the consent instance make requests. trusted: for the file's server.
    """
    if consent_url and _asks(audit, consent_url.rstrip("/")):
        return "consent"
    with suppress(OSError, ValueError):
        async with asyncio.timeout(_SECONDS):
            if token in await lookup(f"_{brand}-audit.{audit.host}"):
                return "dns"
    with suppress(OSError, ValueError, http.client.HTTPException):
        async with asyncio.timeout(_SECONDS):
            path = f"/.well-known/{brand}-audit.txt"
            if token == await _read_file(audit.host, path, network, trusted or ssl.create_default_context()):
                return "file"
    return None


def _asks(audit: Audit, base: str) -> bool:
    """Returns whether the website's own code makes such a request. That of an advertisement proves nothing."""
    found = (it for visit in audit.visits for it in visit.requests if f"{it.url}/".startswith(f"{base}/"))
    return any(it.chain and all(same_site(split(by).hostname or "", audit.host) for by in it.chain) for it in found)


async def _read_file(host: str, path: str, network: Network, trusted: ssl.SSLContext) -> str | None:
    """Returns a small file of the website itself, without following redirects, or None if it has none.

    The proxy of the visits makes the connection, and ends it when this is canceled.
    """
    limits = Limits(connections=1, bytes=_MOST_BYTES)
    async with Proxy(limits, network, on_limit=lambda _: None, on_data=lambda _: None) as proxy:
        return await asyncio.to_thread(_fetch, urlsplit(proxy.address), host, path, trusted)


def _fetch(proxy: SplitResult, host: str, path: str, trusted: ssl.SSLContext) -> str | None:
    connection = http.client.HTTPSConnection(str(proxy.hostname), proxy.port, timeout=_SECONDS, context=trusted)
    connection.set_tunnel(host)
    try:
        connection.request("GET", path, headers={"accept": "text/plain"})
        answer = connection.getresponse()
        return answer.read(_MOST_CHARACTERS).decode().strip() if answer.status == http.client.OK else None
    finally:
        connection.close()


def _ask(server: str, name: str) -> list[str]:
    number = secrets.token_bytes(2)
    labels = b"".join(bytes([len(it)]) + it for it in name.encode("ascii").split(b"."))
    counts = (1).to_bytes(2) + bytes(4) + (1).to_bytes(2)
    question = number + b"\x01\x00" + counts + labels + b"\x00" + _TXT.to_bytes(2) + (1).to_bytes(2)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asked:
        asked.settimeout(_SECONDS / 4)
        asked.connect((server, _PORT))
        asked.send(question + _EDNS)
        answer = asked.recv(4_096)
    if answer[:2] != number:
        raise ValueError("an answer to another question")
    return read_answer(answer)


def read_answer(answer: bytes) -> list[str]:
    """Returns the texts in an answer (RFC 1035 section 4). Raises ValueError if it is malformed."""
    found = []
    try:
        at = 12
        for _ in range(int.from_bytes(answer[4:6])):
            at = _after_name(answer, at) + 4
        for _ in range(int.from_bytes(answer[6:8])):
            at = _after_name(answer, at)
            kind, length = int.from_bytes(answer[at : at + 2]), int.from_bytes(answer[at + 8 : at + 10])
            at += 10
            if kind == _TXT:
                found.append(_text(answer[at : at + length]))
            at += length
    except IndexError:
        raise ValueError("an incomplete answer") from None
    return found


def _after_name(answer: bytes, at: int) -> int:
    while length := answer[at]:
        if length >= 0xC0:  # the rest of the name is elsewhere
            return at + 2
        at += length + 1
    return at + 1


def _text(content: bytes) -> str:
    """Returns the parts of a record in one, which are written with their lengths."""
    parts = b""
    while content:
        parts, content = parts + content[1 : content[0] + 1], content[content[0] + 1 :]
    return parts.decode(errors="replace")
