"""Unknown query parameters and fields: rejected if ignoring them would return or grant more than was asked for."""

import typing

from controlplane.platform.core import ids
from controlplane.platform.http.envelope import Page
from tests.functional.test_every_route import ANONYMOUS, PROTECTED, address, required, send, send_valid
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.valid_requests import CHANGING, valid_body

LISTS = [operation for operation in operations() if operation.route.known_query and operation.method == "GET"]
# What GitHub calls.
REGISTERED = {"POST /v1/github/webhooks", "POST /v1/github/leaked-keys"}


def _named(operation: Operation) -> str:
    return operation.name


def test_only_lists_and_operations_that_change_something_reject_unknown_parameters():
    def is_list(operation: Operation) -> bool:
        returned = operation.route.return_type
        return typing.get_origin(returned) in (Page, list) or operation.path.endswith("/issues")

    changing = {operation.name for operation in CHANGING.values()} - REGISTERED
    expected = {operation.name for operation in operations() if is_list(operation)} | changing
    assert {operation.name for operation in operations() if operation.route.known_query is not None} == expected


@each("operation", LISTS, ids=_named)
class TestLists:
    def test_an_unknown_parameter_returns_400_with_the_known_ones(self, operation, api, world):
        company = world.company()
        path = address(operation, company.organization_id)
        reply = api.get(f"{path}?urgency=P0&dryRun=true", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        known = operation.route.known_query or []
        assert known[0] == "organizationId"
        assert [(problem["path"], problem["known"]) for problem in reply.error["details"]] == [
            (["urgency"], known),
            (["dryRun"], known),
        ]
        assert reply.error["message"].startswith("urgency: this operation accepts organizationId")
        assert reply.error["message"].endswith(" (and 1 more)")
        assert all(name in reply.error["message"] for name in known)

    def test_a_repeated_parameter_returns_400(self, operation, api, world):
        company = world.company()
        path = address(operation, company.organization_id)
        reply = api.get(f"{path}?limit=1&limit=2", company.owner.token)
        assert (reply.status, reply.error["details"][0]["code"]) == (400, "repeated")


@each("query", ["name=%00", "&".join(f"a{number}=1" for number in range(65))])
def test_a_query_with_nul_or_too_many_parameters_returns_400(query, api, world):
    token = world.company().owner.token
    for path in ("/v1/me", "/v1/projects"):
        reply = api.get(f"{path}?{query}", token)
        assert (reply.status, reply.error["details"][0]["code"]) == (400, "query_invalid")
    assert api.get(f"/v1/me?{'&'.join(query.split('&')[:64])}", token).status == (200 if "&" in query else 400)


@each("operation", PROTECTED, ids=_named)
class TestOrganizationId:
    def test_organization_id_is_accepted_everywhere(self, operation, api, world):
        """Where the path or the caller determines the organization, the parameter has no effect."""
        company = world.company()
        token, organization_id = company.owner.token, company.organization_id
        is_chosen = required(operation).organization == "query"
        for named in [organization_id] if is_chosen else [ids.new_root(ids.ORGANIZATION), "nonsense"]:
            query = f"{'&' if '?' in address(operation, organization_id) else '?'}organizationId={named}"
            without = send_valid(api, operation, token, organization_id)
            reply = send_valid(api, operation, token, organization_id, query)
            assert reply.status == without.status or {reply.status, without.status} <= {200, 201, 409}, reply.text
            assert reply.status != 400


def test_organization_id_is_accepted_without_a_credential(api):
    assert api.get("/v1/regions?organizationId=org_x").status == 200
    assert api.get("/health?organizationId=org_x").status == 200
    for operation in ANONYMOUS:
        reply = api.post(f"{operation.path}?organizationId=org_x", json_body=valid_body(operation))
        assert reply.status == api.post(operation.path, json_body=valid_body(operation)).status


class TestKeys:
    """A request for a narrow key must not create a wide one."""

    NARROW: typing.ClassVar = {"scope": "projects.read", "expiry": "2027-01-01T00:00:00Z"}

    def test_creating_and_rolling_a_key_rejects_each_unknown_field(self, api, world):
        token = world.company().owner.token
        # The others are named like parts of a request.
        for fields in (self.NARROW, {"query": 1, "body": 1}):
            reply = api.post("/v1/api-keys", token, json_body={"name": "CI", **fields})
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
            assert [(it["path"], it["code"]) for it in reply.error["details"]] == [
                ([name], "extra_forbidden") for name in fields
            ]
        assert api.get("/v1/api-keys", token).data == []
        made = api.post("/v1/api-keys", token, json_body={"name": "CI"}).data
        reply = api.post(f"/v1/api-keys/{made['keyId']}/roll", token, json_body=self.NARROW)
        assert [problem["path"] for problem in reply.error["details"]] == [["scope"], ["expiry"]]
        assert reply.error["message"] == "scope: unknown field (and 1 more)"
        assert api.get("/v1/me", made["key"]).status == 200

    def test_a_body_without_fields_is_the_same_request_as_no_body(self, api, world):
        token, headers = world.company().owner.token, {"Idempotency-Key": "one"}
        made = api.post("/v1/api-keys", token, json_body={"name": "CI"}).data
        path = f"/v1/api-keys/{made['keyId']}/roll"
        rolled = [api.post(path, token, json_body=body, headers=headers) for body in (None, {}, None)]
        assert [(reply.status, reply.data) for reply in rolled] == [(200, rolled[0].data)] * 3
        assert api.post(path, token, json_body=self.NARROW, headers=headers).status == 400


@each("operation", ANONYMOUS, ids=_named)
def test_an_oauth_operation_rejects_unknown_parameters_of_json_only(operation, api):
    """RFC 6749, section 3.2: the authorization server must ignore unrecognized parameters."""
    reply = api.post(f"{operation.path}?clientID=x", json_body=valid_body(operation))
    assert (reply.status, reply.error["details"][0]["code"]) == (400, "unknown_parameter")
    plain, with_unknown = (api.form(operation.path + query, {"client_id": "x"}) for query in ("", "?audience=x"))
    assert (with_unknown.status, with_unknown.body) == (plain.status, plain.body)


def test_other_operations_ignore_unknown_parameters(api, world):
    company = world.company()
    for operation in PROTECTED:
        if operation.route.known_query is None and not required(operation).resource:
            with_unknown = send(api, operation, company.owner.token, company.organization_id, "?trace=1")
            assert "unknown_parameter" not in with_unknown.text, operation.name
