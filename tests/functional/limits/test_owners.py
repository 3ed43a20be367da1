"""Limits per user and per organization, which all of their credentials share, and what counting costs."""

import re
from itertools import product
from unittest.mock import Mock

import pytest

from controlplane.access import authentication
from controlplane.access.authentication import limit_of_plan
from controlplane.api_keys import store as api_keys
from controlplane.api_keys import usage as key_usage
from controlplane.billing import store as billing
from controlplane.organizations import caps
from controlplane.people import credential_index, sessions
from controlplane.people import tokens as user_tokens
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys, rate
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.table import ConditionFailed, Put, Update, table
from dashboard.api_keys.pages import usage_chart
from tests.functional.limits.conftest import MINUTE, THROTTLED, fill, reserved, send, throttled
from tests.support.browser import Browser
from tests.support.calls import recorded_calls, refused
from tests.support.each import each
from tests.support.operations import Operation, operations
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


def writes(api, secret, count):
    """Sends requests that succeed. Returns the number of writes of each."""
    made = []
    for _ in range(count):
        with recorded_calls() as calls:
            assert api.get("/v1/me", secret).status == 200
        made.append(sum(call.operation == "UpdateItem" for call in calls))
    return made


def test_a_token_costs_one_write_and_every_12th_request_one_more(api, world):
    # The first request of a minute also creates the credential's window.
    assert writes(api, world.person().token, 26) == [3, *[1] * 11, 2, *[1] * 11, 2, 1]


def test_a_token_costs_two_writes_after_half_of_the_limit(api, world, limit):
    limit(requests_per_minute_user=240)  # blocks of 2
    # The request that exceeds half also notes where its block ends.
    assert writes(api, world.person().token, 125) == [3, 1, *[2, 1] * 59, 3, 1, 2, 2, 2]


def test_a_key_costs_one_write_and_every_30th_request_one_more(api, world):
    secret = world.key(world.company("pro"))
    writes(api, secret, 1)  # also notes the key's last use
    assert writes(api, secret, 60) == [*[1] * 28, 2, *[1] * 29, 2, 1]


def test_a_refused_person_costs_one_write_per_request_and_up_to_ten_records(api, world, limit):
    token = world.company("pro").owner.token
    for _ in range(24):  # below the lowest limit, the plan isn't read
        with recorded_calls() as calls:
            api.get("/v1/members", token)  # a list of projects reads the plan for their branding
        assert [call.operation for call in calls if call.operation != "UpdateItem"] == ["Query", "Query"]
    limit(requests_per_minute_user=1)
    token = world.person().token
    for expected in ((200, 3), (429, 4), *[(429, 2)] * 9, (429, 1), (429, 1)):
        with recorded_calls() as calls:
            status = api.get("/v1/me", token).status
        assert (status, sum(call.operation == "UpdateItem" for call in calls)) == expected


KEY = keys.user("usr_0000000000000000")


def is_created(capacity):
    try:
        table.update(caps.count_creation(KEY, "ownerships", capacity), PREPARED)
    except ConditionFailed:
        return False
    return True


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_no_more_are_created_than_the_limit_allows_however_many_read_the_same(limit):
    for existing, created in product(range(5), (None, 0, 1, 2, 3, 4, 5)):
        if created is not None and created < existing:
            continue
        table.put(Put({**KEY._asdict(), **({} if created is None else {"ownerships": created})}), PREPARED)
        count = Mock(return_value=existing)
        capacity = caps.read_capacity(created, limit, count)
        made = sum(is_created(capacity) for _ in range(6))
        is_enough = created is not None and (limit is None or created < limit)
        assert count.called is not is_enough
        least = created if is_enough else existing
        assert made == (6 if limit is None else max(0, limit - (least or 0)))
        assert capacity.is_full is (made == 0)
        stored = table.get(KEY)
        before = existing if created is None and made else created
        assert stored.get("ownerships") == (before + made if before is not None else None)


@pytest.mark.parametrize(
    ("count", "key", "ends_at"),
    [
        (lambda: rate.count_address("me", "::1", 5), keys.address_count("me", "::1", 29_543_346), 1_772_600_820),
        (lambda: rate.count_try("usr_ada", 5), keys.code_tries("usr_ada", 1_969_556), 1_772_601_300),
    ],
    ids=["calls from an address", "attempts at a user code"],
)
def test_a_window_counts_from_zero_and_is_kept_for_15_minutes_after_its_end(count, key, ends_at, now):
    assert [count() for _ in range(2)] == [Counted(5, 1, ends_at), Counted(5, 2, ends_at)]
    assert table.get(key)["expiresAt"] == ends_at + 900
    now.seconds = ends_at - 1
    assert count().hits == 3
    now.seconds = ends_at
    assert count().hits == 1


