"""The deployed stack through its gateway: routes, operations that the story doesn't call, and rejections."""

import re

import pytest

from controlplane.platform.http.route import EVERY_PATH
from dashboard.assets import asset
from local.gateway import REQUEST_LIMIT_BYTES
from tests.e2e.deployment import Stack
from tests.e2e.people import Caller
from tests.support.operations import is_page, operations
from tests.support.template import Route, routes_by_group
from tests.support.world import Company, World

ROUTES = [route for routes in routes_by_group().values() for route in routes]
OPERATIONS = [Route(operation.method, operation.path) for operation in operations()]
# Routes that only exist for known names.
FILES = {
    "/assets/{fileName}": f"/assets/{asset('css').name}",
    "/docs/{fileName}": "/docs/createProject.md",
    "/docs/rules/{ruleId}": "/docs/rules/embedded-media",
}


class TestRoutes:
    def test_the_gateway_has_the_templates_routes(self, stack: Stack):
        pages = stack.client("apigateway").get_paginator("get_resources")
        found = [
            Route(method, resource["path"])
            for page in pages.paginate(restApiId=stack.outputs["ApiId"])
            for resource in page["items"]
            for method in resource.get("resourceMethods", {})
        ]
        assert sorted(found) == sorted(ROUTES)

    @pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: f"{route.method} {route.path}")
    def test_every_operation_reaches_its_function(self, stack: Stack, route: Route):
        path = FILES.get(route.path, route.path).replace("{", "").replace("}", "")
        reply = stack.call(route.method, path)
        # 400: a public operation got no body. A page requires a session, or redirects to the sign-in.
        expected = {200, 303, 400, 401, 403} if is_page(path) else {200, 400, 401}
        if route.path == EVERY_PATH:
            expected = {404}
        if "{link}" in route.path or "{instanceId}" in route.path or path.endswith(("/security.txt", "/badge")):
            expected = expected | {404}
        if path == "/check":
            expected = {415}
        assert reply.status in expected, f"{reply.text}\n{stack.errors()}"


class TestTasks:
    """Operations that the story doesn't call, under their functions' roles: a policy may lack a permission."""

    def test_a_project_is_created_updated_and_deleted(self, stack: Stack, company: Company):
        call = Caller(stack, company.owner.token)
        body = {"name": "Magazine", "region": "eu-central", "websites": ["one.example.com", "two.example.com"]}
        created = call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "magazine"})
        project = f"/v1/projects/{created['id']}"
        assert call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "magazine"}) == created
        call(200, "PATCH", project, {"projectName": "Journal", "description": None})
        assert call(200, "GET", project)["projectName"] == "Journal"
        instance = call(200, "GET", f"{project}/consent")["instanceId"]
        configured = stack.call("GET", f"/v1/consent-instances/{instance}/configuration")
        assert (configured.status, configured.data["origins"]) == (200, ["one.example.com", "two.example.com"])
        assert len(call(200, "GET", f"{project}/consent")["trustedOrigins"]) == 2
        assert call(200, "POST", f"{project}/vendors/google-analytics/decision", {"decision": "approve"})
        website = created["websites"][0]["id"]
        assert call(200, "DELETE", f"{project}/websites/{website}")["websiteId"] == website
        assert call(200, "DELETE", project)["deleted"] is True
        assert stack.call("GET", project, company.owner.token).status == 404

    def test_a_key_is_created_rolled_and_revoked(self, stack: Stack, company: Company):
        call = Caller(stack, company.owner.token)
        key = call(201, "POST", "/v1/api-keys", {"name": "deploy"}, **{"Idempotency-Key": "deploy"})
        assert call(201, "POST", "/v1/api-keys", {"name": "deploy"}, **{"Idempotency-Key": "deploy"}) == key
        rolled = call(200, "POST", f"/v1/api-keys/{key['keyId']}/roll")
        assert stack.call("GET", "/v1/projects", key["key"]).status == 401
        assert stack.call("GET", "/v1/projects", rolled["key"]).status == 200
        for listing in ("/v1/api-keys", "/v1/auth/keys"):
            assert rolled["keyId"] in [item["keyId"] for item in call(200, "GET", listing)]
        assert call(200, "DELETE", f"/v1/api-keys/{rolled['keyId']}") == {"deleted": True}

    def test_a_member_is_promoted_and_removed_and_an_invitation_canceled(
        self, stack: Stack, world: World, company: Company
    ):
        call, person = Caller(stack, company.owner.token), world.member(company)
        (member,) = [it for it in call(200, "GET", "/v1/members") if it["user"]["id"] == person.user_id]
        assert call(200, "PATCH", f"/v1/members/{member['id']}", {"role": "admin"}) == {"updated": True}
        assert call(200, "DELETE", f"/v1/members/{member['id']}") == {"deleted": True}
        invited = call(201, "POST", "/v1/invitations", {"email": "grace@example.com", "role": "member"})
        assert call(200, "DELETE", f"/v1/invitations/{invited['id']}") == {"deleted": True}

    def test_the_metadata_and_the_document_name_urls_of_this_api(self, stack: Stack):
        found = stack.call("GET", "/.well-known/oauth-authorization-server").body
        assert found["issuer"] == stack.outputs["BaseUrl"]
        assert found["token_endpoint"] == f"{found['issuer']}/v1/auth/device/token"
        assert stack.call("GET", "/openapi.json").body["servers"][0]["url"] == stack.outputs["BaseUrl"]

    def test_the_health_check_reads_the_deployed_table(self, stack: Stack):
        assert stack.call("GET", "/health").data == {"ok": True, "database": {"ok": True}}

    def test_the_reference_finds_its_assets_below_the_stage(self, stack: Stack):
        page = stack.call("GET", "/docs").text
        assert f"<code>{stack.outputs['BaseUrl']}</code>" in page
        parts = re.findall(r'(?:href|src)="(docs/[^"]+|llms\.txt|openapi\.json)"', page)
        assert len(set(parts)) > 40
        for part in {*parts[:8], "llms.txt", "openapi.json"}:
            assert stack.call("GET", f"/{part}").status == 200


class TestGatewayErrors:
    """The own responses of the deployed gateway: `tests/functional/test_gateways.py` has the rest."""

    def test_an_unknown_route_is_404(self, stack: Stack):
        reply = stack.call("GET", "/v1/unknown")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert reply.headers["x-request-id"].startswith(reply.headers["x-amzn-requestid"])

    def test_an_unknown_method_is_405_with_the_known_ones(self, stack: Stack):
        reply = stack.call("PUT", "/v1/projects")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST")

    def test_a_request_over_the_gateways_limit_is_413(self, stack: Stack, world: World, company: Company):
        reply = stack.call("POST", "/v1/projects", world.key(company), raw_body=b" " * (REQUEST_LIMIT_BYTES + 1))
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
