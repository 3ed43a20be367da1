"""An API key is accepted by the form of its secret, its scopes, addresses, and expiry. One write decides."""

import pytest

from controlplane.platform.core import clock, tokens
from controlplane.platform.table.table import table
from tests.support.each import each
from tests.support.recorded import recorded_calls

LIMITS = {
    "scopes": ["projects.read", "inbox.read"],
    "allowedIps": ["198.51.100.0/24", "2001:db8::/32"],
    "expiresAt": "2026-03-04T06:00:00Z",
}
GOOD = tokens.mint("assent")
# tests/unit/test_tokens.py has the forms of a secret.
MALFORMED = [
    None,
    "",
    "Bearer",
    "Bearer ",
    f"Basic {GOOD}",
    GOOD,
    f"Bearer\t{GOOD}",
    f"Bearer {GOOD} {GOOD}",
    f"Bearer {GOOD},",
    f"Bearer {GOOD[:-1]}",
    f"Bearer {GOOD.swapcase()}",
    f"Bearer {GOOD[:9]}\x01{GOOD[9:]}",
    f"Bearer {tokens.mint('other')}",
    "Bearer ключ🔑",
    "Bearer assent_" + "A" * 100_000,
    "Bearer " + "a_" * 50_000,
]


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


def test_every_rejected_credential_with_a_right_checksum_gets_the_same_response(acme, api, now):
    expired, deleted = acme.world.token(acme.owner.user_id, lifetime_seconds=60), acme.create()
    acme.delete(deleted)
    now.advance(60)
    replies = [api.get("/v1/me", secret) for secret in (expired, deleted["key"], GOOD, tokens.mint("assent_at"))]
    assert {(reply.status, reply.text) for reply in replies} == {(401, replies[0].text)}


@each("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", "Bearer {} "])
def test_the_scheme_is_case_insensitive_and_spaces_around_the_secret_are_ignored(form, acme, api):
    """RFC 7235 section 2.1: schemes are case-insensitive and are followed by one or more spaces."""
    assert api.get("/v1/me", headers={"Authorization": form.format(acme.create()["key"])}).status == 200


def test_a_well_formed_unknown_secret_costs_two_writes_and_is_counted_for_its_address(api):
    with recorded_calls() as calls:
        assert api.get("/v1/me", GOOD).status == 401
    assert [call.operation for call in calls] == ["UpdateItem"] * 2
    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert item["pk"]["S"] == "IP#rejected#198.51.100.7"


def test_the_key_has_only_its_scopes(acme, api):
    key = acme.create(scopes=["inbox.read"])["key"]
    assert api.get("/v1/inbox", key).status == 200
    reply = api.get("/v1/projects", key)
    assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
    assert reply.error["details"] == {"requiredScope": "projects.read"}
    me = api.get("/v1/me", key).data
    assert (me["scopes"], me["organizations"]) == (["inbox.read"], [])


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


@each(
    ("address", "status"),
    [
        ("198.51.100.0", 200),
        ("198.51.100.255", 200),
        ("::ffff:198.51.100.7", 200),
        ("198.51.101.0", 403),
        ("198.51.99.255", 403),
        ("2001:db8:ffff::1", 200),
        ("2001:db9::", 403),
        ("", 403),
    ],
)
def test_only_requests_from_the_networks_are_accepted(address, status, acme, api):
    key = acme.create(allowedIps=LIMITS["allowedIps"])["key"]
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


# The second one records the refusal.
@pytest.mark.parametrize(("path", "written"), [("/v1/me", ["KH#"]), ("/v1/billing", ["KH#", "REF"])])
def test_all_limits_are_decided_in_the_write_that_counts(path, written, acme, api):
    key = acme.create(**LIMITS)["key"]
    api.get("/v1/me", key)  # opens the minute
    with recorded_calls() as calls:
        api.get(path, key)
    assert {call.operation for call in calls} == {"UpdateItem"}
    assert [call.parameters["Key"]["pk"]["S"][:3] for call in calls] == written
