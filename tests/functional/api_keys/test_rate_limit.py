"""The limit per credential and minute: exact, in UTC minutes, and rejected requests count too."""

import json
from collections.abc import Callable

import pytest

from awsclient.errors import ServiceError
from controlplane.access.authentication import authenticate_api_key
from controlplane.billing import store as billing
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.api import Api, Reply
from tests.support.browser import Browser
from tests.support.calls import before_the_update_of, intercepted, refused
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, World

MINUTE = 1_772_600_760  # 05:06:00, the minute in which the clock starts
TURN = MINUTE + 60
CONFLICT = "TransactionConflictException"


def with_limit(secret: str, limit: int) -> str:
    """Gives a key or token a small limit, which no plan has."""
    (key,) = [key for key in _counters(secret) if table.get(key)]
    table.update(Update(key, "SET #rateLimit = :limit", "attribute_exists(pk)", {"limit": limit}), PREPARED)
    return secret


def hits(secret: str) -> int:
    return next(item["hits"] for key in _counters(secret) if (item := table.get(key)))


def _counters(secret: str) -> list[keys.Key]:
    return [keys.key_secret(digest(secret)), keys.user_token(digest(secret))]


def rate_headers(reply: Reply) -> tuple[str, ...]:
    return tuple(reply.headers[f"x-ratelimit-{name}"] for name in ("limit", "remaining", "reset"))


@pytest.fixture
def secret(world):
    return world.key(world.company())


def test_each_credential_has_an_exact_counter_of_its_own_and_public_routes_have_none(api, world, monkeypatch):
    company = world.company("starter")
    for secret in (world.key(company), world.key(company), company.owner.token, world.token(company.owner.user_id)):
        assert rate_headers(api.get("/v1/me", secret)) == ("600", "599", str(TURN))
        assert rate_headers(api.get("/v1/me", secret)) == ("600", "598", str(TURN))
    monkeypatch.setitem(settings.__dict__, "requests_per_minute_user_token", 77)
    assert rate_headers(api.get("/v1/me", world.person().token)) == ("77", "76", str(TURN))
    for path in ("/health", "/v1/regions"):
        assert not [name for name in api.get(path).headers if name.startswith("x-ratelimit")]


@each("is_key", [True, False])
def test_requests_over_the_limit_are_rejected_until_retry_after_is_over(is_key, api, world, now):
    now.seconds = MINUTE + 12.3
    secret = with_limit(world.key(world.company()) if is_key else world.person().token, 2)
    assert [api.get("/v1/me", secret).headers["x-ratelimit-remaining"] for _ in range(2)] == ["1", "0"]
    for _ in range(2):
        reply = api.get("/v1/me", secret)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert rate_headers(reply) == ("2", "0", str(TURN))
        assert reply.headers["retry-after"] == str(TURN - int(now.seconds))
    assert hits(secret) == 4
    now.advance(int(reply.headers["retry-after"]))
    assert api.get("/v1/me", secret).status == 200


