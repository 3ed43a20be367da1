"""The deployed stack through its gateway: routes, one call of each operation with an API key, and rejections."""

import json
import re

import httpx
import pytest

from dashboard.pages import asset
from local.gateway import REQUEST_LIMIT_BYTES
from tests.e2e.deployment import STAGE, Stack
from tests.e2e.people import Caller
from tests.support.operations import is_page, operations
from tests.support.template import Route, functions, routes_by_group
from tests.support.world import Company, World

LAYERS = ["SharedLayer", "AnalysisLayer"]
ROUTES = [route for routes in routes_by_group().values() for route in routes]
OPERATIONS = [Route(operation.method, operation.path) for operation in operations()]
# Routes that only exist for known names.
FILES = {"/assets/{fileName}": f"/assets/{asset('css').name}", "/docs/{fileName}": "/docs/createProject.md"}


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
        if route.path.endswith("{page}"):
            expected = {404}
        if "{link}" in route.path:
            expected = expected | {404}
        assert reply.status in expected, f"{reply.text}\n{stack.errors()}"


class TestTasks:
    """Calls each operation once, under its function's role, to find permissions that its policy lacks."""

    def test_a_project_is_created_and_listed_with_an_api_key(self, stack: Stack, world: World, company: Company):
        call = Caller(stack, world.key(company))
        body = {"name": "Web shop", "region": "eu-central", "websites": ["shop.example.com"]}
        created = call(201, "POST", "/v1/projects", body)
        assert created["dashboardUrl"].startswith(f"{stack.outputs['BaseUrl']}/")
        assert created["id"] in [project["projectId"] for project in call(200, "GET", "/v1/projects?limit=10")]
        assert call(200, "GET", "/v1/me")["principal"]["type"] == "api_key"
        assert call(200, "GET", "/v1/billing")["organizationId"] == company.organization_id

    def test_a_project_is_created_updated_and_deleted(self, stack: Stack, company: Company):
        call = Caller(stack, company.owner.token)
        body = {"name": "Magazine", "region": "eu-central", "websites": ["one.example.com", "two.example.com"]}
        created = call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "magazine"})
        project = f"/v1/projects/{created['id']}"
        assert call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "magazine"}) == created
        call(200, "PATCH", project, {"projectName": "Journal", "description": None})
        assert call(200, "GET", project)["projectName"] == "Journal"
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

    def test_a_member_is_promoted_and_removed(self, stack: Stack, world: World, company: Company):
        call, person = Caller(stack, company.owner.token), world.member(company)
        (member,) = [it for it in call(200, "GET", "/v1/members") if it["user"]["id"] == person.user_id]
        assert call(200, "PATCH", f"/v1/members/{member['id']}", {"role": "admin"}) == {"updated": True}
        assert call(200, "DELETE", f"/v1/members/{member['id']}") == {"deleted": True}

    def test_an_invitation_is_created_and_canceled(self, stack: Stack, company: Company):
        call = Caller(stack, company.owner.token)
        invited = call(201, "POST", "/v1/invitations", {"email": "grace@example.com", "role": "member"})
        assert [it["id"] for it in call(200, "GET", "/v1/invitations")] == [invited["id"]]
        assert call(200, "DELETE", f"/v1/invitations/{invited['id']}") == {"deleted": True}

    def test_an_organization_is_created(self, stack: Stack, world: World):
        call = Caller(stack, world.person().token)
        founded = call(201, "POST", "/v1/organizations", {"name": "Meridian"})
        assert call(200, "GET", f"/v1/organizations/{founded['id']}") == founded
        assert [it["organizationId"] for it in call(200, "GET", "/v1/organizations")] == [founded["id"]]

    def test_the_metadata_names_urls_of_this_api(self, stack: Stack):
        found = stack.call("GET", "/.well-known/oauth-authorization-server").body
        assert found["issuer"] == stack.outputs["BaseUrl"]
        assert found["token_endpoint"] == f"{found['issuer']}/v1/auth/device/token"

    def test_the_health_check_reads_the_deployed_table(self, stack: Stack):
        reply = stack.call("GET", "/health")
        assert reply.data == {"ok": True, "database": {"ok": True}}

    def test_the_openapi_document_is_served(self, stack: Stack):
        found = stack.call("GET", "/openapi.json").body
        assert found["openapi"].startswith("3.")
        assert found["servers"][0]["url"] == stack.outputs["BaseUrl"]

    def test_the_reference_finds_its_assets_below_the_stage(self, stack: Stack):
        page = stack.call("GET", "/docs").text
        assert f"<code>{stack.outputs['BaseUrl']}</code>" in page
        parts = re.findall(r'(?:href|src)="(docs/[^"]+|llms\.txt|openapi\.json)"', page)
        assert len(set(parts)) > 40
        for part in {*parts[:8], "llms.txt", "openapi.json"}:
            assert stack.call("GET", f"/{part}").status == 200


