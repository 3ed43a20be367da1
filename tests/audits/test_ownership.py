"""Proof of ownership: the file, read over TLS from the tests' internet; the DNS record; the consent instance."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from openassent_audit import Audit, ownership
from openassent_audit.network import Resolution
from openassent_audit.ownership import find_proof, read_answer, read_texts
from openassent_audit.recording import Sent
from openassent_audit.vendors import Parties
from openassent_audit.visits import Visit
from tests.audits.internet import PUBLIC, Internet, certified
from tests.support.each import each

TOKEN, HOST = "3f8k2m9q7r1s5t6v", "localhost"  # the name in the tests' certificate
CONSENT = "https://api.assent.test/v1/consent-instances/cin"
NO_RESOLVER = OSError("no resolver")
FILE = "/.well-known/assent-audit.txt"
CERTIFICATE = "localhost.pem"


class OneFile(Internet):
    """The internet of a website that has one file."""

    def __init__(self, folder: Path, status: int, content: str, address: str) -> None:
        super().__init__({}, folder)
        self.file = status, [("content-type", "text/plain"), ("location", "/")], content.encode()
        self.answers[HOST] = lambda _: Resolution((address,), HOST)

    async def answer(self, host: str, path: str, writer: asyncio.StreamWriter):
        assert host == HOST
        if self.file[2] == b"never":
            await asyncio.sleep(60)
        return self.file if path == FILE else (200, [], TOKEN.encode())


def audit(*urls: str) -> Audit:
    """Returns an audit whose page makes these requests. Those after a space are by the script before it."""
    now, page = datetime.now(UTC), f"https://{HOST}/"
    chains = [(*it.split()[:-1], page) for it in urls]
    sent = [Sent(it.split()[-1], "fetch", 0, page, False, chain) for it, chain in zip(urls, chains, strict=True)]
    return Audit(page, HOST, now, now, "passed", Parties(HOST, {}), visits=[Visit("untouched", requests=sent)])


@pytest.fixture
def proof(tmp_path: Path):
    """Returns the proof of a website that makes these requests, and has this file and record."""
    context = certified(tmp_path)

    def find(*urls, file="", record: str | OSError = "", address=PUBLIC, status=200, trusts=True):
        async def lookup(name: str) -> Sequence[str]:
            assert name == f"_assent-audit.{HOST}"
            if isinstance(record, OSError):
                raise record
            return ["v=spf1 -all", record]

        async def run() -> str | None:
            there = OneFile(tmp_path, status, file, address)
            async with await asyncio.start_server(there.serve, "127.0.0.1", 0, ssl=context) as server:
                there.ports = {443: server.sockets[0].getsockname()[1]}
                trusted = ssl.create_default_context(cafile=tmp_path / CERTIFICATE if trusts else None)
                options = {"network": there.network, "lookup": lookup, "trusted": trusted}
                return await find_proof(audit(*urls), TOKEN, brand="assent", consent_url=CONSENT, **options)

        return asyncio.run(run())

    return find


class TestProof:
    @each(
        ("urls", "given", "expected"),
        [
            ([f"{CONSENT}/configuration"], {}, "consent"),
            ([f"https://{HOST}/app.js {CONSENT}"], {}, "consent"),
            ([f"https://ads.example/ad.js {CONSENT}"], {}, None),
            ([f"http://[x {CONSENT}"], {}, None),
            ([f"{CONSENT}-of-others", "https://api.assent.test/"], {}, None),
            ([], {"record": TOKEN}, "dns"),
            ([], {"record": f"{TOKEN}x"}, None),
            ([], {"file": f"{TOKEN}\n"}, "file"),
            ([], {"file": TOKEN, "record": NO_RESOLVER}, "file"),
            ([], {"file": f"{TOKEN} and more"}, None),
            ([], {"file": TOKEN + "\n" * 5_000}, "file"),
            ([], {"file": "\n" * 200_000 + TOKEN}, None),
            ([], {"file": TOKEN, "status": 404}, None),
            ([], {"file": TOKEN, "status": 302}, None),
            ([], {"file": TOKEN, "address": "10.0.0.8"}, None),
            ([], {"file": TOKEN, "trusts": False}, None),
            ([], {"record": NO_RESOLVER}, None),
        ],
    )
    def test_each_way(self, proof, urls, given, expected):
        assert proof(*urls, **given) == expected

    def test_a_file_that_never_comes_is_given_up(self, proof, monkeypatch):
        monkeypatch.setattr(ownership, "_SECONDS", 0.3)
        assert proof(file="never") is None


def record(text: str, name: bytes = b"\xc0\x0c", kind: int = 16) -> bytes:
    parts = [text[at : at + 255].encode() for at in range(0, len(text), 255)]
    content = b"".join(bytes([len(it)]) + it for it in parts)
    return name + kind.to_bytes(2) + b"\x00\x01" + bytes(4) + len(content).to_bytes(2) + content


def answered(*records: bytes) -> bytes:
    question = b"\x01_\x04test\x00\x00\x10\x00\x01"
    return b"\x12\x34\x81\x80\x00\x01" + len(records).to_bytes(2) + bytes(4) + question + b"".join(records)


@pytest.fixture
def resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Serves the system's resolver, and yields the questions that it got."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)

        def serve() -> None:
            question, sender = server.recvfrom(2_000)
            asked.append(question)
            server.sendto(question[:2] + answered(record(TOKEN))[2:], sender)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        (tmp_path / "resolv.conf").write_text("search test\nnameserver 127.0.0.1\n")
        monkeypatch.setattr(ownership, "_RESOLVERS", tmp_path / "resolv.conf")
        monkeypatch.setattr(ownership, "_PORT", server.getsockname()[1])
        yield asked
        thread.join(10)


class TestDns:
    def test_the_systems_resolver_is_asked_for_the_texts_of_the_name(self, resolver):
        assert asyncio.run(read_texts("_assent-audit.shop.test")) == [TOKEN]
        [question] = resolver
        assert b"\x0d_assent-audit\x04shop\x04test\x00\x00\x10\x00\x01" in question

    def test_records_of_other_kinds_are_skipped_and_parts_joined(self):
        long = "x" * 300
        found = read_answer(answered(record("alias", kind=5), record(TOKEN), record(long, name=b"\x01_\xc0\x0e")))
        assert found == [TOKEN, long]

    @each("length", range(len(answered(record(TOKEN)))))
    def test_an_incomplete_answer_has_no_token(self, length):
        with contextlib.suppress(ValueError):
            assert TOKEN not in read_answer(answered(record(TOKEN))[:length])
