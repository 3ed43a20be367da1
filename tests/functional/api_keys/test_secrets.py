"""The format of a bearer secret: a malformed one is rejected without reading the table."""

from controlplane.core import tokens
from controlplane.store.table import table
from tests.support.api import Api
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import World

GOOD = tokens.mint("assent")
MALFORMED = {
    "nothing": "",
    "the scheme alone": "Bearer",
    "the scheme and a space": "Bearer ",
    "another scheme": f"Basic {GOOD}",
    "no scheme": GOOD,
    "a tab for a space": f"Bearer\t{GOOD}",
    "two secrets": f"Bearer {GOOD} {GOOD}",
    "a comma": f"Bearer {GOOD},",
    "quotes": f'Bearer "{GOOD}"',
    "truncated by one": f"Bearer {GOOD[:-1]}",
    "truncated to its start": f"Bearer {GOOD[:11]}",
    "one character too many": f"Bearer {GOOD}0",
    "mistyped checksum": f"Bearer {GOOD[:-1]}{'0' if GOOD[-1] != '0' else '1'}",
    "mistyped body": f"Bearer {GOOD[:20]}{'0' if GOOD[20] != '0' else '1'}{GOOD[21:]}",
    "another prefix": f"Bearer {tokens.mint('other')}",
    "the prefix changed": f"Bearer other{GOOD[6:]}",
    "another kind's prefix": f"Bearer assent_at{GOOD[6:]}",
    "upper-case prefix": f"Bearer {GOOD.replace('assent', 'ASSENT')}",
    "swapped case": f"Bearer {GOOD.swapcase()}",
    "another script's digits": f"Bearer {GOOD[:-1]}٣",
    "non-ascii": "Bearer ключ🔑",
    "control characters": f"Bearer {GOOD[:9]}\x01{GOOD[9:]}",
    "very long": "Bearer " + "a" * 100_000,
    "very long in the right form": "Bearer assent_" + "A" * 100_000,
    "very many separators": "Bearer " + "a_" * 50_000,
    "an id": "Bearer key_00000000000000000000000000000000",
}


@each("path", ["/v1/me", "/v1/api-keys"])
@each("header", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_credential_returns_401_without_reading_the_table(header, path, api: Api):
    with recorded_calls() as calls:
        reply = api.get(path, headers={"Authorization": header})
    assert (reply.status, reply.code, calls) == (401, "UNAUTHORIZED", [])
    scheme, _, token = header.partition(" ")
    is_token = scheme.lower() == "bearer" and token.strip(" ")
    assert reply.challenge == ('Bearer error="invalid_token"' if is_token else "Bearer")


def test_every_rejected_credential_with_a_right_checksum_gets_the_same_response(api: Api, world: World, now):
    company = world.company()
    expired = world.token(company.owner.user_id, lifetime_seconds=60)
    deleted = world.key(company)
    key_id = api.get("/v1/me", deleted).data["principal"]["keyId"]
    api.delete(f"/v1/api-keys/{key_id}", company.owner.token)
    now.advance(60)
    replies = [api.get("/v1/me", secret) for secret in (expired, deleted, GOOD, tokens.mint("assent_at"))]
    assert {reply.status for reply in replies} == {401}
    assert len({reply.text for reply in replies}) == 1


@each("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", "Bearer {} "])
def test_the_scheme_is_case_insensitive_and_spaces_around_the_secret_are_ignored(form, api: Api, world: World):
    """RFC 7235 section 2.1: schemes are case-insensitive and are followed by one or more spaces."""
    secret = world.key(world.company())
    assert api.get("/v1/me", headers={"Authorization": form.format(secret)}).status == 200


def test_a_well_formed_unknown_secret_costs_two_writes_and_is_counted_for_its_address(api: Api):
    with recorded_calls() as calls:
        assert api.get("/v1/me", GOOD).status == 401
    assert [call.operation for call in calls] == ["UpdateItem"] * 2
    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert item["pk"]["S"] == "IP#rejected#198.51.100.7"
