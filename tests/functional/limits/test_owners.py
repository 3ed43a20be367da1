"""Limits per user and per organization, shared by all of their credentials."""

import pytest

from controlplane.access import authentication
from controlplane.access.authentication import limit_of_plan
from controlplane.billing import store as billing
from controlplane.people import sessions
from controlplane.people import tokens as user_tokens
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.functional.limits.conftest import MINUTE, THROTTLED, fill, reserved, send, throttled
from tests.support.browser import Browser
from tests.support.calls import refused
from tests.support.each import each
from tests.support.table import PREPARED


@pytest.fixture
def person(world):
    return world.person()


def secrets_of(world, person):
    return [person.token, world.token(person.user_id), *(sessions.create(person.user_id) for _ in range(2))]


def test_a_persons_tokens_sessions_and_pages_share_exactly_the_limit_of_each_minute(api, world, person, limit, now):
    limit(requests_per_minute_user=10)
    assert send(api, secrets_of(world, person), 24) == [200] * 10 + [429] * 14
    assert send(api, [world.token(person.user_id), world.person().token], 2) == [429, 200]
    limit(requests_per_minute_user=2)
    other, browser = world.token(person.user_id), Browser(api).signed_in(person.user_id)
    for now.seconds in (MINUTE + 119.999, MINUTE + 120.000):
        assert send(api, [person.token, other, other], 3) == [200, 200, 429]
    now.seconds = MINUTE + 180
    assert [browser.get("/organizations").status for _ in range(3)] == [200, 200, 429]
    assert send(api, person.token, 1) == [429]


def test_a_persons_block_is_reserved_by_its_first_request(api, world, person, limit):
    assert settings.requests_per_minute_user == 1_200
    send(api, person.token, 13)
    assert reserved(person.user_id) == 24
    limit(requests_per_minute_user=300)  # blocks of 3
    person = world.person()
    fill(person.user_id, 294)
    assert send(api, person.token, 8) == [200] * 6 + [429] * 2


def test_blocks_end_at_half_of_the_limit_and_the_limit_is_exact(api, world, person, limit, now):
    limit(requests_per_minute_user=240)  # blocks of 2
    for _ in range(2):
        assert send(api, secrets_of(world, person)[:3], 300) == [200] * 240 + [429] * 60
        now.advance(60)


def test_a_persons_429_names_the_limit_and_when_it_ends(api, person, limit, now):
    limit(requests_per_minute_user=1)
    api.get("/v1/me", person.token)
    reply = api.get("/v1/me", person.token)
    assert (reply.status, reply.code) == (429, "RATE_LIMITED")
    assert reply.error["message"].startswith("Your account sent too many requests")
    assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
    # The headers still describe the credential.
    assert (reply.headers["x-ratelimit-limit"], reply.headers["x-ratelimit-remaining"]) == ("600", "598")


def test_a_persons_limit_is_checked_after_401_and_before_everything_else(api, world, person, limit):
    limit(requests_per_minute_user=1)
    api.get("/v1/me", person.token)
    for secret, status in ((world.token(person.user_id, []), 429), (person.token[:-1], 401)):
        assert api.post("/v1/api-keys", secret, raw_body=b"{").status == status


def test_requests_over_the_credentials_own_limit_and_of_api_keys_dont_count_for_the_person(api, world, limit):
    limit(requests_per_minute_user=3)
    company = world.company()
    token = company.owner.token
    change = Update(keys.user_token(digest(token)), "SET #rateLimit = :two", "attribute_exists(pk)", {"two": 2})
    table.update(change, PREPARED)
    assert send(api, token, 5) == [200, 200, 429, 429, 429]
    assert reserved(company.owner.user_id) == 2
    assert send(api, world.key(company), 4) == [200] * 4
    assert send(api, world.token(company.owner.user_id), 2) == [200, 429]


def test_a_changed_limit_applies_to_existing_credentials(api, world, person, limit):
    assert send(api, person.token, 1) == [200]
    limit(requests_per_minute_user=13)
    assert send(api, person.token, 2) == [200, 429]  # the first request's block reserved 12
    limit(requests_per_minute_user=1_200)
    assert send(api, world.token(person.user_id), 1) == [200]


