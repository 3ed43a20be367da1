"""GET /v1/api-keys, and GET /v1/auth/keys, its earlier path."""

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.platform.core import keyring
from tests.functional.api_keys.conftest import Organization, problems
from tests.support.api import Api
from tests.support.operations import operations
from tests.support.world import World

PATH, EARLIER_PATH = "/v1/api-keys", "/v1/auth/keys"


@pytest.mark.parametrize(("path", "other"), [(PATH, EARLIER_PATH), (EARLIER_PATH, PATH)])
def test_paging_returns_each_key_of_the_organization_once_newest_first(path, other, acme: Organization, now):
    second = Organization(acme.api, acme.world, owner=acme.owner)
    second.create(name="theirs")
    for number in range(5):
        acme.create(name=f"key {number}")
        now.advance(1)
    page = f"{path}?organizationId={acme.id}&limit=2"
    reply = acme.api.get(page, acme.token)
    cursor, names = reply.body["pagination"]["nextCursor"], [key["name"] for key in reply.data]
    for refusing in (f"{other}?organizationId={acme.id}", f"{path}?organizationId={second.id}"):
        assert problems(acme.api.get(f"{refusing}&cursor={cursor}", acme.token))[0][0] == ["cursor"]
    while next_cursor := reply.body["pagination"]["nextCursor"]:
        assert len(reply.data) == 2
        reply = acme.api.get(f"{page}&cursor={next_cursor}", acme.token)
        names += [key["name"] for key in reply.data]
    assert names == [f"key {number}" for number in (4, 3, 2, 1, 0)]


def test_a_cursor_issued_before_the_paths_had_separate_cursors_still_works(acme: Organization):
    for _ in range(2):
        acme.create()
    position = api_keys.list_keys(acme.id, 1, None).next_sk
    cursor = keyring.seal_cursor(("listApiKeys", acme.id), position)
    assert len(acme.api.get(f"{PATH}?cursor={cursor}", acme.owner.token).data) == 1


def test_a_member_and_a_key_list_the_keys_of_their_organization(acme: Organization, api: Api, world: World):
    Organization(api, world).create(name="theirs")
    key, member = acme.create(), world.member(acme.company)
    for token in (member.token, key["key"]):
        assert [it["keyId"] for it in api.get(PATH, token).data] == [key["keyId"]]


def test_last_use_is_accurate_to_the_hour(acme: Organization, now):
    key = acme.create()
    uses = []
    for minutes in (0, 53, 1):
        now.advance(minutes * 60)
        acme.works(key)
        uses.append(acme.listed()[0]["lastUsedAt"])
    assert uses == ["2026-03-04T05:06:07.000Z", "2026-03-04T05:06:07.000Z", "2026-03-04T06:00:07.000Z"]
    assert acme.update(key, name="x").data["lastUsedAt"] == uses[-1]


def test_a_key_made_by_the_operator_says_so(acme: Organization):
    api_keys.create_key(acme.id, "ops", "operator", "ops")
    assert acme.listed()[0]["meta"]["createdFrom"] == "ops"


def test_the_earlier_path_is_marked_deprecated():
    deprecated = {operation.name: bool(operation.route.deprecated) for operation in operations()}
    assert (deprecated[f"GET {EARLIER_PATH}"], deprecated[f"GET {PATH}"]) == (True, False)
