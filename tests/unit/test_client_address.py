"""The client's address, and which addresses count as one caller."""

from ipaddress import ip_network

import pytest

from controlplane.platform.core.settings import settings
from controlplane.platform.http.client_address import network_of
from controlplane.platform.http.reader import RequestReader
from tests.support.each import each

PROXY = "192.0.2.10"


@each(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("::FFFF:C633:6407", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("testclient", "unknown"),
        ("198.51.100.7, 203.0.113.9", "unknown"),
        ("198.51.100.007", "unknown"),
    ],
)
def test_the_network_of_an_ipv4_address_or_of_64_ipv6_bits(address: str, network: str):
    assert network_of(address) == network


def seen(*headers: str, source: str = PROXY) -> str:
    """Returns the client's address for a request from `source` with these proxy headers."""
    lines = [(b"x-forwarded-for", header.encode("latin-1")) for header in headers]
    return RequestReader({"type": "http", "headers": lines, "client": (source, 1)}).address


class TestBehindAProxy:
    @pytest.fixture(autouse=True)
    def _proxy(self, monkeypatch: pytest.MonkeyPatch):
        networks = tuple(map(ip_network, ("192.0.2.0/24", "2001:db8:ffff::/48")))
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", "X-Forwarded-For")
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_addresses", networks)

    @each(
        ("header", "client"),
        [
            ("198.51.100.7", "198.51.100.7"),
            # The rightmost address that isn't the proxy's: the client may have forged those to its left.
            ("1.2.3.4, 198.51.100.7", "198.51.100.7"),
            ("1.2.3.4,198.51.100.7 ,\t192.0.2.11, 192.0.2.12", "198.51.100.7"),
            ("<script>, 198.51.100.7", "198.51.100.7"),
            ("2001:DB8:0::7", "2001:db8::7"),
            ("198.51.100.7, 2001:db8:ffff::1", "198.51.100.7"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("fe80::1%<script>", "fe80::1"),
            ("192.0.2.11", "192.0.2.11"),
            ("192.0.2.11, 192.0.2.12", "192.0.2.11"),
            # No address: the connection's own address is used.
            ("", PROXY),
            (",", PROXY),
            ("198.51.100.7,", PROXY),
            ("198.51.100.7, unknown", PROXY),
            ("198.51.100.7:1234", PROXY),
            ("198.51.100.007", PROXY),
            ("3325256711", PROXY),
            ("caf\u00e9", PROXY),
            ("198.51.100.7, " + "192.0.2.11, " * 5_000 + "192.0.2.11", "198.51.100.7"),
        ],
    )
    def test_takes_the_rightmost_address_that_isnt_the_proxys(self, header: str, client: str):
        assert seen(header) == client

    def test_repeated_headers_are_one_list(self):
        assert seen("198.51.100.7", "203.0.113.9") == "203.0.113.9"
        assert seen("198.51.100.7", "192.0.2.11") == "198.51.100.7"

    def test_without_the_header_the_gateways_address_is_used(self):
        assert seen() == PROXY

    def test_without_the_name_of_a_header_no_header_is_used(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", None)
        assert seen("198.51.100.7") == PROXY

    @each("source", ["203.0.113.9", "2001:db8::1", "", "testclient"])
    def test_the_header_is_ignored_if_the_peer_isnt_the_proxy(self, source: str):
        assert seen("198.51.100.7", source=source) == source

    @each("source", ["192.0.2.255", "::ffff:192.0.2.1", "2001:db8:ffff:1::2"])
    def test_the_header_is_trusted_from_any_address_of_the_proxy(self, source: str):
        assert seen("198.51.100.7", source=source) == "198.51.100.7"


def test_without_a_proxy_the_header_is_ignored():
    assert seen("198.51.100.7") == PROXY
