"""Invalid settings fail at startup with a message that names the problem."""

import json

import pytest
from pydantic import ValidationError

from controlplane.platform.core.settings import Settings, load
from tests.support.each import each

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


class TestSigningSecret:
    def test_the_signing_secret_can_be_one_key_in_plain_text(self):
        secret = load(GOOD).signing_secret
        assert secret is not None
        assert secret.keys == ("s" * 32,)

    @pytest.mark.parametrize("other", ["next", "previous"])
    def test_the_signing_secret_can_be_a_ring_of_two_with_the_current_key_first(self, other: str):
        secret = load({**GOOD, "SIGNING_SECRET": json.dumps({other: "o" * 32, "current": "c" * 32})}).signing_secret
        assert secret is not None
        assert secret.keys == ("c" * 32, "o" * 32)

    def test_the_signing_secret_is_optional_for_functions_that_dont_use_it(self):
        for environment in ({"TABLE_NAME": "assent"}, {"TABLE_NAME": "assent", "SIGNING_SECRET": ""}):
            assert load(environment).signing_secret is None

    @each(
        "text",
        [
            "short",
            "{" + "s" * 40,
            json.dumps({"current": "s" * 31}),
            json.dumps({"previous": "s" * 32}),
            json.dumps({"current": "s" * 32, "next": "s" * 32}),
            json.dumps({"current": "s" * 32, "next": "n" * 32, "previous": "p" * 32}),
            json.dumps({"current": "s" * 32, "older": "p" * 32}),
        ],
    )
    def test_a_malformed_signing_secret_fails_at_cold_start_without_being_shown(self, text: str):
        with pytest.raises(ValidationError, match="signing_secret") as caught:
            load({**GOOD, "SIGNING_SECRET": text})
        assert "sss" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_BASE_URL", "api.example.com"),
        ("PUBLIC_BASE_URL", "https://x?y"),
        ("SERVICE_BRAND", "Not A Brand"),
        ("REQUESTS_PER_MINUTE_USER_TOKEN", "0"),
    ],
)
def test_an_invalid_value_is_refused(name: str, value: str):
    with pytest.raises(ValidationError):
        load({**GOOD, name: value})


def test_the_secret_is_not_in_its_representation():
    assert "s" * 32 not in repr(load(GOOD))
    assert "s" * 32 not in repr(load(GOOD).signing_secret)
    for other in ("next", "previous"):
        ring = load({**GOOD, "SIGNING_SECRET": json.dumps({"current": "c" * 32, other: "s" * 32})}).signing_secret
        assert "s" * 32 not in repr(ring)


@pytest.mark.parametrize("name", ["PUBLIC_BASE_URL", "DASHBOARD_BASE_URL"])
def test_a_url_can_be_missing_or_empty(name: str):
    for environment in ({**GOOD, name: ""}, {key: value for key, value in GOOD.items() if key != name}):
        assert getattr(load(environment), name.lower()) is None


def test_device_clients_default_to_the_brands_command_line():
    assert load(GOOD).device_clients == ("assent-cli",)
    assert load({**GOOD, "SERVICE_BRAND": "acme", "DEVICE_CLIENT_IDS": ""}).device_clients == ("acme-cli",)
    assert load({**GOOD, "DEVICE_CLIENT_IDS": "acme-cli,acme-tv"}).device_clients == ("acme-cli", "acme-tv")


def test_device_authorization_is_on_unless_disabled():
    assert load(GOOD).device_authorization_enabled is True
    assert load({**GOOD, "DEVICE_AUTHORIZATION_ENABLED": "false"}).device_authorization_enabled is False


def test_a_number_has_its_default_and_ends():
    numbers = {
        name: (
            described["default"],
            described.get("minimum", described.get("exclusiveMinimum")),
            described.get("maximum"),
        )
        for name, described in Settings.model_json_schema()["properties"].items()
        if described.get("type") in {"integer", "number"}
    }
    assert numbers == {
        "requests_per_minute_user_token": (600, 1, None),
        "requests_per_minute_user": (1_200, 1, None),
        "organization_rate_factor": (20, 1, None),
        "rejected_credentials_per_minute": (300, 1, None),
        "sign_in_requests_per_minute": (60, 2, None),
        "account_concurrency": (1_000, 10, None),
        "organizations_per_person": (20, 1, None),
        "invitations_per_organization": (100, 1, None),
        "invitations_per_address": (20, 1, None),
        "invitation_resends_per_day": (50, 1, None),
        "invitation_emails_per_organization": (200, 1, None),
        "invitation_emails_per_address": (10, 1, None),
        "scan_archive_megabytes": (256, 1, None),
        "scan_stored_bytes": (1_610_612_736, 1, None),
        "scan_stored_files": (40_000, 1, None),
        "scan_file_bytes": (8_388_608, 1, None),
        "scan_start_wait_seconds": (3, 0, 15),
        "scan_wait_seconds": (20, 0, 22),
        "issue_wait_seconds": (8, 0, 15),
        "dependency_seconds": (4.5, 0, 15),
        "finding_retention_days": (90, 0, None),
        "resolved_item_retention_days": (365, 0, None),
        "audit_run_retention_days": (400, 0, None),
        "feedback_retention_days": (400, 0, None),
        "ledger_retention_days": (3_650, 0, None),
        "audit_log_retention_days": (400, 0, None),
    }


def test_one_variable_can_have_several_settings():
    loaded = load(
        {**GOOD, "SETTINGS": "AUDIT_LOG_RETENTION_DAYS=90;TRUSTED_PROXY_ADDRESSES=192.0.2.0/24,2001:db8::/32"}
    )
    assert loaded.audit_log_retention_days == 90
    assert [str(it) for it in loaded.trusted_proxy_addresses] == ["192.0.2.0/24", "2001:db8::/32"]
    assert load({**GOOD, "SETTINGS": ""}) == load(GOOD)


@pytest.mark.parametrize("text", ["AUDIT_LOG_DAYS=90", "AUDIT_LOG_RETENTION_DAYS=-1", "AUDIT_LOG_RETENTION_DAYS"])
def test_unknown_names_and_values_of_settings_are_an_error(text: str):
    with pytest.raises(ValueError, match=r"SETTINGS|audit_log_retention_days|dictionary"):
        load({**GOOD, "SETTINGS": text})
