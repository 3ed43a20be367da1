"""The consent runtime's address in the settings."""

import os

import pytest
from pydantic import ValidationError

from controlplane.platform.core.settings import load
from tests.support.each import each


@each(
    ("variable", "address"),
    [
        ({}, None),
        ({"CONSENT_RUNTIME_BASE_URL": ""}, None),
        ({"CONSENT_RUNTIME_BASE_URL": "https://consent.example.com/"}, "https://consent.example.com"),
    ],
)
def test_the_url_is_optional_and_empty_means_absent(variable: dict[str, str], address: str | None):
    assert load({**os.environ, **variable}).consent_runtime_base_url == address


@each("address", ["consent.example.com", "ftp://consent.example.com", "https://a b", "https://a?b"])
def test_an_invalid_url_fails_at_startup(address: str):
    with pytest.raises(ValidationError):
        load({**os.environ, "CONSENT_RUNTIME_BASE_URL": address})
