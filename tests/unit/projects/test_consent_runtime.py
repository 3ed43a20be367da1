"""The consent runtime's address in the settings."""

import os

import pytest
from pydantic import ValidationError

from controlplane.core.settings import load


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ({}, None),
        ({"CONSENT_RUNTIME_BASE_URL": ""}, None),
        ({"CONSENT_RUNTIME_BASE_URL": "https://consent.example.com/"}, "https://consent.example.com"),
    ],
)
def test_it_is_optional_and_empty_means_absent(variable: dict[str, str], address: str | None):
    assert load({**os.environ, **variable}).consent_runtime_base_url == address


@pytest.mark.parametrize("address", ["consent.example.com", "ftp://consent.example.com", "https://a b", "https://a?b"])
def test_what_is_no_address_fails_at_the_start(address: str):
    with pytest.raises(ValidationError):
        load({**os.environ, "CONSENT_RUNTIME_BASE_URL": address})
