"""The networks that an API key is limited to: which texts are accepted, and which changes make them stricter."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from controlplane.api_keys import rules
from controlplane.api_keys.items import ApiKeyItem, Restrictions
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import KeyId
from controlplane.platform.http.client_address import is_within

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(version: int) -> SearchStrategy[Network]:
    bits = 32 if version == 4 else 128
    made = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    return st.builds(
        lambda number, prefix: made((number, prefix), strict=False),  # type: ignore[arg-type]
        st.integers(0, 2**bits - 1),
        st.integers(0, bits),
    )


ANY = st.one_of(networks(4), networks(6).filter(lambda it: it.prefixlen < 96 or it.network_address.ipv4_mapped is None))


def key(*accepted: str) -> ApiKeyItem:
    return ApiKeyItem(
        key_id=KeyId.of("org_3f8k2m9q7r1s5t6v", "01jq2m4n5p6r7s8t9v"),
        name="deploy",
        start="assent_Ab3x",
        digest="9f86d0",
        rate_limit=600,
        created_at="2026-03-04T05:06:07.000Z",
        created_by="usr_5w1n8q2k7m3r9t4v",
        created_from="api",
        restrictions=Restrictions(allowed_ips=accepted),
    )


def test_a_network_is_stored_in_its_normal_form():
    for text, expected in {
        "203.0.113.7": "203.0.113.7/32",
        " 203.0.113.0/24 ": "203.0.113.0/24",
        "0.0.0.0/0": "0.0.0.0/0",
        "2001:DB8::": "2001:db8::/128",
        "2001:0db8:0000::/32": "2001:db8::/32",
        "::ffff:203.0.113.0/120": "203.0.113.0/24",
        "::ffff:203.0.113.7": "203.0.113.7/32",
        "::ffff:0.0.0.0/96": "0.0.0.0/0",
    }.items():
        assert rules.read_allowed_ips([text, text]) == (expected,)


NO_NETWORKS = (
    "", "/8", "10", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "10.0.0.1/8",
    "010.0.0.1", "2001:db8::/129", "2001:db8::1/64", "fe80::1%eth0", "example.com", "*", "10.0.0.0-10.0.0.9",
    "\u0661\u0660.0.0.1",
)  # fmt: skip


def test_other_texts_are_rejected():
    for text in NO_NETWORKS:
        with pytest.raises(InvalidPayload) as error:
            rules.read_allowed_ips(["10.0.0.0/8", text])
        assert error.value.details[0]["path"] == ["allowedIps", "1"]


@given(ANY)
def test_the_first_and_last_address_are_inside_and_their_neighbors_are_not(network):
    (stored,) = rules.read_allowed_ips([str(network)])
    first, last = int(network.network_address), int(network.broadcast_address)
    kind = type(network.network_address)
    for number, is_inside in ((first - 1, False), (first, True), (last, True), (last + 1, False)):
        # In this form, an address of IPv4 counts as that: the test below.
        if 0 <= number < 2**network.max_prefixlen and not getattr(kind(number), "ipv4_mapped", None):
            assert is_within(str(kind(number)), [stored]) == is_inside


@given(networks(4))
def test_an_address_of_ipv4_is_the_same_in_its_ipv6_form(network):
    assert is_within(f"::ffff:{network.network_address}", [str(network)])
    assert not is_within(str(network.network_address), ["::/0"])


@given(st.lists(ANY, min_size=1, max_size=4), st.lists(ANY, min_size=1, max_size=4))
def test_a_change_is_accepted_only_if_it_accepts_no_other_address(current, wanted):
    before, after = ([str(it) for it in listed] for listed in (current, wanted))
    try:
        changed = rules.narrowed(key(*before), {}, {"allowed_ips": tuple(after)})
    except InvalidPayload:
        assert not all(any(a.version == b.version and a.subnet_of(b) for b in current) for a in wanted)  # type: ignore[arg-type]
        return
    for network in wanted:
        for address in (network.network_address, network.broadcast_address):
            # In this form, an address of IPv4 counts as that: the test above.
            if address.version == 6 and address.ipv4_mapped:  # type: ignore[union-attr]
                continue
            assert is_within(str(address), changed.restrictions.allowed_ips or ())
            assert is_within(str(address), before)


def test_what_is_not_an_address_is_in_no_network():
    for address in ("", "unknown", "10.0.0.1, 10.0.0.2", "10.0.0.1/32"):
        assert not is_within(address, ["0.0.0.0/0", "::/0"])