def test_a_mark_for_a_past_minute_or_a_revoked_token_isnt_stored(api, person, now):
    now.advance(60)
    send(api, person.token, 1)
    token = user_tokens.find_token(person.token)
    authentication.mark_exact(token, MINUTE // 60, 1)
    assert user_tokens.find_token(person.token) == token
    user_tokens.revoke_token(token)
    authentication.mark_exact(token, MINUTE // 60 + 1, 1)
    assert user_tokens.find_token(person.token) is None


def test_what_the_table_throttles_returns_429_and_never_500(api, world, person, starter, limit):
    with throttled("RATE#"):
        reply = api.get("/v1/me", person.token)
    assert (reply.status, reply.code, reply.headers["retry-after"]) == (429, "RATE_LIMITED", "1")
    assert send(api, person.token, 1) == [200]
    with throttled(f"RATE#{starter.organization_id}"):
        secret = world.key(starter)
        assert [*send(api, secret, 1), *send(api, starter.owner.token, 1, "/v1/billing")] == [429, 429]

    def marks(call):
        return "refusedFor" in str(call.parameters.get("ExpressionAttributeNames"))

    limit(requests_per_minute_user=1)
    token = world.person().token
    assert send(api, token, 1) == [200]
    with refused(table.client, marks, THROTTLED):
        assert send(api, token, 2) == [429, 429]


# Organizations. With a factor of 1, Free and Starter have 600, in blocks of one request.


@pytest.fixture
def starter(world, limit):
    limit(organization_rate_factor=1)
    return world.company("starter")


@each(("plan", "rate"), [("free", 600), ("starter", 600), ("pro", 1_500), ("enterprise", 3_000)])
def test_an_organizations_users_and_keys_share_a_multiple_of_the_plans_rate(plan, rate, api, world, starter):
    company = world.company(plan)
    fill(company.organization_id, rate - 1)
    assert send(api, company.owner.token, 2, "/v1/billing") == [200, 429]
    if plan != "free":
        other = world.company(plan)
        fill(other.organization_id, rate - 6)
        statuses = send(api, [world.key(other), world.key(other)], 12)
        # Blocks of 1, 1 and 3 requests.
        assert (statuses[:6], statuses[-1]) == ([200] * 6, 429)


def test_once_the_limit_is_reached_blocks_refuse_every_request(api, world, starter, limit):
    limit(organization_rate_factor=5)  # blocks of 3
    fill(starter.organization_id, 3_000)
    for path, secret in (("/v1/me", world.key(starter)), ("/v1/billing", starter.owner.token)):
        assert send(api, secret, 6, path) == [200] * 2 + [429] * 4
    # Twenty keys of a plan can use their full rate.
    limit(organization_rate_factor=20)
    assert all(limit_of_plan(plan.id) >= 20 * plan.requests_per_minute for plan in PLANS.values())
    assert limit_of_plan("free") == 12_000


def test_an_organizations_429_names_the_limit_when_it_ends_and_comes_before_402(api, world, starter, now):
    secret = world.key(starter)
    billing.change_plan(starter.organization_id, "free")
    fill(starter.organization_id, 600)
    reply = api.get("/v1/me", secret)
    assert (reply.status, reply.code) == (429, "RATE_LIMITED")
    assert reply.error["message"].startswith("Your organization sent too many requests")
    assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
    billing.change_plan(starter.organization_id, "starter")
    now.advance(60)
    assert send(api, secret, 1) == [200]


def test_users_count_for_the_organization_they_act_in(api, world, person, starter):
    token = starter.owner.token
    assert send(api, person.token, 1, f"/v1/billing?organizationId={starter.organization_id}") == [403]
    send(api, token, 1, "/v1/billing")
    assert reserved(starter.organization_id) == 1
    fill(starter.organization_id, 600)
    assert send(api, token, 2, "/v1/billing") == [429, 429]
    # Requests without an organization, and other organizations, aren't affected.
    other = world.company("starter", owner=starter.owner).organization_id
    assert [send(api, token, 1, path) for path in ("/v1/me", f"/v1/billing?organizationId={other}")] == [[200]] * 2
