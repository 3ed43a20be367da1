"""Builds and deploys the template as `make deploy` does, to a local AWS that the tests start."""

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

from tests.support.api import Reply

ROOT = Path(__file__).parents[2]
# A folder of its own: these artifacts are for this machine's processor and must not be deployed to AWS by mistake.
BUILD = ROOT / ".aws-sam" / "e2e" / "build"
ARCHITECTURE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
STACK = "assent-e2e"
STAGE = "live"
REGION = "eu-central-1"


class CommandFailed(Exception):
    """A tool ended with an error; the message is what it printed."""


def run(*command: str | Path, **environment: str) -> str:
    """What the command printed. Raises CommandFailed."""
    result = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise CommandFailed(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def build() -> str:
    """Builds every artifact for this machine's processor. Returns the report of sizes."""
    return run(ROOT / "scripts" / "build", "--architecture", ARCHITECTURE, "--build-dir", BUILD)


def deploy(endpoint_url: str) -> None:
    run(
        ROOT / ".tools" / "sam" / "bin" / "sam",
        "deploy",
        "--template-file",
        BUILD / "template.yaml",
        "--config-file",
        ROOT / "samconfig.toml",
        "--stack-name",
        STACK,
        "--parameter-overrides",
        f"Architecture={ARCHITECTURE}",
        "--no-confirm-changeset",
        "--no-progressbar",
        AWS_ENDPOINT_URL=endpoint_url,
        AWS_DEFAULT_REGION=REGION,
        SAM_CLI_TELEMETRY="0",
    )


@dataclass
class Stack:
    """The deployed stack, as the AWS API describes it and as its gateway answers."""

    endpoint_url: str
    request_timeout_seconds: float = 60

    def client(self, service: str) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint_url, region_name=REGION)

    @cached_property
    def outputs(self) -> dict[str, str]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    @cached_property
    def physical_ids(self) -> dict[str, str]:
        """The resources' own names, by logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK)
        summaries = [summary for page in pages for summary in page["StackResourceSummaries"]]
        return {summary["LogicalResourceId"]: summary["PhysicalResourceId"] for summary in summaries}

    def function_environment(self, logical_id: str) -> dict[str, str]:
        """The variables of a deployed function, with every reference of the template resolved."""
        configuration = self.client("lambda").get_function_configuration(FunctionName=self.physical_ids[logical_id])
        variables: dict[str, str] = configuration["Environment"]["Variables"]
        return variables

    def call(
        self,
        method: str,
        target: str,
        token: str | None = None,
        *,
        json_body: Any = None,
        raw_body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request to the gateway; `target` is a path with its query, without the stage."""
        body = raw_body if raw_body is not None or json_body is None else json.dumps(json_body).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent.update(headers or {})
        connection = HTTPConnection(urlsplit(self.endpoint_url).netloc, timeout=self.request_timeout_seconds)
        try:
            connection.request(method, f"/restapis/{self.outputs['ApiId']}/{STAGE}/_user_request_{target}", body, sent)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        answered = {name.lower(): value for name, value in response.getheaders()}
        is_json = answered.get("content-type", "").startswith("application/json")
        return Reply(response.status, answered, json.loads(text) if is_json else None, text)

    def errors(self) -> str:
        """What the functions logged as warnings and errors so far: the reason behind a 500."""
        client = self.client("logs")
        groups = client.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{STACK}-")["logGroups"]
        messages = [
            event["message"]
            for group in groups
            for event in client.filter_log_events(logGroupName=group["logGroupName"])["events"]
        ]
        signs = ('"level":"ERROR"', '"level":"WARNING"', "[ERROR]", "Traceback")
        return "\n".join(message for message in messages if any(sign in message for sign in signs))


def import_gateway_responses(stack: Stack) -> None:
    """Do by hand what AWS does when it imports the API and MiniStack leaves out: take over the gateway's own answers.

    They come from the deployed stack's processed template, so what is tested is what the template says.
    """
    gateway, api_id = stack.client("apigateway"), stack.outputs["ApiId"]
    processed = stack.client("cloudformation").get_template(StackName=STACK, TemplateStage="Processed")["TemplateBody"]
    (api,) = [r for r in processed["Resources"].values() if r["Type"] == "AWS::ApiGateway::RestApi"]
    for kind, answer in api["Properties"]["Body"]["x-amazon-apigateway-gateway-responses"].items():
        gateway.put_gateway_response(
            restApiId=api_id,
            responseType=kind,
            statusCode=str(answer["statusCode"]),
            responseParameters=answer["responseParameters"],
            responseTemplates=answer["responseTemplates"],
        )
    deployment = gateway.create_deployment(restApiId=api_id)["id"]
    gateway.update_stage(
        restApiId=api_id,
        stageName=STAGE,
        patchOperations=[{"op": "replace", "path": "/deploymentId", "value": deployment}],
    )
