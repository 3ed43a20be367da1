"""Limits per user and per organization, shared by all of their credentials."""

import pytest

from controlplane.access import credentials
from controlplane.access.owner_limits import limit_of_plan
from controlplane.billing import store as billing
from controlplane.people import sessions
from controlplane.people import tokens as user_tokens
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.api import Api
from tests.support.calls import Call, is_update_of, refused
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import World

MINUTE = 1_772_600_760  # 05:06:00, the minute in which the clock starts
THROTTLED = "ProvisionedThroughputExceededException"


def reserved(owner_id: str, minute: int = MINUTE // 60) -> int:
    """Returns the value of the owner's counter."""
    item = table.get(keys.owner_count(owner_id, minute))
    return item["hits"] if item else 0


def throttled(prefix: str):
    """Makes DynamoDB throttle every update of items in partitions with this prefix."""
    return refused(table.client, is_update_of(prefix), THROTTLED)


class TestPerson:
    def test_a_persons_limit_defaults_to_1200_in_blocks_of_12(self, api: Api, world: World):
        assert settings.requests_per_minute_user == 1_200
        person = world.person()
        for _ in range(13):
            api.get("/v1/me", person.token)
        assert reserved(person.user_id) == 24

    def test_a_persons_tokens_and_sessions_share_exactly_the_limit(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=10)
        person = world.person()
        secrets = [person.token, world.token(person.user_id), *(sessions.create(person.user_id) for _ in range(2))]
        statuses = [api.get("/v1/me", secrets[number % 4]).status for number in range(24)]
        assert statuses == [200] * 10 + [429] * 14
        assert api.get("/v1/me", world.token(person.user_id)).status == 429
        assert api.get("/v1/me", world.person().token).status == 200

    def test_a_persons_block_is_reserved_by_its_first_request(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=300)  # blocks of 3
        person = world.person()
        table.update(
            Update(keys.owner_count(person.user_id, MINUTE // 60), "SET #hits = :hits", values={"hits": 294}), PREPARED
        )
        assert [api.get("/v1/me", person.token).status for _ in range(8)] == [200] * 6 + [429] * 2

    def test_blocks_end_at_half_of_the_limit_and_the_limit_is_exact(self, api: Api, world: World, limit, now):
        limit(requests_per_minute_user=240)  # blocks of 2
        person = world.person()
        secrets = [person.token, world.token(person.user_id), sessions.create(person.user_id)]
        for _ in range(2):
            statuses = [api.get("/v1/me", secrets[number % 3]).status for number in range(300)]
            assert statuses == [200] * 240 + [429] * 60
            now.advance(60)

    def test_a_persons_429_names_the_limit_and_when_it_ends(self, api: Api, world: World, limit, now):
        limit(requests_per_minute_user=1)
        person = world.person()
        api.get("/v1/me", person.token)
        reply = api.get("/v1/me", person.token)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert reply.error["message"].startswith("Your account sent too many requests")
        assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
        # The headers still describe the credential.
        assert (reply.headers["x-ratelimit-limit"], reply.headers["x-ratelimit-remaining"]) == ("600", "598")

    def test_a_persons_new_minute_starts_at_zero(self, api: Api, world: World, limit, now):
        limit(requests_per_minute_user=2)
        person = world.person()
        other = world.token(person.user_id)
        now.seconds = MINUTE + 59.999
        assert [api.get("/v1/me", secret).status for secret in (person.token, other, other)] == [200, 200, 429]
        now.seconds = MINUTE + 60.000
        assert [api.get("/v1/me", secret).status for secret in (person.token, other, other)] == [200, 200, 429]

    def test_a_persons_limit_is_checked_after_401_and_before_everything_else(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=1)
        person = world.person()
        unscoped = world.token(person.user_id, [])
        api.get("/v1/me", person.token)
        assert api.post("/v1/api-keys", unscoped, raw_body=b"{").status == 429
        assert api.post("/v1/api-keys", person.token[:-1], raw_body=b"{").status == 401

    def test_requests_over_the_credentials_own_limit_dont_count_for_the_person(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=100)
        person = world.person()
        key = keys.user_token(digest(person.token))
        table.update(Update(key, "SET #rateLimit = :two", "attribute_exists(pk)", {"two": 2}), PREPARED)
        assert [api.get("/v1/me", person.token).status for _ in range(5)] == [200, 200, 429, 429, 429]
        assert reserved(person.user_id) == 2

    def test_api_keys_dont_count_for_the_person(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=1)
        company = world.company()
        api.get("/v1/me", company.owner.token)
        assert api.get("/v1/me", company.owner.token).status == 429
        secret = world.key(company)
        assert [api.get("/v1/me", secret).status for _ in range(3)] == [200] * 3

    def test_a_changed_limit_applies_to_existing_credentials(self, api: Api, world: World, limit):
        person = world.person()
        assert api.get("/v1/me", person.token).status == 200
        limit(requests_per_minute_user=13)
        # The first request's block reserved 12.
        assert [api.get("/v1/me", person.token).status for _ in range(2)] == [200, 429]
        limit(requests_per_minute_user=1_200)
        assert api.get("/v1/me", world.token(person.user_id)).status == 200

    def test_pages_count_for_the_person(self, api: Api, world: World, limit):
        from tests.support.browser import Browser

        limit(requests_per_minute_user=2)
        person = world.person()
        browser = Browser(api).signed_in(person.user_id)
        assert [browser.get("/organizations").status for _ in range(3)] == [200, 200, 429]
        assert api.get("/v1/me", person.token).status == 429

    def test_a_throttled_person_counter_returns_429_and_never_500(self, api: Api, world: World):
        person = world.person()
        with throttled("RATE#"):
            reply = api.get("/v1/me", person.token)
        assert (reply.status, reply.code, reply.headers["retry-after"]) == (429, "RATE_LIMITED", "1")
        assert api.get("/v1/me", person.token).status == 200

    def test_a_persons_mark_that_cant_be_written_changes_no_response(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=1)
        person = world.person()
        api.get("/v1/me", person.token)

        def marks(call: Call) -> bool:
            return "refusedFor" in str(call.parameters.get("ExpressionAttributeNames"))

        with refused(table.client, marks, THROTTLED):
            assert [api.get("/v1/me", person.token).status for _ in range(2)] == [429, 429]

    def test_a_mark_for_a_past_minute_or_a_revoked_token_isnt_stored(self, api: Api, world: World, now):
        person, minute = world.person(), MINUTE // 60
        now.advance(60)
        api.get("/v1/me", person.token)
        token = user_tokens.find_token(person.token)
        assert token is not None
        credentials.mark_exact(token, minute, 1)
        assert user_tokens.find_token(person.token) == token
        user_tokens.revoke_token(token)
        credentials.mark_exact(token, minute + 1, 1)
        assert user_tokens.find_token(person.token) is None


class TestOrganization:
    """The factor is 1 in these tests: 600 for Free and Starter, in blocks of one request."""

    @pytest.fixture(autouse=True)
    def _small(self, limit):
        limit(organization_rate_factor=1)

    def fill(self, organization_id: str, hits: int) -> None:
        counter = keys.owner_count(organization_id, MINUTE // 60)
        table.update(Update(counter, "SET #hits = :hits", values={"hits": hits}), PREPARED)

    def test_an_organizations_keys_share_a_multiple_of_the_plans_rate(self, api: Api, world: World):
        for plan, rate in (("starter", 600), ("pro", 1_500), ("enterprise", 3_000)):
            company = world.company(plan)
            secrets = [world.key(company) for _ in range(2)]
            self.fill(company.organization_id, rate - 6)
            statuses = [api.get("/v1/me", secrets[number % 2]).status for number in range(12)]
            # Blocks of 1, 1 and 3 requests.
            assert statuses[:6] == [200] * 6
            assert statuses[-1] == 429

    def test_once_the_limit_is_reached_blocks_refuse_every_request(self, api: Api, world: World, limit):
        limit(organization_rate_factor=5)  # blocks of 3
        company = world.company("starter")
        self.fill(company.organization_id, 3_000)
        for path, secret in (("/v1/me", world.key(company)), ("/v1/billing", company.owner.token)):
            assert [api.get(path, secret).status for _ in range(6)] == [200] * 2 + [429] * 4

    def test_an_organizations_429_names_the_limit_and_when_it_ends(self, api: Api, world: World, now):
        company = world.company("starter")
        secret = world.key(company)
        self.fill(company.organization_id, 600)
        reply = api.get("/v1/me", secret)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert reply.error["message"].startswith("Your organization sent too many requests")
        assert reply.headers["retry-after"] == str(MINUTE + 60 - int(now.seconds))
        now.advance(60)
        assert api.get("/v1/me", secret).status == 200

    def test_users_count_for_the_organization_they_act_in(self, api: Api, world: World):
        company = world.company("starter")
        token = company.owner.token
        api.get("/v1/billing", token)
        assert reserved(company.organization_id) == 1
        self.fill(company.organization_id, 600)
        assert [api.get("/v1/billing", token).status for _ in range(2)] == [429, 429]
        # Requests without an organization, and other organizations, aren't affected.
        assert api.get("/v1/me", token).status == 200
        other = world.company("starter", owner=company.owner)
        assert api.get(f"/v1/billing?organizationId={other.organization_id}", token).status == 200

    def test_users_have_the_limit_of_the_organizations_plan(self, api: Api, world: World):
        company = world.company("pro")
        self.fill(company.organization_id, 1_499)
        assert api.get("/v1/billing", company.owner.token).status == 200
        self.fill(company.organization_id, 1_500)
        assert api.get("/v1/billing", company.owner.token).status == 429

    def test_a_free_organization_has_the_limit_of_starter(self, api: Api, world: World):
        company = world.company("free")
        self.fill(company.organization_id, 599)
        assert [api.get("/v1/billing", company.owner.token).status for _ in range(2)] == [200, 429]

    def test_nonmembers_dont_count_for_the_organization(self, api: Api, world: World):
        company = world.company("starter")
        path = f"/v1/billing?organizationId={company.organization_id}"
        assert api.get(path, world.person().token).status == 403
        assert reserved(company.organization_id) == 0

    def test_returns_429_before_402_for_a_key(self, api: Api, world: World):
        company = world.company("starter")
        secret = world.key(company)
        billing.change_plan(company.organization_id, "free")
        self.fill(company.organization_id, 600)
        assert api.get("/v1/me", secret).status == 429

    def test_a_throttled_organization_counter_returns_429_and_never_500(self, api: Api, world: World):
        company = world.company("starter")
        secret = world.key(company)
        with throttled(f"RATE#{company.organization_id}"):
            assert api.get("/v1/me", secret).status == 429
            assert api.get("/v1/billing", company.owner.token).status == 429


class TestContract:
    def test_twenty_keys_of_a_plan_can_use_their_full_rate(self):
        for plan in PLANS.values():
            assert limit_of_plan(plan.id) >= 20 * plan.requests_per_minute
        assert limit_of_plan("free") == 12_000


class TestCost:
    """Table calls per request, at the default limits."""

    def calls(self, api: Api, secret: str) -> list[str]:
        with recorded_calls() as calls:
            assert api.get("/v1/me", secret).status == 200
        return [call.operation for call in calls]

    def writes(self, api: Api, secret: str, requests: int) -> list[int]:
        return [self.calls(api, secret).count("UpdateItem") for _ in range(requests)]

    def test_a_token_costs_one_write_and_every_12th_request_one_more(self, api: Api, world: World):
        # The first request of a minute also creates the credential's window.
        assert self.writes(api, world.person().token, 26) == [3, *[1] * 11, 2, *[1] * 11, 2, 1]

    def test_a_token_costs_two_writes_after_half_of_the_limit(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=240)  # blocks of 2
        # The request that exceeds half also notes where its block ends.
        expected = [3, 1, *[2, 1] * 59, 3, 1, 2, 2, 2]
        assert self.writes(api, world.person().token, 125) == expected

    def test_a_key_costs_one_write_and_every_30th_request_one_more(self, api: Api, world: World):
        secret = world.key(world.company("pro"))
        self.writes(api, secret, 1)  # also notes the key's last use
        assert self.writes(api, secret, 60) == [*[1] * 28, 2, *[1] * 29, 2, 1]

    def test_a_refused_person_costs_one_write_per_request_and_up_to_ten_records(self, api: Api, world: World, limit):
        limit(requests_per_minute_user=1)
        token = world.person().token
        for expected in ([200, 3], [429, 4], *[[429, 2]] * 9, [429, 1], [429, 1]):
            with recorded_calls() as calls:
                status = api.get("/v1/me", token).status
            assert [status, sum(call.operation == "UpdateItem" for call in calls)] == expected

    def test_requests_below_the_lowest_limit_dont_read_the_plan(self, api: Api, world: World):
        token = world.company("pro").owner.token
        for _ in range(24):
            with recorded_calls() as calls:
                api.get("/v1/members", token)  # a list of projects reads the plan for their branding
            assert [call.operation for call in calls if call.operation != "UpdateItem"] == ["Query", "Query"]