def test_the_window_changes_with_the_utc_minute_which_costs_one_more_write(api, secret, now):
    with_limit(secret, 2)
    now.seconds = MINUTE + 59.999
    replies = [api.get("/v1/me", secret) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[-1].headers["retry-after"] == "1"
    now.seconds = MINUTE + 60.000
    with recorded_calls() as calls:
        replies = [api.get("/v1/me", secret) for _ in range(2)]
    assert [rate_headers(reply) for reply in replies] == [("2", left, str(TURN + 60)) for left in "10"]
    assert [call.operation for call in calls] == ["UpdateItem"] * 3
    now.advance(86_400)
    assert api.get("/v1/me", secret).headers["x-ratelimit-remaining"] == "1"


def test_an_instance_with_a_slow_clock_counts_in_the_newer_window(api, secret, now):
    with_limit(secret, 3)
    seen = []
    for seconds in (60.5, 59.5, 60.6, 59.6):
        now.seconds = MINUTE + seconds
        reply = api.get("/v1/me", secret)
        seen.append((reply.status, *rate_headers(reply)[1:]))
    turn = str(TURN + 60)
    assert seen == [(200, "2", turn), (200, "1", turn), (200, "0", turn), (429, "0", turn)]


def test_two_requests_that_open_a_window_at_once_are_both_counted(api, secret, now):
    for _ in range(2):
        with before_the_update_of(table.client, "usedHour", lambda: authenticate_api_key(digest(secret))):
            api.get("/v1/me", secret)
        assert hits(secret) == 2
        now.advance(60)


@each(
    ("code", "times", "status"),
    [
        ("ProvisionedThroughputExceededException", 99, 429),
        ("ThrottlingException", 99, 429),
        ("RequestLimitExceeded", 99, 429),
        (CONFLICT, 99, 429),
        (CONFLICT, 1, 200),
    ],
)
def test_a_request_is_rejected_if_its_counter_cannot_be_written(code, times, status, api, world):
    secret, calls = world.key(world.company()), []

    def around(call, proceed):
        if call.operation != "UpdateItem" or len(calls) >= times:
            return proceed()
        calls.append(call)
        raise ServiceError(call.operation, code)

    with intercepted(table.client, around):
        reply = api.get("/v1/me", secret)
    assert calls
    assert (reply.status, hits(secret)) == (status, int(status == 200))
    if status == 429:
        assert (reply.code, reply.headers["retry-after"]) == ("RATE_LIMITED", "1")


def test_a_throttled_update_of_the_last_use_does_not_reject_the_request(api, secret):
    def notes_use(call):
        return call.operation == "UpdateItem" and call.parameters["Key"]["sk"]["S"].startswith(keys.KEY_PREFIX)

    with refused(table.client, notes_use, "ThrottlingException"), captured_logs() as written:
        assert api.get("/v1/me", secret).status == 200
    assert "RateLimited" not in written.getvalue()


def test_rejected_requests_are_counted(api, world):
    company = world.company()
    token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "billing.read"])
    assert api.get("/v1/billing", token).status == 403
    assert api.delete(f"/v1/api-keys/{'key_' + '0' * 34}", token).status == 404
    assert api.post("/v1/api-keys", token, raw_body=b"{").status == 400
    assert api.get("/v1/api-keys?limit=0", token).status == 400
    assert api.get("/v1/api-keys?organizationId=org_x", token).status == 403
    assert hits(token) == 5


def test_requests_of_a_plan_without_api_access_are_counted_and_limited_first(api, world):
    company = world.company()
    secret = world.key(company)
    billing.change_plan(company.organization_id, "free")
    reply = api.get("/v1/me", secret)
    assert (reply.status, rate_headers(reply), hits(secret)) == (402, ("1500", "1499", str(TURN)), 1)
    assert api.post("/v1/api-keys", with_limit(secret, 0), raw_body=b"{").status == 429


def limit_a_key(api: Api, world: World) -> tuple[Callable[[], Reply], str | None]:
    company = world.company("pro")
    secret = with_limit(world.key(company), 0)
    return lambda: api.get("/v1/projects", secret), company.organization_id


def limit_a_user(api: Api, world: World) -> tuple[Callable[[], Reply], str | None]:
    secret = with_limit(world.person().token, 0)
    return lambda: api.get("/v1/me", secret), None


def limit_a_session(api: Api, world: World) -> tuple[Callable[[], Reply], str | None]:
    browser = Browser(api).signed_in(world.person().user_id)
    with_limit(browser.secret, 0)
    return lambda: browser.get("/organizations"), None


def limit_an_address(api: Api, world: World) -> tuple[Callable[[], Reply], str | None]:
    body = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}
    while api.post("/v1/auth/device/code", json_body=body).status != 429:
        assert len(api.replies) < 200
    return lambda: api.post("/v1/auth/device/code", json_body=body), None


@pytest.mark.parametrize(
    ("limit", "operation", "counted"),
    [
        (limit_a_key, "GET /v1/projects", "pro"),
        (limit_a_user, "GET /v1/me", "person"),
        (limit_a_session, "GET /organizations", "person"),
        (limit_an_address, "POST /v1/auth/device/code", "anonymous"),
    ],
)
def test_a_limited_caller_is_logged_and_counted(limit, operation, counted, api, world):
    """The dashboard in template.yaml reads these log lines."""
    send, organization_id = limit(api, world)
    with captured_logs() as written:
        assert send().status == 429
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (request,) = [line for line in lines if line.get("message") == "request"]
    assert (request["operation"], request.get("organizationId")) == (operation, organization_id)
    assert request.get("caller", "anonymous")[:4] == {"pro": "key_", "person": "usr_", "anonymous": "anon"}[counted]
    (metric,) = [line for line in lines if "RateLimited" in line]
    (where,) = metric.pop("_aws")["CloudWatchMetrics"]
    assert (metric["caller"], metric["RateLimited"]) == (counted, [1.0])
    assert metric.keys() == {"service", "caller", "RateLimited"}
    assert where["Dimensions"] == [["service"], ["caller"]]
    assert where["Metrics"] == [{"Name": "RateLimited", "Unit": "Count"}]
