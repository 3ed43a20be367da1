"""GET and PATCH /v1/api-keys/{keyId}: limits can be made stricter, and never wider."""

from typing import Any

from controlplane.store import api_keys, keys
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.audit_log import all_entries
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import Company, World

LIMITS: dict[str, Any] = {
    "scopes": ["billing.read", "inbox.read"],
    "allowedIps": ["10.0.0.0/8", "2001:db8::/32"],
    "expiresAt": "2026-04-01T00:00:00Z",
}


def create(api: Api, company: Company, **body: Any) -> dict[str, Any]:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    made: dict[str, Any] = api.post(path, company.owner.token, json_body={"name": "deploy", **body}).data
    return made


def patch(api: Api, company: Company, made: dict[str, Any], **body: Any) -> Reply:
    return api.patch(f"/v1/api-keys/{made['keyId']}", company.owner.token, json_body=body)


class Test200:
    def test_names_and_descriptions_change_freely(self, api: Api, world: World):
        company = world.company()
        key = create(api, company, description="Old")
        assert patch(api, company, key, name=" Deploys ", description="New").data["name"] == "Deploys"
        changed = patch(api, company, key, description=None).data
        assert (changed["name"], changed["description"]) == ("Deploys", None)
        assert patch(api, company, key, description="").data == changed
        assert api.get(f"/v1/api-keys/{key['keyId']}", key["key"]).data == api.get("/v1/api-keys", key["key"]).data[0]

    @each(
        "stricter",
        [
            {"scopes": ["inbox.read"]},
            {"allowedIps": ["10.1.0.0/16"]},
            {"allowedIps": ["10.0.0.0/9", "10.200.0.0/16", "2001:db8::1"]},
            {"expiresAt": "2026-03-31T23:59:59Z"},
            {"scopes": ["inbox.read"], "allowedIps": ["2001:db8::/33"], "expiresAt": "2026-03-05T00:00:00Z"},
        ],
    )
    def test_limits_can_be_made_stricter(self, stricter, api: Api, world: World):
        company = world.company()
        key = create(api, company, **LIMITS)
        changed = patch(api, company, key, **stricter).data
        expected = {**{name: key[name] for name in LIMITS}, **stricter}
        if "expiresAt" in stricter:
            expected["expiresAt"] = stricter["expiresAt"].replace("Z", ".000Z")
        if "2001:db8::1" in expected["allowedIps"]:
            expected["allowedIps"] = ["10.0.0.0/9", "10.200.0.0/16", "2001:db8::1/128"]
        assert {name: changed[name] for name in LIMITS} == expected

    def test_limits_can_be_added_and_apply_to_the_next_request(self, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        assert api.get("/v1/billing", key["key"]).status == 200
        assert patch(api, company, key, **{**LIMITS, "scopes": ["inbox.read"]}).status == 200
        assert api.get("/v1/billing", key["key"]).code == "FORBIDDEN"
        api.source_ip = "10.0.0.1"
        assert api.get("/v1/billing", key["key"]).code == "INSUFFICIENT_SCOPE"
        assert api.get("/v1/inbox", key["key"]).status == 200

    def test_a_person_who_reads_a_key_costs_no_read_of_the_plan(self, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        with recorded_calls() as calls:
            assert api.get(f"/v1/api-keys/{key['keyId']}", company.owner.token).status == 200
        (read,) = (call for call in calls if call.operation == "BatchGetItem")
        assert len(read.parameters["RequestItems"][table.name]["Keys"]) == 2  # the key and the membership

    def test_the_last_use_is_kept(self, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        api.get("/v1/me", key["key"])
        assert patch(api, company, key, name="x").data["lastUsedAt"] is not None

    def test_the_audit_log_has_both_values(self, api: Api, world: World):
        company = world.company()
        key = create(api, company, **LIMITS)
        patch(api, company, key, scopes=["inbox.read"], name="Deploys")
        entry = next(it for it in all_entries() if it["action"] == "api_key.update")
        assert (entry["action"], entry["actorId"]) == ("api_key.update", company.owner.user_id)
        assert entry["before"] == {"name": "deploy", "scopes": ["billing.read", "inbox.read"]}
        assert entry["after"] == {"name": "Deploys", "scopes": ["inbox.read"]}

    def test_the_same_values_change_nothing(self, api: Api, world: World):
        company = world.company()
        key = create(api, company, **LIMITS)
        before = all_entries()
        assert patch(api, company, key, name="deploy", **LIMITS).status == 200
        assert all_entries() == before


class Test400:
    @each(
        ("wider", "field"),
        [
            ({"scopes": ["billing.read", "projects.read"]}, "scopes"),
            ({"scopes": None}, "scopes"),
            ({"allowedIps": ["10.0.0.0/7"]}, "allowedIps"),
            ({"allowedIps": ["10.0.0.0/8", "192.0.2.1"]}, "allowedIps"),
            ({"allowedIps": ["0.0.0.0/0"]}, "allowedIps"),
            ({"allowedIps": ["::/0"]}, "allowedIps"),
            ({"allowedIps": None}, "allowedIps"),
            ({"expiresAt": "2026-04-01T00:00:01Z"}, "expiresAt"),
            ({"expiresAt": None}, "expiresAt"),
        ],
    )
    def test_a_change_that_widens_names_the_field(self, wider, field, api: Api, world: World):
        company = world.company()
        key = create(api, company, **LIMITS)
        before = api_keys.list_keys(company.organization_id, 1, None).keys
        reply = patch(api, company, key, name="Other", **wider)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [(it["path"], it["code"]) for it in reply.error["details"]] == [([field], "widens")]
        assert api_keys.list_keys(company.organization_id, 1, None).keys == before

    def test_other_projects_widen_a_key(self, api: Api, world: World):
        company = world.company()
        first, second = (world.connected_repository(company).links[0].project_id for _ in range(2))
        key = create(api, company, projectIds=[first, second])
        for _ in range(2):
            assert patch(api, company, key, projectIds=[second]).data["projectIds"] == [second]
        reply = patch(api, company, key, projectIds=[first, second])
        assert reply.error["details"][0]["path"] == ["projectIds"]

    @each(
        "body", [{}, {"name": ""}, {"name": None}, {"expiresAt": "2026-03-04T05:06:07Z"}, {"scopes": []}, {"key": "x"}]
    )
    def test_an_invalid_change_is_rejected(self, body, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        assert patch(api, company, key, **body).code == "INVALID_PAYLOAD"


class Test403And404:
    def test_only_admins_change_keys(self, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        member = world.member(company)
        path = f"/v1/api-keys/{key['keyId']}"
        assert api.patch(path, member.token, json_body={"name": "x"}).code == "FORBIDDEN"
        assert api.get(path, member.token).status == 200
        assert api.patch(path, key["key"], json_body={"name": "x"}).code == "INSUFFICIENT_SCOPE"

    def test_a_deleted_key_does_not_exist(self, api: Api, world: World):
        company = world.company()
        key = create(api, company)
        path = f"/v1/api-keys/{key['keyId']}"
        api.delete(f"{path}?organizationId={company.organization_id}", company.owner.token)
        assert table.get(keys.api_key(company.organization_id, key["keyId"][-18:])) is None
        assert api.get(path, company.owner.token).code == "NOT_FOUND"
        assert patch(api, company, key, name="x").code == "NOT_FOUND"
