"""DELETE /v1/api-keys/{keyId}: the secret is invalid as soon as the transaction commits."""

from controlplane.api_keys import changes as key_changes
from controlplane.platform.core import acting, ids
from controlplane.platform.core.ids import KeyId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.api_keys.conftest import Organization, id_of
from tests.support.api import Api
from tests.support.calls import before_the_update_of
from tests.support.each import each
from tests.support.world import World, table_dump

MALFORMED_IDS = ["x", "key_", "key_x", "key_..%2F", "KEY%23x", "prj_" + "0" * 34, "k" * 2000, "%F0%9F%94%91"]


def test_the_secret_is_rejected_immediately_and_no_item_of_the_key_remains(acme: Organization):
    kept, key = acme.create(), acme.create()
    reply = acme.delete(key)
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert acme.works(kept, key) == [True, False]
    # The sweep still has to send the event of its creation.
    left = [it for it in table_dump() if not it["pk"]["S"].startswith((keys.LOG_PREFIX, "OUTBOX#"))]
    assert key["keyId"] not in str(left)
    for missing in (acme.delete(key), acme.roll(key), acme.update(key, name="x")):
        assert (missing.status, missing.code) == (404, "NOT_FOUND")
    assert acme.count() == (1, 1)


def test_a_request_during_the_deletion_doesnt_bring_the_listed_key_back(acme: Organization):
    key = acme.create()

    def delete() -> None:
        with acting.command():
            key_changes.delete_key(id_of(key))

    with before_the_update_of(table.client, "lastUsedAt", delete):
        assert acme.works(key) == [True]
    assert acme.listed() == []


def test_an_admin_may_delete_a_key_and_a_member_may_not(acme: Organization, world: World):
    key, member, admin = acme.create(), world.member(acme.company), world.member(acme.company, "admin")
    assert acme.call("DELETE", f"/{key['keyId']}", member.token).code == "FORBIDDEN"
    assert acme.works(key) == [True]
    assert acme.call("DELETE", f"/{key['keyId']}", admin.token).status == 200


@each(("method", "action"), [("DELETE", ""), ("POST", "/roll")])
def test_another_organizations_key_looks_like_an_unknown_one(method, action, acme: Organization, api: Api):
    other = Organization(api, acme.world, owner=acme.owner)
    theirs = other.create()
    key_ids = [theirs["keyId"], KeyId.of(acme.id, ids.new_local()), *MALFORMED_IDS]
    replies = [acme.call(method, f"/{key_id}{action}") for key_id in key_ids]
    assert {(reply.status, reply.code) for reply in replies} == {(404, "NOT_FOUND")}
    assert replies[0].text == replies[1].text
    assert other.works(theirs) == [True]