def test_the_requests_of_an_owner_add_up_within_a_minute_and_an_attempt_is_returned_once():
    assert [rate.reserve_requests("org_acme", minute, 20) for minute in (7, 7, 8)] == [20, 40, 20]
    assert table.get(keys.owner_count("org_acme", 7))["expiresAt"] == 8 * 60 + 900
    for _ in range(3):
        rate.count_try("usr_ada", 5)
    rate.return_try("usr_ada")
    assert rate.count_try("usr_ada", 5).hits == 3


WITH_TOKEN = {operation.group: operation for operation in operations() if operation.requires}
IN_ORGANIZATION = {
    operation.group: operation
    for operation in operations()
    if operation.method == "GET" and operation.requires and operation.requires.organization
}


def path_of(operation: Operation, organization_id: str = "x") -> str:
    return re.sub(r"\{\w+\}", organization_id, operation.path)


@pytest.mark.parametrize("group", WITH_TOKEN)
def test_the_first_use_of_a_token_in_an_hour_is_recorded(group, api, world, now):
    person = world.person()
    for _ in range(2):  # 05:34, in the hour of its creation; 06:02
        now.advance(1_700)
        api.call(WITH_TOKEN[group].method, path_of(WITH_TOKEN[group]), person.token)
    (entry,) = credential_index.list_credentials(person.user_id, 10).items
    assert entry.last_used_at == clock.timestamp()


@each("group", IN_ORGANIZATION)
def test_the_plan_is_read_only_above_the_lowest_limit(group, api, world):
    company = world.company()
    minute = int(clock.now()) // 60
    owner_count = keys.owner_count(company.organization_id, minute)
    table.update(Update(owner_count, "SET #hits = :hits", values={"hits": 12_000}), PREPARED)
    # The next request with the token completes a block, so it reserves one at the organization's counter.
    change = "SET #win = :minute, #hits = :hits"
    table.update(
        Update(keys.user_token(digest(company.owner.token)), change, values={"minute": minute, "hits": 11}), PREPARED
    )
    path = path_of(IN_ORGANIZATION[group], company.organization_id)
    assert api.get(path, company.owner.token).status == 200
    assert table.get(owner_count)["hits"] == 12_012


DAY = 86_400


@pytest.fixture
def secret(world):
    return world.key(world.company())


def send_projects(api, secret, count):
    return send(api, secret, count, "/v1/projects")


def usage(secret):
    item = table.get(keys.key_secret(tokens.digest(secret)))
    return [(day.requests, day.refused) for day in key_usage.usage_of(item)]


def test_requests_and_refusals_are_counted_by_day_once_their_minute_has_ended(api, secret, now):
    change, values = "SET #rateLimit = :two, #refusedFor = :note", {"two": 2, "note": "1#org_0000000000000000"}
    table.update(Update(keys.key_secret(tokens.digest(secret)), change, values=values), PREPARED)
    assert send_projects(api, secret, 3) == [200, 200, 429]
    item = table.get(keys.key_secret(tokens.digest(secret)))
    assert not [name for name in item if name.startswith(("requests", "refused2"))]
    now.advance(60)
    assert send_projects(api, secret, 1) == [200]
    assert usage(secret)[-2:] == [(0, 0), (4, 1)]
    now.advance(DAY)
    assert send_projects(api, secret, 2) == [200, 200]
    assert usage(secret)[-3:] == [(0, 0), (4, 1), (2, 0)]


def test_the_last_14_days_are_kept_in_a_small_item(api, secret, now):
    key = keys.key_secret(tokens.digest(secret))
    for _ in range(17):
        table.update(Update(key, "SET #rateLimit = :none", values={"none": 0}), PREPARED)
        send_projects(api, secret, 1)
        now.advance(DAY)
    send_projects(api, secret, 1)
    assert usage(secret) == [(1, 1)] * 14
    item = table.get(key) or {}
    assert sum(name.startswith("requests") for name in item) == 14
    assert sum(len(name) + len(str(value)) for name, value in item.items()) < 1_024, "it would cost two write units"


def test_usage_is_found_for_listed_keys_and_charted(api, world):
    company = world.company()
    first, second = world.key(company), world.key(company)
    send_projects(api, first, 2)
    listed = api_keys.list_keys(company.organization_id, 50, None).items
    found = key_usage.find_usage(listed)
    by_digest = {key.digest: found[key.key_id][-1].requests for key in listed}
    assert by_digest == {tokens.digest(first): 2, tokens.digest(second): 0}
    chart = usage_chart(found[next(key.key_id for key in listed if key.digest == tokens.digest(first))])
    assert chart.rows[0] == ("Mar 4", [2, 0])
    assert len(chart.labels) == 14
