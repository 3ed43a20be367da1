"""Requests to endpoints go only to public addresses, follow no redirect, and end in time."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from controlplane.notify import webhook_urls
from controlplane.notify.webhook_urls import UnacceptableUrl
from controlplane.platform.core.settings import settings
from notifications import transport
from notifications.transport import NotDelivered, checked_addresses

ACCEPTABLE = (
    "https://hooks.example.com",
    "https://hooks.example.com/a?b=c",
    "https://hooks.example.com:8443/",
    "https://HOOKS.Example.COM./",
    "https://xn--bcher-kva.example/",
    "https://hooks.slack.com/services/T0/B0/x",
)
UNACCEPTABLE = (
    "http://hooks.example.com", "ftp://hooks.example.com", "//hooks.example.com", "hooks.example.com", "https://",
    "https:///path", "https://localhost", "https://localhost.", "https://api.localhost/",
    "https://metadata.google.internal/", "https://router.local", "https://router.lan", "https://router.home",
    "https://hooks.corp", "https://1.0.0.10.in-addr.arpa", "https://hooks.onion", "https://hooks.test",
    "https://hooks.invalid", "https://intranet", "https://127.0.0.1", "https://127.1", "https://2130706433",
    "https://0x7f000001", "https://0x7f.1.example.0x1", "https://017700000001",
    "https://169.254.169.254/latest/meta-data", "https://8.8.8.8", "https://[::1]", "https://[::ffff:127.0.0.1]/",
    "https://[fd00:ec2::254]/", "https://user@hooks.example.com", "https://user:password@hooks.example.com",
    "https://:password@hooks.example.com", "https://hooks.example.com@127.0.0.1", "https://hooks.example.com:22",
    "https://hooks.example.com:80", "https://hooks.example.com:0", "https://hooks.example.com:99999",
    "https://hooks.example.com:x", "https://hooks.example.com/#fragment", "https://hooks.example.com\\@127.0.0.1/",
    "https://hooks.example.com/a b", "https://hooks.example.com/\r\nX-Injected: 1", "https://hooks.example.com/\t",
    "https://bücher.example", "https://hooks.example.com/bücher", "https://hooks.example.com/<",
    "https://hooks.example.com/#", "https://①27.0.0.1", "https://hooks..example.com", "https://-.example.com",
    "https://hooks.example.com/" + "a" * 1_000,
)  # fmt: skip
PUBLIC = ("8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2a00:1450:4001:830::200e")
NOT_PUBLIC = (
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.255", "169.254.0.1",
    "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1",
    "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
    "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "4000::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1",
)  # fmt: skip


@pytest.fixture
def _local(monkeypatch):
    local = settings.model_copy(update={"webhooks_to_this_machine": True})
    monkeypatch.setattr(webhook_urls, "settings", local)


class TestUrls:
    def test_only_public_https_urls_are_acceptable(self):
        for url in ACCEPTABLE:
            assert webhook_urls.parse(url).scheme == "https", url
        for url in UNACCEPTABLE:
            with pytest.raises(UnacceptableUrl):
                pytest.fail(f"{webhook_urls.parse(url)} of {url!r}")
        longest = "https://hooks.example.com/".ljust(1_000, "a")
        assert webhook_urls.parse(longest).path == "/" + "a" * 974
        with pytest.raises(UnacceptableUrl, match="longer than 1,000"):
            webhook_urls.parse(longest + "a")

    def test_the_target_is_where_the_url_leads(self):
        for url, target, authority in (
            ("https://A.example.com.", ("https", "a.example.com", 443, "/"), "a.example.com"),
            ("https://a.example.com:443?b=c", ("https", "a.example.com", 443, "/?b=c"), "a.example.com"),
            ("https://a.example.com:8443/d", ("https", "a.example.com", 8443, "/d"), "a.example.com:8443"),
        ):
            assert webhook_urls.parse(url) == target
            assert webhook_urls.parse(url).authority == authority

    @pytest.mark.usefixtures("_local")
    def test_local_runs_also_accept_this_machine(self):
        assert webhook_urls.parse("http://127.0.0.1:8300/").authority == "127.0.0.1:8300"
        assert webhook_urls.parse("http://localhost/") == ("http", "localhost", 80, "/")
        assert webhook_urls.parse("http://[::1]/").authority == "[::1]"
        assert webhook_urls.parse("http://[::1]:1/").port == 1
        assert webhook_urls.parse("https://localhost/").authority == "localhost"
        assert webhook_urls.is_public("127.0.0.1")
        for url in ("ftp://127.0.0.1", "http://user@127.0.0.1", "http://", "http://127.0.0.1:0"):
            with pytest.raises(UnacceptableUrl):
                webhook_urls.parse(url)


class TestAddresses:
    def test_only_public_addresses_are_called(self):
        for address in PUBLIC:
            assert checked_addresses("host", 443, lambda *_: [address]) == [address]  # noqa: B023
        with pytest.raises(NotDelivered, match="dns"):
            checked_addresses("host", 443, lambda *_: [])
        for address in NOT_PUBLIC:
            for found in ([address], [PUBLIC[0], address], [address, PUBLIC[0]]):
                with pytest.raises(NotDelivered, match="address"):
                    pytest.fail(f"{checked_addresses('host', 443, lambda *_: found)}")  # noqa: B023

    def test_the_address_that_was_checked_is_the_one_that_is_called(self, monkeypatch):
        """A name that resolves to something else at the second time isn't asked twice."""
        asked, called = [], []

        def resolve(host: str, _port: int) -> list[str]:
            asked.append(host)
            return [PUBLIC[0]] if len(asked) == 1 else ["127.0.0.1"]

        def connect(address: tuple[str, int], _timeout: float) -> socket.socket:
            called.append(address)
            raise ConnectionRefusedError

        monkeypatch.setattr(transport, "_resolve", resolve)
        monkeypatch.setattr(socket, "create_connection", connect)
        with pytest.raises(NotDelivered, match="connection"):
            transport.post("https://hooks.example.com/", b"{}", {})
        assert (asked, called) == (["hooks.example.com"], [(PUBLIC[0], 443)])


