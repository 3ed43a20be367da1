"""Settings that a test overrides."""

from collections.abc import Callable
from ipaddress import ip_network

import pytest

from controlplane.platform.core.settings import settings


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**numbers: int) -> None:
        for name, number in numbers.items():
            monkeypatch.setitem(settings.__dict__, name, number)

    return change


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets a trusted proxy at these addresses, which sends the client's address in this header."""

    def trust(*networks: str, header: str = "X-Forwarded-For") -> None:
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", header)
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_addresses", tuple(map(ip_network, networks)))

    return trust
