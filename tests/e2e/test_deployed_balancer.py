"""The load balancer as it is deployed: its rules, targets, and permissions lead to the functions, over HTTP.

MiniStack's load balancer has neither TLS nor limits, and it decodes paths and queries. It knows no sampling rules, so
`TracedShare` has its default.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import deployment
from tests.e2e.deployment import REGION, ROOT, Stack
from tests.e2e.external import ExternalServices
from tests.support.each import each
from tests.support.engines import running_engine
from tests.support.template import api_functions

_DOMAIN = "api.assent.test"
_CERTIFICATE = "arn:aws:acm:eu-central-1:000000000000:certificate/00000000-0000-0000-0000-000000000000"


@dataclass
class Balanced:
    """A stack of its own, which has the load balancer and no platform lines."""

    stack: Stack

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Sends a request to the load balancer, which MiniStack finds by the request's host."""
        headers = {"Host": self.stack.outputs["CustomDomainTarget"], **options.pop("headers", {})}
        url = f"{self.stack.endpoint_url}{path}"
        return httpx.request(method, url, headers=headers, timeout=60, **options)


@pytest.fixture(scope="module")
def balanced(sizes: str, external: ExternalServices) -> Iterator[Balanced]:
    with pytest.MonkeyPatch.context() as environment:
        # MiniStack takes it for the region of requests that aren't signed.
        environment.setenv("MINISTACK_REGION", REGION)
        with running_engine("MiniStack", ROOT / ".tools" / "ministack" / "bin" / "ministack") as engine:
            yield _deployed(Stack(engine.endpoint_url), external)


def _deployed(stack: Stack, external: ExternalServices) -> Balanced:
    subnets = stack.client("ec2").describe_subnets()["Subnets"]
    parameters = {
        "BalancerVpc": subnets[0]["VpcId"],
        "BalancerSubnets": ",".join(it["SubnetId"] for it in subnets[:2]),
        "CertificateArn": _CERTIFICATE,
        "CustomDomain": _DOMAIN,
        "PlatformLogs": "failures",
    }
    deployment.deploy(stack.endpoint_url, {**external.parameters, **parameters}, _without_metric_math())
    for name in api_functions():
        # MiniStack ignores the template's targets.
        group, alias = (stack.physical_ids[it] for it in (_group_of(name), f"{name}Aliaslive"))
        stack.client("elbv2").register_targets(TargetGroupArn=group, Targets=[{"Id": alias}])
    return Balanced(stack)


def _group_of(function: str) -> str:
    return f"{function.removesuffix('Function')}Targets"


def _without_metric_math() -> Path:
    """Returns a copy of the template without the load balancer's alarm of errors, which MiniStack rejects."""
    built = deployment.BUILD / "template.yaml"
    text = built.read_text(encoding="utf-8")
    alarm = "  BalancerServerErrorsAlarm:\n    Type: AWS::CloudWatch::Alarm\n    Condition: "
    assert f"{alarm}HasBalancer" in text
    copy = built.with_name("balancer.yaml")
    copy.write_text(text.replace(f"{alarm}HasBalancer", f"{alarm}IsGradual"), encoding="utf-8")
    return copy


@each(
    ("path", "status"),
    [
        ("/v1/regions", 200),
        ("/docs/errors.md", 200),
        ("/v1/me", 401),
        ("/v1/me/sessions", 401),
        ("/v1/organizations", 401),
        ("/v1/members", 401),
        ("/v1/projects/prj_x", 401),
        ("/v1/api-keys", 401),
        ("/v1/billing", 401),
        ("/v1/code-audit/scans", 401),
        ("/v1/inbox", 401),
        ("/", 200),
        ("/v1/nothing", 404),
    ],
)
def test_requests_reach_every_function(balanced: Balanced, path: str, status: int):
    response = balanced.call("GET", path, headers={"Accept": "application/json"})
    assert response.status_code == status, response.text
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"
    if path == "/v1/nothing":
        assert "x-request-id" not in response.headers
        address = response.json()["error"]["details"]["docsUrl"]
        assert address == f"https://{_DOMAIN}/docs/errors#NOT_FOUND"


def test_a_write_arrives_with_its_body(balanced: Balanced):
    device = {"clientId": "assent-cli", "codeChallenge": "E" * 43, "codeChallengeMethod": "S256"}
    response = balanced.call("POST", "/v1/auth/device/code", json=device)
    assert response.status_code == 201, response.text
    assert response.json()["data"]["verificationUri"].startswith(f"https://{_DOMAIN}/")
    assert balanced.call("POST", "/v1/feedback", json={}).status_code == 401


def test_each_alias_may_be_invoked_by_its_target_group_only(balanced: Balanced):
    stack = balanced.stack
    for name in api_functions():
        policy = stack.client("lambda").get_policy(FunctionName=stack.physical_ids[name], Qualifier="live")["Policy"]
        statements = json.loads(policy)["Statement"]
        (own,) = [it for it in statements if it["Principal"] == {"Service": "elasticloadbalancing.amazonaws.com"}]
        group = stack.physical_ids[_group_of(name)]
        (pattern,) = own["Condition"]["ArnLike"].values()
        assert group.startswith(pattern.removesuffix("*")), (group, pattern)


def test_the_functions_log_failures_only_and_have_their_own_client(balanced: Balanced):
    functions = balanced.stack.client("lambda")
    found = functions.get_function_configuration(FunctionName=balanced.stack.physical_ids["InboxFunction"])
    logging = {name: found["LoggingConfig"][name] for name in ("LogFormat", "SystemLogLevel", "ApplicationLogLevel")}
    assert logging == {"LogFormat": "JSON", "SystemLogLevel": "WARN", "ApplicationLogLevel": "INFO"}
    client = balanced.stack.function_environment("DashboardFunction")["SIGN_IN_CLIENT_ID"]
    assert client == balanced.stack.physical_ids["BalancerUserPoolClient"]
