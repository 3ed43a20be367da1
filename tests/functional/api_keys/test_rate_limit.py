"""An API key is accepted by its secret and its limits, and counted per minute. One write decides."""

import json

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.api import Reply
from tests.support.browser import Browser
from tests.support.calls import is_update_of, recorded_calls, refused
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES

GOOD = tokens.mint("assent")
# tests/unit/test_tokens.py has the forms of a secret.
MALFORMED = [
    None, "", "Bearer", "Bearer ", f"Basic {GOOD}", GOOD, f"Bearer\t{GOOD}", f"Bearer {GOOD} {GOOD}", f"Bearer {GOOD},",
    f"Bearer {GOOD[:-1]}", f"Bearer {GOOD[:9]}\x01{GOOD[9:]}", f"Bearer {tokens.mint('other')}", "Bearer ключ🔑",
    "Bearer assent_" + "A" * 100_000, "Bearer " + "a_" * 50_000,
]  # fmt: skip


@each("header", MALFORMED)
def test_a_malformed_credential_returns_401_without_reading_the_table(header, api):
    headers = {} if header is None else {"Authorization": header}
    with recorded_calls() as calls:
        reply = api.get("/v1/api-keys", headers=headers)
    assert (reply.status, reply.code, calls) == (401, "UNAUTHORIZED", [])
    scheme, _, token = (header or "").partition(" ")
    is_token = scheme.lower() == "bearer" and token.strip(" ")
    assert reply.challenge == ('Bearer error="invalid_token"' if is_token else "Bearer")
    assert not [name for name in reply.headers if name.startswith("x-ratelimit")]


@each("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", "Bearer {} "])
def test_the_scheme_is_case_insensitive_and_spaces_around_the_secret_are_ignored(form, acme, api):
    """RFC 7235 section 2.1: schemes are case-insensitive and are followed by one or more spaces."""
    assert api.get("/v1/me", headers={"Authorization": form.format(acme.create()["key"])}).status == 200


def test_the_key_works_until_the_last_moment_before_its_expiry(acme, api, now):
    made = acme.create(expiresAt="2026-03-04T06:00:00.999Z")  # fractions of a second are dropped
    key, unlimited = made["key"], acme.create()["key"]
    now.advance(1_772_604_000 - clock.now() - 0.001)
    reply = api.get("/v1/me", key)
    assert reply.headers["x-key-expires-at"] == reply.data["principal"]["expiresAt"] == "2026-03-04T06:00:00.000Z"
    now.advance(0.001)
    expired, unknown = api.get("/v1/me", key), api.get("/v1/me", tokens.mint("assent"))
    assert (expired.status, expired.body) == (401, unknown.body)
    for without_expiry in (expired, api.get("/v1/me", unlimited)):
        assert "x-key-expires-at" not in without_expiry.headers
    assert acme.get(made)["lastUsedAt"] == "2026-03-04T05:59:59.999Z"


# tests/unit/test_key_networks.py has the bounds of networks.
@each(
    ("address", "status"),
    [("198.51.100.255", 200), ("198.51.101.0", 403), ("2001:db8:ffff::1", 200), ("", 403)],
)
def test_only_requests_from_the_networks_are_accepted(address, status, acme, api):
    key = acme.create(allowedIps=["198.51.100.0/24", "2001:db8::/32"])["key"]
    api.source_ip = address
    reply = api.get("/v1/me", key)
    assert reply.status == status
    assert status == 200 or reply.code == "FORBIDDEN"


def test_a_refused_address_counts_only_for_the_key(acme, api):
    key = acme.create(allowedIps=["192.0.2.1"])["key"]
    with recorded_calls() as calls:
        # The organization's counter would be written with the last one.
        replies = [api.get("/v1/projects", key) for _ in range(30)]
    assert {reply.status for reply in replies} == {403}
    remaining = [reply.headers["x-ratelimit-remaining"] for reply in replies]
    assert (remaining[0], remaining[-1]) == ("1499", "1470")
    assert {call.parameters["Key"]["pk"]["S"][:3] for call in calls} <= {"KH#", "ORG", "REF"}


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

    def fails(call):
        calls.append(call.operation)
        return call.operation == "UpdateItem" and calls.count("UpdateItem") <= times

    with refused(table.client, fails, code):
        reply = api.get("/v1/me", secret)
    assert (reply.status, hits(secret)) == (status, int(status == 200))
    if status == 429:
        assert (reply.code, reply.headers["retry-after"]) == ("RATE_LIMITED", "1")


def test_a_throttled_update_of_the_last_use_does_not_reject_the_request(api, secret):
    with refused(table.client, is_update_of("ORG#"), "ThrottlingException"), captured_logs() as written:
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


def test_a_limited_caller_is_logged_and_counted(api, world):
    """The dashboard in template.yaml reads these log lines."""
    company, person = world.company("pro"), world.person()
    browser = Browser(api).signed_in(person.user_id)
    key, token, _ = (with_limit(it, 0) for it in (world.key(company), person.token, browser.secret))
    body = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}

    def request_code() -> Reply:
        return api.post("/v1/auth/device/code", json_body=body)

    while request_code().status != 429:
        assert len(api.replies) < 200
    for send, operation, counted, caller, organization_id in (
        (lambda: api.get("/v1/projects", key), "GET /v1/projects", "pro", "key_", company.organization_id),
        (lambda: api.get("/v1/me", token), "GET /v1/me", "person", "usr_", None),
        (lambda: browser.get("/organizations"), "GET /organizations", "person", "usr_", None),
        (request_code, "POST /v1/auth/device/code", "anonymous", "", None),
    ):
        with captured_logs() as written:
            assert send().status == 429
        lines = [json.loads(line) for line in written.getvalue().splitlines()]
        (request,) = [line for line in lines if line.get("message") == "request"]
        assert (request["operation"], request.get("organizationId")) == (operation, organization_id)
        assert (request.get("caller") or "")[:4] == caller
        (metric,) = [line for line in lines if "RateLimited" in line]
        (where,) = metric.pop("_aws")["CloudWatchMetrics"]
        assert (metric["caller"], metric["RateLimited"]) == (counted, [1.0])
        assert metric.keys() == {"service", "caller", "RateLimited"}
        assert where["Dimensions"] == [["service"], ["caller"]]
        assert where["Metrics"] == [{"Name": "RateLimited", "Unit": "Count"}]
