"""The client's address, and which addresses count as one caller."""

from ipaddress import ip_network

import pytest

from controlplane.platform.core.settings import settings
from controlplane.platform.http.client_address import network_of
from controlplane.platform.http.reader import RequestReader

PROXY = "192.0.2.10"
NETWORKS = {
    "198.51.100.7": "198.51.100.7",
    "::ffff:198.51.100.7": "198.51.100.7",
    "::FFFF:C633:6407": "198.51.100.7",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:0DB8:0001:0002::": "2001:db8:1:2::/64",
    "fe80::1%eth0": "fe80::/64",
    **dict.fromkeys(("", "testclient", "198.51.100.7, 203.0.113.9", "198.51.100.007"), "unknown"),
}
NO_ADDRESS = (
    "", ",", "198.51.100.7,", "198.51.100.7, unknown", "198.51.100.7:1234", "198.51.100.007", "3325256711", "caf\u00e9",
)  # fmt: skip
# The rightmost address that isn't the proxy's: the client may have forged those to its left.
FORWARDED = {
    "198.51.100.7": "198.51.100.7",
    "1.2.3.4, 198.51.100.7": "198.51.100.7",
    "1.2.3.4,198.51.100.7 ,\t192.0.2.11, 192.0.2.12": "198.51.100.7",
    "<script>, 198.51.100.7": "198.51.100.7",
    "2001:DB8:0::7": "2001:db8::7",
    "198.51.100.7, 2001:db8:ffff::1": "198.51.100.7",
    "::ffff:198.51.100.7": "198.51.100.7",
    "fe80::1%<script>": "fe80::1",
    "192.0.2.11": "192.0.2.11",
    "192.0.2.11, 192.0.2.12": "192.0.2.11",
    "198.51.100.7, " + "192.0.2.11, " * 5_000 + "192.0.2.11": "198.51.100.7",
    # The connection's own address is used.
    **dict.fromkeys(NO_ADDRESS, PROXY),
}


def seen(*headers: str, source: str = PROXY) -> str:
    """Returns the client's address for a request from `source` with these proxy headers."""
    lines = [(b"x-forwarded-for", header.encode("latin-1")) for header in headers]
    return RequestReader({"type": "http", "headers": lines, "client": (source, 1)}).address


@pytest.fixture
def _proxy(monkeypatch: pytest.MonkeyPatch):
    networks = tuple(map(ip_network, ("192.0.2.0/24", "2001:db8:ffff::/48")))
    monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", "X-Forwarded-For")
    monkeypatch.setitem(settings.__dict__, "trusted_proxy_addresses", networks)


def test_the_network_of_an_ipv4_address_or_of_64_ipv6_bits():
    assert {address: network_of(address) for address in NETWORKS} == NETWORKS


@pytest.mark.usefixtures("_proxy")
def test_behind_a_proxy_the_rightmost_address_that_isnt_the_proxys_is_used():
    assert {header: seen(header) for header in FORWARDED} == FORWARDED
    # Repeated headers are one list.
    assert seen("198.51.100.7", "203.0.113.9") == "203.0.113.9"
    assert seen("198.51.100.7", "192.0.2.11") == "198.51.100.7"
    assert seen() == PROXY
    for source in ("192.0.2.255", "::ffff:192.0.2.1", "2001:db8:ffff:1::2"):
        assert seen("198.51.100.7", source=source) == "198.51.100.7"


@pytest.mark.usefixtures("_proxy")
def test_the_header_is_ignored_if_the_peer_isnt_the_proxy_or_no_header_is_named(monkeypatch):
    for source in ("203.0.113.9", "2001:db8::1", "", "testclient"):
        assert seen("198.51.100.7", source=source) == source
    monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", None)
    assert seen("198.51.100.7") == PROXY


def test_without_a_proxy_the_header_is_ignored():
    assert seen("198.51.100.7") == PROXY
