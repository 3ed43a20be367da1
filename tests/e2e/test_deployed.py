"""The deployed stack through its gateway: its routes, an errand with an API key, the refusals."""

import json

import pytest

from tests.e2e.deployment import STAGE, Stack
from tests.support.api import Reply, check_envelope
from tests.support.template import Route, resources, routes_by_group
from tests.support.world import Company, World

ROUTES = [route for routes in routes_by_group().values() for route in routes]


def check(target: str, reply: Reply) -> Reply:
    check_envelope(target.partition("?")[0], reply)
    return reply


class TestRoutes:
    def test_stand_in_the_gateway_as_the_template_declares_them(self, stack: Stack):
        pages = stack.client("apigateway").get_paginator("get_resources")
        found = [
            Route(method, resource["path"])
            for page in pages.paginate(restApiId=stack.outputs["ApiId"])
            for resource in page["items"]
            for method in resource.get("resourceMethods", {})
        ]
        assert sorted(found) == sorted(ROUTES)

    @pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
    def test_reach_their_function(self, stack: Stack, route: Route):
        path = route.path.replace("{", "").replace("}", "")
        reply = check(path, stack.call(route.method, path))
        assert reply.status in {200, 401}, f"{reply.text}\n{stack.errors()}"


class TestErrand:
    def test_a_project_is_created_and_listed_with_an_api_key(self, stack: Stack, world: World, company: Company):
        key = world.key(company)
        body = {"name": "Web shop", "websites": ["https://shop.example.com"]}
        created = check("/v1/projects", stack.call("POST", "/v1/projects", key, json_body=body))
        assert created.status == 201, f"{created.text}\n{stack.errors()}"
        listed = check("/v1/projects", stack.call("GET", "/v1/projects?limit=10", key))
        assert [project["projectId"] for project in listed.data] == [created.data["id"]]
        assert listed.headers["x-ratelimit-limit"] == "1500"

    def test_a_key_of_another_organization_sees_none_of_it(self, stack: Stack, world: World, company: Company):
        listed = check("/v1/projects", stack.call("GET", "/v1/projects", world.key(world.company("starter"))))
        assert listed.data == []

    def test_the_health_check_reads_the_deployed_table(self, stack: Stack):
        reply = check("/health", stack.call("GET", "/health"))
        assert reply.data == {"ok": True, "database": {"ok": True}}

    def test_the_description_is_served(self, stack: Stack):
        assert stack.call("GET", "/openapi.json").body["openapi"].startswith("3.")


class TestRefusalOfTheGateway:
    @pytest.mark.parametrize("token", [None, "assent_unknown"])
    @pytest.mark.parametrize(
        ("method", "target"), [("GET", "/v1/unknown"), ("GET", "/v2/projects"), ("PUT", "/v1/projects")]
    )
    def test_an_unknown_route_is_404(self, stack: Stack, method: str, target: str, token: str | None):
        reply = check(target, stack.call(method, target, token))
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert reply.headers["x-request-id"] == reply.headers["x-amzn-requestid"]

    def test_a_body_over_the_limit_is_413(self, stack: Stack, world: World, company: Company):
        too_long = json.dumps({"name": "x" * 1_048_576}).encode()
        reply = check("/v1/projects", stack.call("POST", "/v1/projects", world.key(company), raw_body=too_long))
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE"), stack.errors()

    def test_requests_over_the_stage_s_rate_are_429_with_the_time_to_wait(self, stack: Stack):
        gateway, api = stack.client("apigateway"), stack.outputs["ApiId"]
        operations = {"rateLimit": "1", "burstLimit": "1"}

        def throttle(limits: dict[str, str]) -> None:
            patches = [{"op": "replace", "path": f"/*/*/throttling/{k}", "value": v} for k, v in limits.items()]
            gateway.update_stage(restApiId=api, stageName=STAGE, patchOperations=patches)

        before = gateway.get_stage(restApiId=api, stageName=STAGE)["methodSettings"]["*/*"]
        throttle(operations)
        try:
            replies = [check("/v1/regions", stack.call("GET", "/v1/regions")) for _ in range(4)]
        finally:
            throttle(
                {
                    "rateLimit": str(before["throttlingRateLimit"]),
                    "burstLimit": str(before["throttlingBurstLimit"]),
                }
            )
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert {reply.code for reply in refused} == {"RATE_LIMITED"}
        assert {reply.headers["retry-after"] for reply in refused} == {"1"}


class TestStack:
    def test_holds_the_functions_with_tracing_log_group_and_layer(self, stack: Stack):
        client = stack.client("lambda")
        for logical_id in resources("AWS::Serverless::Function"):
            configuration = client.get_function_configuration(FunctionName=stack.physical_ids[logical_id])
            assert configuration["TracingConfig"]["Mode"] == "Active"
            assert configuration["LoggingConfig"]["LogGroup"].startswith("/aws/lambda/")
            assert len(configuration["Layers"]) == 1

    def test_tells_the_functions_the_address_of_the_api(self, stack: Stack):
        stage = stack.client("apigateway").get_stage(restApiId=stack.outputs["ApiId"], stageName=STAGE)
        assert stage["variables"]["publicBaseUrl"] == stack.outputs["BaseUrl"]

    def test_throttles_all_methods_as_the_parameters_say(self, stack: Stack):
        stage = stack.client("apigateway").get_stage(restApiId=stack.outputs["ApiId"], stageName=STAGE)
        limits = stage["methodSettings"]["*/*"]
        assert (limits["throttlingRateLimit"], limits["throttlingBurstLimit"]) == (500, 1000)
