"""Invalid settings fail at startup with a message that names the problem, and give the API its base URL."""

import json
from ipaddress import ip_network

import pytest
from pydantic import ValidationError

from controlplane.platform.core import urls
from controlplane.platform.core.regions import Region
from controlplane.platform.core.settings import load, settings
from tests.support.each import each

GOOD = {
    "TABLE_NAME": "assent",
    "SIGNING_SECRET": "s" * 32,
    "PUBLIC_BASE_URL": "https://api.example.com/live/",
    "DASHBOARD_BASE_URL": "http://127.0.0.1:3000",
}


SEVERAL = "AUDIT_LOG_RETENTION_DAYS=90;TRUSTED_PROXY_ADDRESSES=192.0.2.0/24,2001:db8::/32"
# What is set, and what the named setting is then.
READ: list[tuple[dict[str, str], str, object]] = [
    ({}, "table_name", "assent"),
    ({}, "public_base_url", "https://api.example.com/live"),
    *(({name: ""}, name.lower(), None) for name in ("PUBLIC_BASE_URL", "DASHBOARD_BASE_URL")),
    ({}, "service_brand", "assent"),
    ({}, "device_clients", ("assent-cli",)),
    ({"SERVICE_BRAND": "acme", "DEVICE_CLIENT_IDS": ""}, "device_clients", ("acme-cli",)),
    ({"DEVICE_CLIENT_IDS": "acme-cli,acme-tv"}, "device_clients", ("acme-cli", "acme-tv")),
    ({}, "device_authorization_enabled", True),
    ({"DEVICE_AUTHORIZATION_ENABLED": "false"}, "device_authorization_enabled", False),
    ({"SETTINGS": SEVERAL}, "audit_log_retention_days", 90),
    ({"SETTINGS": SEVERAL}, "trusted_proxy_addresses", (ip_network("192.0.2.0/24"), ip_network("2001:db8::/32"))),
    ({}, "plan_prices", {}),
    ({"SETTINGS": "PLAN_PRICES=starter=$29, pro=$99 a month"}, "plan_prices", {"starter": "$29", "pro": "$99 a month"}),
    (
        {"REGIONS": "eu|Europe (Frankfurt); us-east|United States|https://consent.example.com/us/"},
        "regions",
        (Region("eu", "Europe (Frankfurt)"), Region("us-east", "United States", "https://consent.example.com/us")),
    ),
]
# What is refused, and what the message names.
REFUSED = [
    ({"TABLE_NAME": None}, "table_name"),
    *(({"PUBLIC_BASE_URL": url}, "public_base_url") for url in ("api.example.com", "https://x?y")),
    ({"SERVICE_BRAND": "Not A Brand"}, "service_brand"),
    ({"REQUESTS_PER_MINUTE_USER_TOKEN": "0"}, "requests_per_minute_user_token"),
    ({"PLAN_PRICES": "gold=1"}, "there is no plan gold"),
    ({"SETTINGS": "AUDIT_LOG_DAYS=90"}, "SETTINGS"),
    ({"SETTINGS": "AUDIT_LOG_RETENTION_DAYS=-1"}, "audit_log_retention_days"),
    ({"SETTINGS": "AUDIT_LOG_RETENTION_DAYS"}, "dictionary"),
    *(
        ({"REGIONS": text}, "regions")
        for text in ("eu", "eu|", "EU|Europe", "eu|Europe|a.test", "eu|A|https://a b", "eu|A|https://a?b", "eu|A;eu|B")
    ),
    *(
        ({"CONTACT": text}, "contact")
        for text in ("help", "http://example.com", "a b@example.com", "help@example.com, ops@example.com")
    ),
]


@each(("variables", "name", "value"), READ)
def test_valid_settings_are_read_or_have_their_defaults(variables, name, value):
    assert getattr(load({**GOOD, **variables}), name) == value


@each(("variables", "named"), REFUSED)
def test_an_invalid_or_missing_value_is_refused_with_the_name_of_the_setting(variables, named):
    with pytest.raises(ValueError, match=named):
        load({name: value for name, value in {**GOOD, **variables}.items() if value is not None})


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


def test_the_secret_is_not_in_its_representation():
    for text in ("s" * 32, ring(current="c", next="s"), ring(current="c", previous="s")):
        settings = load({**GOOD, "SIGNING_SECRET": text})
        assert "s" * 32 not in repr(settings) + repr(settings.signing_secret)


def test_without_the_variable_the_only_region_is_that_of_aws(monkeypatch):
    for name, region in (
        ("us-west-2", Region("us-west", "United States (Oregon)")),
        ("eu-south-2", Region("eu-south-2", "eu-south-2")),
    ):
        monkeypatch.setenv("AWS_DEFAULT_REGION", name)
        assert load(GOOD).regions == load({**GOOD, "REGIONS": ""}).regions == (region,)


def test_the_contact_is_an_address_or_a_page_and_messages_make_sense_without():
    for text, named in (
        ("", "the operator of this service"),
        ("help@example.com", "the operator of this service (help@example.com)"),
        ("https://example.com/help?a=1", "the operator of this service (https://example.com/help?a=1)"),
    ):
        assert load({**GOOD, "CONTACT": text}).name_operator("Ask {operator}.") == f"Ask {named}."


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch):
    bare = load({"TABLE_NAME": settings.table_name})
    monkeypatch.setattr(urls, "settings", bare)


def test_a_setting_overrides_the_stage():
    urls.read_stage({"stageVariables": {"publicBaseUrl": "https://stage.example.com/live"}})
    assert urls.public_base_url() == settings.public_base_url
    assert urls.dashboard_base_url() == settings.dashboard_base_url


def test_a_client_id_of_the_settings_overrides_the_stages(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "sign_in_client_id", "of the settings")
    urls.read_stage({"stageVariables": {"signInClientId": "of the stage"}})
    assert urls.sign_in_client_id() == "of the settings"


@pytest.mark.usefixtures("unset")
def test_without_settings_the_stage_determines_the_urls():
    urls.read_stage({"stageVariables": {"publicBaseUrl": "https://stage.example.com/live"}})
    assert urls.public_base_url() == urls.dashboard_base_url() == "https://stage.example.com/live"


@pytest.mark.usefixtures("unset")
@each("event", [None, {}, {"stageVariables": None}, {"stageVariables": {}}, {"stageVariables": {"publicBaseUrl": ""}}])
def test_a_client_cant_influence_the_urls(event):
    urls.read_stage(event)
    with pytest.raises(LookupError):
        urls.public_base_url()