class TestGatewayErrors:
    @pytest.mark.parametrize("token", [None, "assent_unknown"])
    @pytest.mark.parametrize(
        ("method", "target"), [("GET", "/v1/unknown"), ("GET", "/v2/projects"), ("POST", "/health")]
    )
    def test_an_unknown_route_is_404(self, stack: Stack, method: str, target: str, token: str | None):
        reply = stack.call(method, target, token)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert reply.headers["x-request-id"] == reply.headers["x-amzn-requestid"]

    def test_an_unknown_method_is_405_with_the_known_ones(self, stack: Stack):
        reply = stack.call("PUT", "/v1/projects")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST")

    def test_head_is_the_response_to_get_without_its_body(self, stack: Stack):
        for path, status in (("/health", 200), ("/", 200), ("/v1/regions", 200), ("/v1/me", 401)):
            reply = stack.call("HEAD", path)
            assert (reply.status, reply.text) == (status, "")

    def test_a_body_over_the_limit_is_413(self, stack: Stack, world: World, company: Company):
        too_long = json.dumps({"name": "x" * 1_048_576}).encode()
        reply = stack.call("POST", "/v1/projects", world.key(company), raw_body=too_long)
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE"), stack.errors()

    def test_a_request_over_the_gateways_limit_is_413(self, stack: Stack, world: World, company: Company):
        reply = stack.call("POST", "/v1/projects", world.key(company), raw_body=b" " * (REQUEST_LIMIT_BYTES + 1))
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")

    def test_a_challenge_arrives_under_the_name_that_the_gateway_gives_it(self, stack: Stack):
        reply = stack.call("GET", "/v1/me")
        assert (reply.status, reply.headers["x-amzn-remapped-www-authenticate"]) == (401, "Bearer")
        assert "www-authenticate" not in reply.headers


class TestDeployedRestApi:
    """Requests over HTTP to the REST API that MiniStack deployed, which throttles, as the double doesn't."""

    def test_a_request_reaches_its_function(self, stack: Stack, company: Company):
        found = httpx.get(
            stack.url("/v1/me"), headers={"Authorization": f"Bearer {company.owner.token}"}, trust_env=False, timeout=60
        )
        assert found.json()["data"]["principal"]["userId"] == company.owner.user_id

    def test_requests_over_the_stages_rate_return_429_with_retry_after(self, stack: Stack):
        gateway, api = stack.client("apigateway"), stack.outputs["ApiId"]

        def throttle(rate: float, burst: int) -> None:
            limits = {"rateLimit": str(rate), "burstLimit": str(burst)}
            patches = [{"op": "replace", "path": f"/*/*/throttling/{k}", "value": v} for k, v in limits.items()]
            gateway.update_stage(restApiId=api, stageName=STAGE, patchOperations=patches)

        before = gateway.get_stage(restApiId=api, stageName=STAGE)["methodSettings"]["*/*"]
        throttle(1, 1)
        try:
            replies = [httpx.get(stack.url("/v1/regions"), trust_env=False, timeout=60) for _ in range(4)]
        finally:
            throttle(before["throttlingRateLimit"], before["throttlingBurstLimit"])
        refused = [reply for reply in replies if reply.status_code == 429]
        assert refused
        assert {reply.json()["error"]["code"] for reply in refused} == {"RATE_LIMITED"}
        assert {reply.headers["retry-after"] for reply in refused} == {"1"}


class TestStack:
    def test_the_stacks_functions_have_tracing_a_log_group_and_their_layers(self, stack: Stack):
        client = stack.client("lambda")
        for logical_id in functions():
            configuration = client.get_function_configuration(FunctionName=stack.physical_ids[logical_id])
            assert configuration["TracingConfig"]["Mode"] == "Active"
            assert configuration["LoggingConfig"]["LogGroup"].startswith("/aws/lambda/")
            layers = [layer["Arn"].split(":")[-2] for layer in configuration["Layers"]]
            assert layers == (LAYERS if logical_id == "ScanExecutionFunction" else LAYERS[:1])

    def test_the_stack_tells_the_functions_the_apis_url(self, stack: Stack):
        stage = stack.client("apigateway").get_stage(restApiId=stack.outputs["ApiId"], stageName=STAGE)
        assert stage["variables"]["publicBaseUrl"] == stack.outputs["BaseUrl"]

    def test_the_stack_throttles_all_methods_by_concurrency(self, stack: Stack):
        stage = stack.client("apigateway").get_stage(restApiId=stack.outputs["ApiId"], stageName=STAGE)
        limits = stage["methodSettings"]["*/*"]
        assert (limits["throttlingRateLimit"], limits["throttlingBurstLimit"]) == (100, 50)
