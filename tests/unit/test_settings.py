"""Invalid settings fail at startup with a message that names the problem."""

import json

import pytest
from pydantic import ValidationError

from controlplane.platform.core.regions import Region
from controlplane.platform.core.settings import load

GOOD = {
    "TABLE_NAME": "assent",
    "SIGNING_SECRET": "s" * 32,
    "PUBLIC_BASE_URL": "https://api.example.com/live/",
    "DASHBOARD_BASE_URL": "http://127.0.0.1:3000",
}


def test_valid_settings_are_read_and_base_urls_lose_their_slash():
    settings = load(GOOD)
    assert settings.table_name == "assent"
    assert settings.public_base_url == "https://api.example.com/live"
    assert settings.service_brand == "assent"


def test_a_missing_variable_is_named():
    with pytest.raises(ValidationError, match="table_name"):
        load({key: value for key, value in GOOD.items() if key != "TABLE_NAME"})


def ring(**keys: str) -> str:
    return json.dumps({name: key * 32 for name, key in keys.items()})


def test_the_signing_secret_is_one_key_or_a_ring_of_two_with_the_current_key_first_or_absent():
    for text, keys in (
        ("s" * 32, ["s"]),
        (ring(next="o", current="c"), ["c", "o"]),
        (ring(previous="o", current="c"), ["c", "o"]),
    ):
        secret = load({**GOOD, "SIGNING_SECRET": text}).signing_secret
        assert secret.keys == tuple(key * 32 for key in keys)
    for environment in ({"TABLE_NAME": "assent"}, {"TABLE_NAME": "assent", "SIGNING_SECRET": ""}):
        assert load(environment).signing_secret is None


def test_a_malformed_signing_secret_fails_at_cold_start_without_being_shown():
    for text in (
        "short",
        "{" + "s" * 40,
        json.dumps({"current": "s" * 31}),
        ring(previous="s"),
        ring(current="s", next="s"),
        ring(current="s", next="n", previous="p"),
        ring(current="s", older="p"),
    ):
        with pytest.raises(ValidationError, match="signing_secret") as caught:
            load({**GOOD, "SIGNING_SECRET": text})
        assert "sss" not in str(caught.value)


def test_an_invalid_value_is_refused():
    for name, value in (
        ("PUBLIC_BASE_URL", "api.example.com"),
        ("PUBLIC_BASE_URL", "https://x?y"),
        ("SERVICE_BRAND", "Not A Brand"),
        ("REQUESTS_PER_MINUTE_USER_TOKEN", "0"),
    ):
        with pytest.raises(ValidationError):
            load({**GOOD, name: value})


def test_the_secret_is_not_in_its_representation():
    for text in ("s" * 32, ring(current="c", next="s"), ring(current="c", previous="s")):
        settings = load({**GOOD, "SIGNING_SECRET": text})
        assert "s" * 32 not in repr(settings) + repr(settings.signing_secret)


def test_a_url_can_be_missing_or_empty():
    for name in ("PUBLIC_BASE_URL", "DASHBOARD_BASE_URL"):
        for environment in ({**GOOD, name: ""}, {key: value for key, value in GOOD.items() if key != name}):
            assert getattr(load(environment), name.lower()) is None


def test_device_clients_default_to_the_brands_command_line():
    assert load(GOOD).device_clients == ("assent-cli",)
    assert load({**GOOD, "SERVICE_BRAND": "acme", "DEVICE_CLIENT_IDS": ""}).device_clients == ("acme-cli",)
    assert load({**GOOD, "DEVICE_CLIENT_IDS": "acme-cli,acme-tv"}).device_clients == ("acme-cli", "acme-tv")


def test_device_authorization_is_on_unless_disabled():
    assert load(GOOD).device_authorization_enabled is True
    assert load({**GOOD, "DEVICE_AUTHORIZATION_ENABLED": "false"}).device_authorization_enabled is False


def test_one_variable_can_have_several_settings():
    loaded = load(
        {**GOOD, "SETTINGS": "AUDIT_LOG_RETENTION_DAYS=90;TRUSTED_PROXY_ADDRESSES=192.0.2.0/24,2001:db8::/32"}
    )
    assert loaded.audit_log_retention_days == 90
    assert [str(it) for it in loaded.trusted_proxy_addresses] == ["192.0.2.0/24", "2001:db8::/32"]
    assert load({**GOOD, "SETTINGS": ""}) == load(GOOD)


def test_plans_have_the_prices_of_the_variable():
    assert load(GOOD).plan_prices == {}
    prices = load({**GOOD, "SETTINGS": "PLAN_PRICES=starter=$29 a month, pro=$99 a month"}).plan_prices
    assert prices == {"starter": "$29 a month", "pro": "$99 a month"}
    with pytest.raises(ValueError, match="there is no plan gold"):
        load({**GOOD, "PLAN_PRICES": "gold=1"})


@pytest.mark.parametrize("text", ["AUDIT_LOG_DAYS=90", "AUDIT_LOG_RETENTION_DAYS=-1", "AUDIT_LOG_RETENTION_DAYS"])
def test_unknown_names_and_values_of_settings_are_an_error(text):
    with pytest.raises(ValueError, match=r"SETTINGS|audit_log_retention_days|dictionary"):
        load({**GOOD, "SETTINGS": text})


def test_regions_are_those_of_the_variable_or_the_aws_region(monkeypatch):
    text = "eu|Europe (Frankfurt); us-east|United States|https://consent.example.com/us/"
    assert load({**GOOD, "REGIONS": text}).regions == (
        Region("eu", "Europe (Frankfurt)"),
        Region("us-east", "United States", "https://consent.example.com/us"),
    )
    for name, region in (
        ("us-west-2", Region("us-west", "United States (Oregon)")),
        ("eu-south-2", Region("eu-south-2", "eu-south-2")),
    ):
        monkeypatch.setenv("AWS_DEFAULT_REGION", name)
        assert load(GOOD).regions == load({**GOOD, "REGIONS": ""}).regions == (region,)


@pytest.mark.parametrize(
    "text",
    ["eu", "eu|", "EU|Europe", "eu|Europe|consent.example.com", "eu|A|https://a b", "eu|A|https://a?b", "eu|A;eu|B"],
)
def test_malformed_regions_are_an_error(text):
    with pytest.raises(ValidationError, match=r"regions"):
        load({**GOOD, "REGIONS": text})


def test_the_contact_is_an_address_or_a_page_and_messages_make_sense_without():
    for text, named in (
        ("", "the operator of this service"),
        ("help@example.com", "the operator of this service (help@example.com)"),
        ("https://example.com/help?a=1", "the operator of this service (https://example.com/help?a=1)"),
    ):
        assert load({**GOOD, "CONTACT": text}).name_operator("Ask {operator}.") == f"Ask {named}."
    for wrong in ("help", "http://example.com", "a b@example.com", "help@example.com, ops@example.com"):
        with pytest.raises(ValidationError):
            load({**GOOD, "CONTACT": wrong})
