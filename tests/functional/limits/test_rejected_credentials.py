"""Rejected credentials are limited per client address: above the limit, the response is 429 instead of 401."""

import pytest

from controlplane.access import rejections
from controlplane.people import sessions
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.limits.test_owners import throttled
from tests.support.api import Api
from tests.support.browser import Browser
from tests.support.recorded import recorded_calls
from tests.support.world import World

UNKNOWN = tokens.mint("assent")
MALFORMED = UNKNOWN[:-1]
MINUTE = 1_772_600_760


def counters() -> list[str]:
    return [item["pk"]["S"] for item in table.client.scan(TableName=table.name)["Items"]]


@pytest.fixture(autouse=True)
def _three(limit):
    assert settings.rejected_credentials_per_minute == 300
    limit(rejected_credentials_per_minute=3)


class TestUnknown:
    def test_unknown_credentials_over_the_limit_return_429_until_the_minute_ends(self, api: Api, now):
        assert [api.get("/v1/me", tokens.mint("assent")).status for _ in range(3)] == [401] * 3
        reply = api.get("/v1/me", UNKNOWN)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert "invalid credentials" in reply.error["message"]
        assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
        now.seconds = MINUTE + 59.999
        assert api.get("/v1/me", UNKNOWN).status == 429
        now.seconds = MINUTE + 60.000
        assert api.get("/v1/me", UNKNOWN).status == 401

    def test_an_expired_token_counts_as_rejected(self, api: Api, world: World, now):
        token = world.token(world.person().user_id, lifetime_seconds=1)
        now.advance(1)
        assert [api.get("/v1/me", token).status for _ in range(4)] == [401] * 3 + [429]

    def test_a_valid_credential_from_the_same_address_is_never_refused(self, api: Api, world: World):
        company = world.company()
        secrets = [company.owner.token, world.key(company), sessions.create(company.owner.user_id)]
        for _ in range(5):
            api.get("/v1/me", UNKNOWN)
            api.get("/v1/me", MALFORMED)
        assert [api.get("/v1/me", secret).status for secret in secrets] == [200] * 3

    def test_other_addresses_have_their_own_limit(self, world: World):
        networks = [
            Api(source_ip=address) for address in ("198.51.100.7", "198.51.100.8", "2001:db8:0:1::1", "2001:db8:0:2::1")
        ]
        for api in networks:
            assert [api.get("/v1/me", UNKNOWN).status for _ in range(4)] == [401] * 3 + [429]

    def test_an_ipv6_network_of_64_bits_is_one_address(self):
        statuses = [Api(source_ip=f"2001:db8::{n}").get("/v1/me", UNKNOWN).status for n in range(1, 5)]
        assert statuses == [401] * 3 + [429]

    def test_a_throttled_counter_of_rejections_returns_429_and_never_500(self, api: Api):
        with throttled("IP#rejected"):
            assert api.get("/v1/me", UNKNOWN).status == 429


class TestMalformed:
    FORMS = (MALFORMED, UNKNOWN + "x", "x", tokens.mint("other"), tokens.mint("assent_dc"))

    def test_malformed_credentials_are_limited_without_calling_the_table(self, api: Api, now):
        with recorded_calls() as calls:
            assert [api.get("/v1/me", self.FORMS[n]).status for n in range(5)] == [401] * 3 + [429] * 2
            assert api.get("/v1/me", headers={"Authorization": "Basic eDp5"}).status == 429
            now.seconds = MINUTE + 59.999
            assert api.get("/v1/me", MALFORMED).headers["retry-after"] == "1"
            now.seconds = MINUTE + 60.000
            assert [api.get("/v1/me", MALFORMED).status for _ in range(4)] == [401] * 3 + [429]
        assert calls == []
        assert counters() == []

    def test_a_missing_credential_always_returns_401(self, api: Api):
        assert {api.get("/v1/me").status for _ in range(8)} == {401}

    def test_the_instance_remembers_a_bounded_number_of_addresses(self, limit):
        limit(rejected_credentials_per_minute=10_000)
        for number in range(3_000):
            rejections.count_malformed(f"10.0.{number // 250}.{number % 250}")
        assert len(rejections._malformed) == 1_000

    def test_an_address_that_keeps_trying_is_not_forgotten(self):
        for number in range(2_701):
            rejections.count_malformed(f"10.0.{number // 250}.{number % 250}")
            if number % 900 == 0 and number < 2_700:
                rejections.count_malformed("198.51.100.7")
        with pytest.raises(rejections.TooManyRejected):
            rejections.count_malformed("198.51.100.7")


class TestPages:
    def browser(self, api: Api) -> Browser:
        browser = Browser(api)
        browser.cookies["__Host-assent-session"] = tokens.mint("assent_st")
        return browser

    def test_an_unknown_session_counts_as_rejected(self, api: Api):
        # 303: redirected to the sign-in.
        assert [self.browser(api).get("/invitations").status for _ in range(4)] == [303] * 3 + [429]

    def test_a_public_page_is_served_despite_rejections(self, api: Api):
        for _ in range(5):
            self.browser(api).get("/invitations")
        assert self.browser(api).get("/").status == 200
        assert api.get("/signed-out").status == 200
