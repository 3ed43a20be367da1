"""Lambda handler of the hook: invokes the new version with a request that changes nothing, and reports the result.

It uses nothing that it checks, such as the layer. If AWS rejects one of its own calls, it fails without a report, and
Lambda repeats it twice: after one and after two minutes. So checks that use up all executions of a small account free
theirs. Without any report, CodeDeploy fails the deployment after an hour.
"""

import json
import logging
import os
from typing import Any

import boto3
from botocore.config import Config

_LOG = logging.getLogger()
_LOG.setLevel(logging.INFO)
# Longer than a new version takes to start and to respond. Throttled calls are repeated for about half a minute.
_CONFIG = Config(read_timeout=60, retries={"mode": "standard", "total_max_attempts": 8})
# The request that each function of the API gets, and the status that its response must have. A function that isn't here
# is a worker, and gets a batch without messages. Neither changes anything.
CHECKS = {
    "SystemFunction": ("GET", "/health", 200),
    "OrganizationsFunction": ("GET", "/v1/organizations", 401),
    "MembersFunction": ("GET", "/v1/members", 401),
    "ProjectsFunction": ("GET", "/v1/projects", 401),
    "ConsentInstancesFunction": ("GET", "/v1/consent-instances/-/configuration", 404),
    "ApiKeysFunction": ("GET", "/v1/api-keys", 401),
    "BillingFunction": ("GET", "/v1/billing", 401),
    "DeviceAuthFunction": ("GET", "/v1/me/sessions", 401),
    "FeedbackFunction": ("POST", "/v1/feedback", 401),
    "CodeAuditFunction": ("GET", "/v1/code-audit/scans", 401),
    "InboxFunction": ("GET", "/v1/inbox", 401),
    "DashboardFunction": ("GET", "/", 200),
}


class Rejected(Exception):
    """The new version must not get traffic. The argument says why, without the content of its response."""


def handler(event: dict[str, str], context: Any) -> None:
    """Reports Succeeded or Failed to CodeDeploy."""
    deployments = boto3.client("codedeploy", config=_CONFIG)
    deployment_id = event["DeploymentId"]
    status = "Succeeded"
    for name, version in _targets(deployments, deployment_id):
        try:
            _check(_arn_of(name, context), version, deployment_id)
        except Rejected as reason:
            status = "Failed"
            _LOG.error("%s, version %s, gets no traffic: %s", name, version, reason)
    deployments.put_lifecycle_event_hook_execution_status(
        deploymentId=deployment_id,
        lifecycleEventHookExecutionId=event["LifecycleEventHookExecutionId"],
        status=status,
    )


def _targets(deployments: Any, deployment_id: str) -> list[tuple[str, str]]:
    """Returns the name and the new version of each function of the deployment."""
    deployment = deployments.get_deployment(deploymentId=deployment_id)["deploymentInfo"]
    # The deployment itself names its revision only by a digest.
    revision = deployments.get_application_revision(
        applicationName=deployment["applicationName"], revision=deployment["revision"]
    )["revision"]
    content = json.loads((revision.get("string") or revision["appSpecContent"])["content"])
    resources = [resource["Properties"] for entry in content["Resources"] for resource in entry.values()]
    return [(it["Name"], it["TargetVersion"]) for it in resources]


def _arn_of(name: str, context: Any) -> str:
    """Returns the ARN of a function of the same account and region."""
    return ":".join([*context.invoked_function_arn.split(":")[:6], name])


def _check(function: str, version: str, request_id: str) -> None:
    """Raises Rejected unless the version responds to its function's check as it must."""
    functions = boto3.client("lambda", config=_CONFIG)
    tags = functions.list_tags(Resource=function)["Tags"]
    check = CHECKS.get(tags["aws:cloudformation:logical-id"])
    event = _request(check[0], check[1], request_id) if check else {"Records": []}
    invoked = functions.invoke(FunctionName=function, Qualifier=version, Payload=json.dumps(event).encode())
    answer = json.load(invoked["Payload"])
    if "FunctionError" in invoked:
        raise Rejected(f"it failed with {answer.get('errorType')}")
    if check:
        _check_response(answer, check[2], request_id)


def _request(method: str, path: str, request_id: str) -> dict[str, Any]:
    """Returns the gateway's event of the request, without a credential."""
    headers = {"Accept": ["application/json"]}
    if secret := os.environ.get("FRONT_DOOR_SECRET"):
        headers["X-Front-Door"] = [json.loads(secret)["current"]]
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": {name: value for name, (value,) in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "requestId": request_id,
            "resourcePath": path,
            "httpMethod": method,
            "identity": {"sourceIp": "127.0.0.1", "userAgent": "deployment-check"},
        },
        "body": None,
        "isBase64Encoded": False,
    }


def _check_response(answer: dict[str, Any], expected: int, request_id: str) -> None:
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    # A response with a challenge has its status here, for the front door.
    status = int(headers.get("x-front-door-status", answer["statusCode"]))
    if status != expected:
        raise Rejected(f"the status is {status} instead of {expected}")
    if not headers.get("x-request-id", "").startswith(request_id):
        raise Rejected("X-Request-Id isn't the request's")
    if headers.get("content-type", "").startswith("application/json"):
        body = json.loads(answer["body"])
        if body.get("success") is not (status < 400) or ("data" if status < 400 else "error") not in body:
            raise Rejected("the body isn't the envelope")
