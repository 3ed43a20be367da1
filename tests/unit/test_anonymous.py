"""Which addresses count as one caller."""

import pytest

from controlplane.anonymous import network_of


@pytest.mark.parametrize(
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
def test_an_ipv4_address_or_a_network_of_64_bits(address: str, network: str):
    assert network_of(address) == network
