"""Finds the addresses on which a process and its descendants listen, as Linux shows them in /proc."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

_PROC = Path("/proc")
_LISTEN = "0A"


def listening(process_id: int) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """Returns the addresses and ports of the TCP sockets that wait for connections. Skips the test without /proc."""
    if not (_PROC / "net/tcp").exists():
        pytest.skip("this system has no /proc/net/tcp")
    sockets = {number for each in _tree(process_id) for number in _sockets(each)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            local, state, number = (line.split()[field] for field in (1, 3, 9))
            if state == _LISTEN and f"socket:[{number}]" in sockets:
                address, port = local.split(":")
                found.add((_address(address), int(port, 16)))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """Returns the address. The kernel writes its 32-bit words as numbers of this machine, which is little-endian."""
    octets = b"".join(bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8))
    return IPv4Address(octets) if len(octets) == 4 else IPv6Address(octets)


def _tree(process_id: int) -> Iterator[int]:
    yield process_id
    for children in _PROC.glob(f"{process_id}/task/*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))


def _sockets(process_id: int) -> Iterator[str]:
    for descriptor in _PROC.glob(f"{process_id}/fd/*"):
        try:
            yield str(descriptor.readlink())
        except FileNotFoundError:
            continue  # closed since
