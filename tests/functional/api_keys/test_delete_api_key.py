"""DELETE /v1/api-keys/{keyId}: the secret is invalid as soon as the transaction commits."""

from controlplane.core import acting, ids
from controlplane.core.ids import KeyId
from controlplane.store import billing, key_changes, keys
from controlplane.store.table import table
from tests.support.api import Api
from tests.support.calls import before_the_transaction, before_the_update_of
from tests.support.each import each
from tests.support.world import World, table_dump


def make(api: Api, company, name: str = "deploy") -> dict:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    return api.post(path, company.owner.token, json_body={"name": name}).data


class Test200:
    def test_the_secret_is_rejected_immediately_and_no_item_of_the_key_remains(self, api: Api, world: World):
        company = world.company()
        made = make(api, company)
        assert api.get("/v1/me", made["key"]).status == 200
        reply = api.delete(f"/v1/api-keys/{made['keyId']}", company.owner.token)
        assert (reply.status, reply.data) == (200, {"deleted": True})
        assert api.get("/v1/me", made["key"]).status == 401
        assert api.get("/v1/api-keys", company.owner.token).data == []
        # The sweep still has to send the event of its creation.
        left = [it for it in table_dump() if not it["pk"]["S"].startswith((keys.LOG_PREFIX, "OUTBOX#"))]
        assert made["keyId"] not in str(left)
        organization = table.get(keys.organization(company.organization_id))
        assert organization is not None
        assert organization["keys"] == 0

    def test_a_request_during_the_deletion_doesnt_bring_the_listed_key_back(self, api: Api, world: World):
        company = world.company()
        made = make(api, company)
        key_id = KeyId.parse(made["keyId"])
        assert key_id is not None

        def delete() -> None:
            with acting.command():
                key_changes.delete_key(key_id)

        with before_the_update_of(table.client, "lastUsedAt", delete):
            assert api.get("/v1/me", made["key"]).status == 200
        assert api.get("/v1/api-keys", company.owner.token).data == []

    def test_deleting_a_key_leaves_others_working(self, api: Api, world: World):
        company = world.company()
        first, second = make(api, company), make(api, company)
        api.delete(f"/v1/api-keys/{first['keyId']}", company.owner.token)
        assert api.get("/v1/me", second["key"]).status == 200

    def test_an_admin_may_delete_a_key(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        assert api.delete(f"/v1/api-keys/{make(api, company)['keyId']}", admin.token).status == 200

    def test_a_key_can_be_deleted_on_the_free_plan(self, api: Api, world: World):
        company = world.company()
        made = make(api, company)
        billing.change_plan(company.organization_id, "free")
        assert api.delete(f"/v1/api-keys/{made['keyId']}", company.owner.token).status == 200

    def test_the_named_organization_is_used(self, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        made = make(api, second)
        path = f"/v1/api-keys/{made['keyId']}"
        assert api.delete(f"{path}?organizationId={first.organization_id}", first.owner.token).code == "NOT_FOUND"
        assert api.delete(f"{path}?organizationId={second.organization_id}", first.owner.token).status == 200


class Test400:
    def test_several_organizations_require_a_choice(self, api: Api, world: World):
        first = world.company()
        made = make(api, first)
        world.company(owner=first.owner)
        world.clear_default(first.owner)
        reply = api.delete(f"/v1/api-keys/{made['keyId']}", first.owner.token)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["organizationId"]


class Test403:
    def test_a_member_may_not_delete_a_key(self, api: Api, world: World):
        company = world.company()
        made = make(api, company)
        before = table_dump()
        reply = api.delete(f"/v1/api-keys/{made['keyId']}", world.member(company).token)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert {item["sk"]["S"] for item in before} <= {item["sk"]["S"] for item in table_dump()}
        assert api.get("/v1/me", made["key"]).status == 200

    def test_a_key_cannot_delete_keys_including_itself(self, api: Api, world: World):
        made = make(api, world.company())
        reply = api.delete(f"/v1/api-keys/{made['keyId']}", made["key"])
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "api-keys.write"}
        assert api.get("/v1/me", made["key"]).status == 200

    def test_a_role_lost_between_authorization_and_commit_is_rejected(self, api: Api, world: World):
        company = world.company()
        admin, made = world.member(company, "admin"), make(api, company)

        with before_the_transaction(table.client, lambda: world.leave(company, admin)):
            assert api.delete(f"/v1/api-keys/{made['keyId']}", admin.token).code == "FORBIDDEN"
        assert api.get("/v1/me", made["key"]).status == 200


class Test404:
    def test_an_unknown_key_looks_like_another_organizations_key(self, api: Api, world: World):
        company = world.company()
        theirs = make(api, world.company())
        unknown = KeyId.of(company.organization_id, ids.new_local())
        token = company.owner.token
        replies = [api.delete(f"/v1/api-keys/{key_id}", token) for key_id in (theirs["keyId"], unknown)]
        assert [(reply.status, reply.code) for reply in replies] == [(404, "NOT_FOUND")] * 2
        assert replies[0].text == replies[1].text
        assert api.get("/v1/me", theirs["key"]).status == 200

    @each("key_id", ["x", "key_", "key_..%2F", "KEY%23x", "prj_" + "0" * 34, "k" * 2000, "%F0%9F%94%91"])
    def test_a_malformed_key_id_returns_404(self, key_id, api: Api, world: World):
        assert api.delete(f"/v1/api-keys/{key_id}", world.company().owner.token).code == "NOT_FOUND"

    def test_a_deleted_key_returns_404(self, api: Api, world: World):
        company = world.company()
        path = f"/v1/api-keys/{make(api, company)['keyId']}"
        assert api.delete(path, company.owner.token).status == 200
        assert api.delete(path, company.owner.token).status == 404
        organization = table.get(keys.organization(company.organization_id))
        assert organization is not None
        assert organization["keys"] == 0
