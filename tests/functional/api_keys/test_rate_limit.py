"""The limit per credential and minute: exact, in UTC minutes, and rejected requests count too."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from controlplane.aws.errors import ServiceError
from controlplane.core.settings import settings
from controlplane.core.tokens import digest
from controlplane.store import api_keys, billing, keys
from controlplane.store.credentials import authenticate_api_key
from controlplane.store.table import Update, table
from tests.support.api import Api
from tests.support.browser import Browser
from tests.support.calls import Call, before_the_update_of, intercepted, refused
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, World

MINUTE = 1_772_600_760  # 05:06:00, the minute in which the clock starts
TURN = MINUTE + 60
CONFLICT = "TransactionConflictException"


def limited(world: World, company, limit: int) -> str:
    """Returns the secret of a key with a small limit that no plan has."""
    secret = world.key(company)
    set_limit(keys.key_secret(digest(secret)), limit)
    return secret


def set_limit(key: keys.Key, limit: int) -> None:
    table.update(Update(key, "SET #rateLimit = :limit", "attribute_exists(pk)", {"limit": limit}), PREPARED)


def hits(secret: str) -> int:
    found = [table.get(key) for key in (keys.key_secret(digest(secret)), keys.user_token(digest(secret)))]
    return next(item["hits"] for item in found if item)


def rate_headers(reply) -> tuple[str, str, str]:
    return tuple(reply.headers[f"x-ratelimit-{name}"] for name in ("limit", "remaining", "reset"))


@contextmanager
def counter_refused(code: str, times: int = 99):
    """Makes DynamoDB reject the first `times` counter updates."""
    calls: list = []

    def around(call, proceed):
        if call.operation != "UpdateItem" or len(calls) >= times:
            return proceed()
        calls.append(call)
        raise ServiceError(call.operation, code)

    with intercepted(table.client, around):
        yield calls


class TestHeaders:
    def test_limit_remaining_and_reset_are_exact(self, api: Api, world: World):
        secret = world.key(world.company("starter"))
        assert rate_headers(api.get("/v1/me", secret)) == ("600", "599", str(TURN))
        assert rate_headers(api.get("/v1/me", secret)) == ("600", "598", str(TURN))

    def test_a_user_token_has_the_configured_limit(self, api: Api, world: World):
        assert settings.requests_per_minute_user_token == 600
        assert rate_headers(api.get("/v1/me", world.person().token)) == ("600", "599", str(TURN))

    def test_a_new_token_gets_the_configured_limit(self):
        script = (
            "from controlplane.core.settings import settings; from controlplane.store import user_tokens;"
            "user_tokens.table.transact = lambda legs, record: print(legs['token'].item['rateLimit']);"
            "user_tokens.create_token('usr_x', [], 60)"
        )
        environment = {
            **os.environ,
            "REQUESTS_PER_MINUTE_USER_TOKEN": "77",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == "77"

    def test_credentials_of_a_person_and_of_an_organization_are_counted_separately(self, api: Api, world: World):
        company = world.company()
        for secret in (world.key(company), world.key(company), company.owner.token, world.token(company.owner.user_id)):
            reply = api.get("/v1/me", secret)
            assert int(reply.headers["x-ratelimit-remaining"]) == int(reply.headers["x-ratelimit-limit"]) - 1

    def test_public_routes_have_no_rate_headers(self, api: Api, world: World):
        for path in ("/health", "/v1/regions"):
            assert not [name for name in api.get(path).headers if name.startswith("x-ratelimit")]


class Test429:
    def test_requests_over_the_limit_are_rejected_until_the_minute_ends(self, api: Api, world: World, now):
        secret = limited(world, world.company(), 3)
        remaining = [api.get("/v1/me", secret).headers["x-ratelimit-remaining"] for _ in range(3)]
        assert remaining == ["2", "1", "0"]
        reply = api.get("/v1/me", secret)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert rate_headers(reply) == ("3", "0", str(TURN))
        assert reply.headers["retry-after"] == str(TURN - int(now.seconds))

    def test_waiting_for_retry_after_is_enough(self, api: Api, world: World, now):
        now.seconds = MINUTE + 12.3
        secret = limited(world, world.company(), 1)
        api.get("/v1/me", secret)
        now.advance(int(api.get("/v1/me", secret).headers["retry-after"]))
        assert api.get("/v1/me", secret).status == 200

    def test_two_requests_that_open_a_window_at_once_are_both_counted(self, api: Api, world: World, now):
        secret = world.key(world.company())
        for _ in range(2):
            with before_the_update_of(table.client, "usedHour", lambda: authenticate_api_key(digest(secret))):
                api.get("/v1/me", secret)
            assert hits(secret) == 2
            now.advance(60)

    def test_retries_within_the_window_are_counted(self, api: Api, world: World):
        secret = limited(world, world.company(), 1)
        for _ in range(4):
            api.get("/v1/me", secret)
        assert hits(secret) == 4

    def test_the_limit_is_checked_before_body_plan_and_scope(self, api: Api, world: World):
        company = world.company()
        secret = limited(world, company, 0)
        billing.change_plan(company.organization_id, "free")
        assert api.post("/v1/api-keys", secret, raw_body=b"{").status == 429

    def test_a_user_token_is_limited_too(self, api: Api, world: World):
        person = world.person()
        set_limit(keys.user_token(digest(person.token)), 1)
        assert [api.get("/v1/me", person.token).status for _ in range(2)] == [200, 429]

    @each(
        "code",
        ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", CONFLICT],
    )
    def test_a_request_is_rejected_if_its_counter_cannot_be_written(self, code, api: Api, world: World):
        secret = world.key(world.company())
        with counter_refused(code) as calls:
            reply = api.get("/v1/me", secret)
        assert calls
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert reply.headers["retry-after"] == "1"
        assert hits(secret) == 0

    def test_a_temporary_write_conflict_is_retried(self, api: Api, world: World):
        secret = world.key(world.company())
        with counter_refused(CONFLICT, times=1):
            assert api.get("/v1/me", secret).status == 200
        assert hits(secret) == 1

    def test_a_throttled_update_of_the_last_use_does_not_reject_the_request(self, api: Api, world: World):
        secret = world.key(world.company())

        def notes_use(call: Call) -> bool:
            return call.operation == "UpdateItem" and call.parameters["Key"]["sk"]["S"].startswith(keys.KEY_PREFIX)

        with refused(table.client, notes_use, "ThrottlingException"):
            assert api.get("/v1/me", secret).status == 200


class TestWindow:
    def test_the_window_changes_with_the_utc_minute(self, api: Api, world: World, now):
        secret = limited(world, world.company(), 2)
        now.seconds = MINUTE + 59.999
        assert [api.get("/v1/me", secret).status for _ in range(3)] == [200, 200, 429]
        now.seconds = MINUTE + 60.000
        reply = api.get("/v1/me", secret)
        assert (reply.status, rate_headers(reply)) == (200, ("2", "1", str(TURN + 60)))

    def test_retry_after_is_at_least_a_second(self, api: Api, world: World, now):
        secret = limited(world, world.company(), 0)
        now.seconds = MINUTE + 59.999
        assert api.get("/v1/me", secret).headers["retry-after"] == "1"

    def test_an_instance_with_a_slow_clock_counts_in_the_newer_window(self, api: Api, world: World, now):
        secret = limited(world, world.company(), 3)
        now.seconds = MINUTE + 60.5
        assert api.get("/v1/me", secret).headers["x-ratelimit-remaining"] == "2"
        now.seconds = MINUTE + 59.5
        assert rate_headers(api.get("/v1/me", secret)) == ("3", "1", str(TURN + 60))
        now.seconds = MINUTE + 60.6
        assert api.get("/v1/me", secret).headers["x-ratelimit-remaining"] == "0"
        now.seconds = MINUTE + 59.6
        assert api.get("/v1/me", secret).status == 429

    def test_a_pause_of_many_minutes_resets_the_window(self, api: Api, world: World, now):
        secret = limited(world, world.company(), 1)
        api.get("/v1/me", secret)
        now.advance(86_400)
        assert api.get("/v1/me", secret).status == 200

    def test_a_new_window_costs_one_more_write(self, api: Api, world: World, now):
        secret = world.key(world.company())
        api.get("/v1/me", secret)
        now.advance(60)
        for expected in (2, 1, 1):
            with recorded_calls() as writes:
                api.get("/v1/me", secret)
            assert [call.operation for call in writes] == ["UpdateItem"] * expected


class TestWhatCounts:
    def test_rejected_requests_are_counted(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "billing.read"])
        missing = f"/v1/api-keys/{'key_' + '0' * 34}"
        assert api.get("/v1/billing", token).status == 403
        assert api.delete(missing, token).status == 404
        assert api.post("/v1/api-keys", token, raw_body=b"{").status == 400
        assert api.get("/v1/api-keys?limit=0", token).status == 400
        assert api.get("/v1/api-keys?organizationId=org_x", token).status == 403
        assert hits(token) == 5

    def test_requests_of_a_plan_without_api_access_are_counted(self, api: Api, world: World):
        company = world.company()
        secret = world.key(company)
        billing.change_plan(company.organization_id, "free")
        reply = api.get("/v1/me", secret)
        assert reply.status == 402
        assert rate_headers(reply) == ("1500", "1499", str(TURN))
        assert hits(secret) == 1

    def test_a_malformed_credential_never_reaches_the_table(self, api: Api):
        with recorded_calls() as calls:
            reply = api.get("/v1/api-keys")
        assert (reply.status, calls) == (401, [])
        assert not [name for name in reply.headers if name.startswith("x-ratelimit")]


class TestPlanChange:
    def test_a_key_keeps_its_limit_after_a_plan_change_and_a_new_key_has_the_new_limit(self, api: Api, world: World):
        company = world.company("starter")
        old = world.key(company)
        billing.change_plan(company.organization_id, "pro")
        assert api.get("/v1/me", old).headers["x-ratelimit-limit"] == "600"
        assert api.get("/v1/me", world.key(company)).headers["x-ratelimit-limit"] == "1500"

    def test_a_downgrade_between_paid_plans_keeps_the_limit(self, api: Api, world: World):
        company = world.company("enterprise")
        secret = world.key(company)
        billing.change_plan(company.organization_id, "starter")
        assert api.get("/v1/me", secret).headers["x-ratelimit-limit"] == "3000"

    def test_a_plan_change_does_not_reset_the_window(self, api: Api, world: World):
        company = world.company("starter")
        secret = world.key(company)
        api.get("/v1/me", secret)
        billing.change_plan(company.organization_id, "pro")
        assert api.get("/v1/me", secret).headers["x-ratelimit-remaining"] == "598"

    def test_keys_made_by_the_operator_follow_the_same_rule(self, api: Api, world: World):
        company = world.company("starter")
        minted = api_keys.create_key(company.organization_id, "ops", "operator", "ops")
        assert api.get("/v1/me", minted.secret).headers["x-ratelimit-limit"] == "600"
        listed = api.get("/v1/api-keys", company.owner.token).data
        assert listed[0]["meta"]["createdFrom"] == "ops"


class TestWhoIsLimited:
    """The dashboard in template.yaml reads these log lines."""

    def lines(self, call) -> list[dict]:
        with captured_logs() as written:
            assert call().status == 429
        return [json.loads(line) for line in written.getvalue().splitlines()]

    def requests(self, lines: list[dict]) -> dict:
        (line,) = [line for line in lines if line.get("message") == "request"]
        return line

    def limits(self, lines: list[dict]) -> dict:
        (line,) = [line for line in lines if "RateLimited" in line]
        assert line["RateLimited"] == [1.0]
        (where,) = line["_aws"]["CloudWatchMetrics"]
        assert where["Dimensions"] == [["service"], ["caller"]]
        assert where["Metrics"] == [{"Name": "RateLimited", "Unit": "Count"}]
        assert line.keys() == {"_aws", "service", "caller", "RateLimited"}
        return line

    def test_a_limited_key_is_logged_with_its_organization_and_counted_by_plan(self, api: Api, world: World):
        company = world.company("pro")
        secret = limited(world, company, 0)
        lines = self.lines(lambda: api.get("/v1/projects", secret))
        assert self.requests(lines)["organizationId"] == company.organization_id
        assert self.requests(lines)["caller"].startswith("key_")
        assert self.requests(lines)["operation"] == "GET /v1/projects"
        assert self.limits(lines)["caller"] == "pro"

    def test_a_limited_user_is_counted_as_a_user(self, api: Api, world: World):
        person = world.person()
        set_limit(keys.user_token(digest(person.token)), 0)
        lines = self.lines(lambda: api.get("/v1/me", person.token))
        assert self.limits(lines)["caller"] == "person"
        assert self.requests(lines)["caller"] == person.user_id
        assert "organizationId" not in self.requests(lines)

    def test_a_limited_session_is_logged_with_its_user_and_counted_as_a_user(self, api: Api, world: World):
        person = world.person()
        browser = Browser(api).signed_in(person.user_id)
        set_limit(keys.user_token(digest(browser.secret)), 0)
        lines = self.lines(lambda: browser.get("/organizations"))
        assert self.limits(lines)["caller"] == "person"
        assert self.requests(lines)["caller"] == person.user_id

    def test_an_unauthenticated_caller_is_counted_as_one(self, api: Api):
        body = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}
        for _ in range(200):
            if api.post("/v1/auth/device/code", json_body=body).status == 429:
                break
        lines = self.lines(lambda: api.post("/v1/auth/device/code", json_body=body))
        assert self.limits(lines)["caller"] == "anonymous"

    def test_an_accepted_request_is_not_counted_as_throttled(self, api: Api, world: World):
        secret = world.key(world.company("pro"))
        with captured_logs() as written:
            assert api.get("/v1/projects", secret).status == 200
        assert "RateLimited" not in written.getvalue()
