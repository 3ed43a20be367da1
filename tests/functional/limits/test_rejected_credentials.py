"""Rejected credentials are limited per client address: above the limit, the response is 429 instead of 401."""

import pytest

from controlplane.access import authentication
from controlplane.people import sessions
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.limits.conftest import MINUTE, send, throttled
from tests.support.api import Api
from tests.support.browser import Browser
from tests.support.calls import recorded_calls
from tests.support.each import each

UNKNOWN = tokens.mint("assent")
MALFORMED = UNKNOWN[:-1]
LIMITED = [401] * 3 + [429]


@pytest.fixture(autouse=True)
def _three(limit):
    assert settings.rejected_credentials_per_minute == 300
    limit(rejected_credentials_per_minute=3)


def test_unknown_credentials_over_the_limit_return_429_until_the_minute_ends(api, now):
    assert send(api, [tokens.mint("assent") for _ in range(3)], 3) == [401] * 3
    reply = api.get("/v1/me", UNKNOWN)
    assert (reply.status, reply.code) == (429, "RATE_LIMITED")
    assert "invalid credentials" in reply.error["message"]
    assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
    now.seconds = MINUTE + 59.999
    assert send(api, UNKNOWN, 1) == [429]
    now.seconds = MINUTE + 60.000
    assert send(api, UNKNOWN, 1) == [401]


def test_a_valid_or_missing_credential_from_the_same_address_is_never_limited(api, world):
    company = world.company()
    with throttled("IP#rejected"):
        assert send(api, UNKNOWN, 1) == [429]
    send(api, [UNKNOWN, MALFORMED], 10)
    secrets = [company.owner.token, world.key(company), sessions.create(company.owner.user_id)]
    assert send(api, secrets, 3) == [200] * 3
    assert send(api, [None], 8) == [401] * 8


@each(
    "addresses",
    [
        ["198.51.100.7"] * 4,
        ["198.51.100.8"] * 4,
        ["2001:db8:0:1::1"] * 4,
        [f"2001:db8:0:2::{number}" for number in range(1, 5)],
    ],
)
def test_an_address_or_an_ipv6_network_of_64_bits_has_its_own_limit(addresses):
    assert [Api(source_ip=it).get("/v1/me", UNKNOWN).status for it in addresses] == LIMITED


def test_an_expired_token_counts_as_rejected(api, world, now):
    token = world.token(world.person().user_id, lifetime_seconds=1)
    now.advance(1)
    assert send(api, token, 4) == LIMITED


def test_malformed_credentials_are_limited_without_calling_the_table(api, now):
    forms = (MALFORMED, UNKNOWN + "x", "x", tokens.mint("other"), tokens.mint("assent_dc"))
    with recorded_calls() as calls:
        assert send(api, forms, 5) == [*LIMITED, 429]
        assert api.get("/v1/me", headers={"Authorization": "Basic eDp5"}).status == 429
        now.seconds = MINUTE + 59.999
        assert api.get("/v1/me", MALFORMED).headers["retry-after"] == "1"
        now.seconds = MINUTE + 60.000
        assert send(api, MALFORMED, 4) == LIMITED
    assert (calls, table.client.scan(TableName=table.name)["Items"]) == ([], [])


def test_the_instance_remembers_a_bounded_number_of_addresses_and_those_that_keep_trying(limit):
    for number in range(2_701):
        authentication.count_malformed(f"10.0.{number // 250}.{number % 250}")
        if number % 900 == 0 and number < 2_700:
            authentication.count_malformed("198.51.100.7")
    with pytest.raises(authentication.TooManyRejected):
        authentication.count_malformed("198.51.100.7")
    limit(rejected_credentials_per_minute=10_000)
    for number in range(3_000):
        authentication.count_malformed(f"10.1.{number // 250}.{number % 250}")
    assert len(authentication._malformed) == 1_000


def test_an_unknown_session_counts_as_rejected_but_public_pages_are_served(api):
    browser = Browser(api)
    browser.cookies["__Host-assent-session"] = tokens.mint("assent_st")
    seen = []
    for _ in range(4):
        visitor = Browser(api)
        visitor.cookies.update(browser.cookies)
        seen.append(visitor.get("/invitations").status)
    assert seen == [303] * 3 + [429]  # 303: redirected to the sign-in
    assert [browser.get("/").status, api.get("/signed-out").status] == [200, 200]