type Behavior = Callable[[socket.socket], None]


@contextmanager
def serving(behavior: Behavior) -> Iterator[str]:
    """Yields the URL of a server on this machine that treats one connection like that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                behavior(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook?a=b"
        thread.join(5)


def trickling(done: threading.Event) -> Behavior:
    """Returns the behavior of a server that sends headers until the event is set."""

    def drip(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not done.wait(0.02):
                connection.sendall(b"X-More: 1\r\n")

    return drip


@pytest.mark.usefixtures("_local")
class TestResponses:
    def test_the_status_is_returned_without_reading_the_body_or_following_a_redirect(self):
        received: list[bytes] = []

        def redirect(connection: socket.socket) -> None:
            received.append(connection.recv(65_536))
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 9999\r\n\r\n")

        with serving(redirect) as url:
            assert transport.post(url, b'{"a": 1}', {"webhook-id": "evt_1"}) == 302
        (request,) = received
        head, _, body = request.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
        assert b"webhook-id: evt_1" in head
        assert body in {b'{"a": 1}', b""}

    def test_an_endpoint_that_never_answers_or_answers_forever_is_a_timeout(self, monkeypatch):
        monkeypatch.setattr(transport, "_TOTAL_SECONDS", 0.2)
        done = threading.Event()

        def hang(connection: socket.socket) -> None:
            done.wait(3)

        for behavior in (hang, trickling(done)):
            done.clear()
            with serving(behavior) as url:
                with pytest.raises(NotDelivered, match="timeout"):
                    transport.post(url, b"{}", {})
                done.set()

    @pytest.mark.parametrize("step", ["resolve", "connect", "tls"])
    def test_a_trickling_response_is_ended_if_the_deadline_passed_before_it_began(self, step, monkeypatch):
        """The time for all steps is up while one of the first is running, after which the server trickles a header."""
        monkeypatch.setattr(transport, "_TOTAL_SECONDS", 0.2)
        done = threading.Event()
        steps: dict[str, tuple[Any, str]] = {
            "resolve": (transport, "_resolve"),
            "connect": (socket, "create_connection"),
            "tls": (transport._Connection, "_secured"),
        }
        slow = steps[step]
        inner = getattr(*slow)

        def outer(*given: Any) -> Any:
            done.wait(0.3)
            return inner(*given)

        monkeypatch.setattr(*slow, outer)
        with serving(trickling(done)) as url:
            threading.Timer(3, done.set).start()
            started = time.monotonic()
            with pytest.raises(NotDelivered, match="timeout"):
                transport.post(url, b"{}", {})
            assert time.monotonic() - started < 2
            done.set()
            with suppress(OSError), socket.socket() as other:  # the server may still wait for a connection
                other.connect(("127.0.0.1", webhook_urls.parse(url).port))

    def test_what_is_no_response_is_a_lost_connection(self):
        for answer in (
            b"",
            b"SMTP ready\r\n\r\n",
            b"HTTP/1.1 999999 Odd\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"A: 1\r\n" * 101,
        ):
            with serving(lambda it: it.sendall(answer)) as url, pytest.raises(NotDelivered, match="connection"):  # noqa: B023
                transport.post(url, b"{}", {})

    def test_a_server_without_tls_fails_the_handshake(self):
        answer = b"HTTP/1.1 200 OK\r\n\r\n"
        with serving(lambda it: it.sendall(answer)) as url, pytest.raises(NotDelivered) as failure:
            transport.post(url.replace("http:", "https:"), b"{}", {})
        assert failure.value.reason in {"tls", "connection"}
