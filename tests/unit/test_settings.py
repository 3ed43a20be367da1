"""The environment fails loudly, and says what is wrong with it."""

import pytest
from pydantic import ValidationError

from controlplane.settings import load

GOOD = {
    "TABLE_NAME": "assent",
    "SIGNING_SECRET": "s" * 32,
    "PUBLIC_BASE_URL": "https://api.example.com/live/",
    "DASHBOARD_BASE_URL": "http://127.0.0.1:3000",
}


def test_what_is_right_is_read_and_base_urls_lose_their_slash():
    settings = load(GOOD)
    assert settings.table_name == "assent"
    assert settings.public_base_url == "https://api.example.com/live"
    assert settings.service_brand == "assent"


@pytest.mark.parametrize("name", ["TABLE_NAME", "SIGNING_SECRET"])
def test_a_missing_variable_is_named(name: str):
    with pytest.raises(ValidationError, match=name.lower()):
        load({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SIGNING_SECRET", "short"),
        ("PUBLIC_BASE_URL", "api.example.com"),
        ("PUBLIC_BASE_URL", "https://x?y"),
        ("SERVICE_BRAND", "Not A Brand"),
        ("REQUESTS_PER_MINUTE_USER_TOKEN", "0"),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: str):
    with pytest.raises(ValidationError):
        load({**GOOD, name: value})


def test_the_secret_is_not_in_its_representation():
    assert "s" * 32 not in repr(load(GOOD))


@pytest.mark.parametrize("name", ["PUBLIC_BASE_URL", "DASHBOARD_BASE_URL"])
def test_an_address_may_be_left_out_or_empty(name: str):
    for environment in ({**GOOD, name: ""}, {key: value for key, value in GOOD.items() if key != name}):
        assert getattr(load(environment), name.lower()) is None


def test_the_clients_of_devices_are_the_brands_command_line_unless_others_are_named():
    assert load(GOOD).device_clients == ("assent-cli",)
    assert load({**GOOD, "SERVICE_BRAND": "acme", "DEVICE_CLIENT_IDS": ""}).device_clients == ("acme-cli",)
    assert load({**GOOD, "DEVICE_CLIENT_IDS": "acme-cli,acme-tv"}).device_clients == ("acme-cli", "acme-tv")


def test_device_authorization_is_on_unless_switched_off():
    assert load(GOOD).device_authorization_enabled is True
    assert load({**GOOD, "DEVICE_AUTHORIZATION_ENABLED": "false"}).device_authorization_enabled is False
