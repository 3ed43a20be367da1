"""Builds and deploys the template as `make deploy` does, to a local AWS that the tests start."""

import json
import os
import platform
import re
import string
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import boto3

from controlplane.platform.http.client_address import SECRET_HEADER
from local.front_door import FrontDoor
from local.gateway import TIMEOUT_SECONDS, Gateway, Request, Response
from local.template import NESTED, load_template
from tests.e2e.external import ExternalServices
from tests.e2e.gateway import Invocations, deployed_responses, deployed_routes
from tests.support.api import Reply
from tests.support.response_checks import check_envelope, check_response

ROOT = Path(__file__).parents[2]
# A separate folder: these artifacts are for this machine's processor and must not be deployed to AWS by mistake.
BUILD = ROOT / ".aws-sam" / "e2e" / "build"
PACKED = BUILD / "packed.yaml"
_BROWSER = frozenset({"chromium", "driver"})
_ARTIFACT = re.compile(r"(?<=Uri: )[^\s,}]+")
MINISTACK = (ROOT / ".tools" / "ministack" / "bin" / "python", Path(__file__).with_name("ministack_process.py"))
ARCHITECTURE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
STACK = "assent-e2e"
STAGE = "live"
ALIAS = "live"
REGION = "eu-central-1"


class CommandFailed(Exception):
    """A tool exited with an error. The message is its output."""


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """Runs a command and returns its output. Raises CommandFailed."""
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise CommandFailed(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def build() -> str:
    """Builds and packs every artifact for this machine's processor. Returns the report of sizes."""
    report = run(ROOT / "scripts" / "build", "--architecture", ARCHITECTURE, "--build-dir", BUILD)
    adapt(BUILD / "template.yaml")
    pack(BUILD / "template.yaml")
    return report


def adapt(template: Path) -> None:
    """Changes what MiniStack doesn't support.

    It has no CodeDeploy, and transforms with the defaults. It ignores `ExcludePunctuation`, so that one key in 94 would
    start with a brace, and the API would take it for JSON. It doesn't transform the templates of nested stacks.
    """
    folder = template.parent
    for nested in [
        *folder.glob("*/template.yaml"),
        *(it for path in NESTED.values() if (it := folder / path.name).exists()),
    ]:
        plain = {name: part for name, part in load_template(nested).items() if name != "Transform"}
        nested.write_text(json.dumps(plain))
    text = template.read_text()
    text = text.replace("ExcludePunctuation: true", f"ExcludeCharacters: {json.dumps(string.punctuation)}")
    if "Unchecked" in text:  # an older version has no check
        text = text.replace("Default: AllAtOnce", "Default: Unchecked")
    template.write_text(text)


def pack(template: Path) -> Path:
    """Packs the template's artifacts. Returns a copy that names the archives.

    SAM would pack them again for each deployment, and compress them well, which takes most of its time. They come
    without the browser, which is larger than all else: no website is audited in the deployment.
    """

    def pack_one(found: re.Match[str]) -> str:
        folder = template.parent / found[0]
        if not folder.is_dir():
            return found[0]
        with zipfile.ZipFile(f"{folder}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder)
                if _BROWSER.isdisjoint(name.parts):
                    archive.write(path, name)
        return f"{found[0]}.zip"

    copy = template.with_name(PACKED.name)
    copy.write_text(_ARTIFACT.sub(pack_one, template.read_text()))
    return copy


def deploy(endpoint_url: str, parameters: Mapping[str, str], template: Path) -> None:
    """Deploys a template with those of the parameters that it has."""
    command = (ROOT / ".tools" / "sam" / "bin" / "sam", "deploy", "--template-file", template)
    options = ("--config-file", ROOT / "samconfig.toml", *deploy_options(parameters, template))
    run(*command, *options, **aws(endpoint_url))


def deploy_options(parameters: Mapping[str, str], template: Path) -> list[str]:
    """Returns options of `sam deploy` for the tests' stack, with those of the parameters that the template has."""
    declared = load_template(template)["Parameters"]
    given = {"Architecture": ARCHITECTURE, **parameters}
    overrides = [f"{name}={value}" for name, value in given.items() if name in declared]
    return ["--stack-name", STACK, "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides", *overrides]


def aws(endpoint_url: str) -> dict[str, str]:
    """Returns the variables with which SAM calls a local AWS, which has no limit of requests."""
    location = {"AWS_ENDPOINT_URL": endpoint_url, "AWS_DEFAULT_REGION": REGION}
    return {**location, "SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.5"}


class Invoked(NamedTuple):
    """A function's response; `failure` describes its error, if any."""

    failure: str | None
    answer: str


@dataclass
class Stack:
    """The deployed stack, as the AWS API describes it and as the double of its gateway responds."""

    endpoint_url: str
    timeout_seconds: float = TIMEOUT_SECONDS
    checks_responses: bool = True
    secrets: set[str] = field(default_factory=set, repr=False)
    """Credentials that answers carried, and those that tests added."""

    failures: list[str] = field(default_factory=list)
    """Why invocations through the gateway failed."""

    def client(self, service: str) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint_url, region_name=REGION)

    @cached_property
    def outputs(self) -> dict[str, str]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    @cached_property
    def physical_ids(self) -> dict[str, str]:
        """Returns the physical IDs of the resources, by logical ID, also of those of nested stacks."""
        own = self._resources(STACK)
        nested = [self._resources(own[name]) for name in NESTED if name in own]
        return {name: it for ids in (own, *nested) for name, it in ids.items()}

    def _resources(self, stack: str) -> dict[str, str]:
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
        summaries = [summary for page in pages for summary in page["StackResourceSummaries"]]
        return {summary["LogicalResourceId"]: summary["PhysicalResourceId"] for summary in summaries}

    def function_environment(self, logical_id: str) -> dict[str, str]:
        """Returns a deployed function's variables, with every reference of the template resolved."""
        configuration = self.client("lambda").get_function_configuration(FunctionName=self.physical_ids[logical_id])
        variables: dict[str, str] = configuration["Environment"]["Variables"]
        return variables

    def invoke(self, logical_id: str, event: str) -> "Invoked":
        """Invokes a function as AWS does, through the alias that deployments move, with events/<event>.json."""
        answer = self.client("lambda").invoke(
            FunctionName=self.physical_ids[logical_id],
            Qualifier=ALIAS,
            Payload=(ROOT / "events" / f"{event}.json").read_bytes(),
        )
        return Invoked(answer.get("FunctionError"), answer["Payload"].read().decode())

    def gateway(self) -> Gateway:
        """Returns the double of the deployed REST API."""
        api, client = self.outputs["ApiId"], self.client("apigateway")
        return Gateway(
            Invocations(self.endpoint_url, REGION, self.failures, self.timeout_seconds),
            deployed_routes(client, api),
            own_responses=self.own_responses(),
            stage_variables=client.get_stage(restApiId=api, stageName=STAGE)["variables"],
        )

    def own_responses(self) -> dict[str, Any]:
        """Returns the gateway's own responses, from the processed template of the stack, by type."""
        formation = self.client("cloudformation")
        processed = formation.get_template(StackName=STACK, TemplateStage="Processed")["TemplateBody"]
        return deployed_responses(processed, self.outputs["BaseUrl"])

    @cached_property
    def respond(self) -> Callable[[Request], Response]:
        """Returns what responds to requests of clients: the gateway, or the front door if the stack has one."""
        gateway = self.gateway()
        distribution = self.physical_ids.get("FrontDoorDistribution")
        if distribution is None:
            return gateway.respond
        found = self.client("cloudfront").get_distribution_config(Id=distribution)["DistributionConfig"]
        (origin,) = found["Origins"]["Items"]
        headers = {it["HeaderName"].lower(): it["HeaderValue"] for it in origin["CustomHeaders"]["Items"]}
        return FrontDoor(gateway.respond, headers[SECRET_HEADER]).respond

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
        """Sends a request as a client does, and checks the envelope of the response, unless that is switched off.

        `target`: a path with its query, with or without the stage, or a full URL of the API.
        """
        target = target.removeprefix(self.outputs["BaseUrl"]).removeprefix(f"/{STAGE}") or "/"
        body = raw_body if raw_body is not None or json_body is None else json.dumps(json_body).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent.update(headers or {})
        response = self.respond(Request(method, target, [*sent.items()], body or b""))
        reply = Reply.of_response(response)
        self.secrets |= _credentials_in(reply)
        path = target.partition("?")[0]
        if not self.checks_responses or method == "HEAD":  # the response to GET without its body
            return reply
        if response.is_own:
            check_envelope(path, reply, response.request_id)
        else:
            check_response(path, sent, reply, response.request_id)
        return reply

    def url(self, target: str) -> str:
        """Returns where MiniStack's gateway serves a path of the API over HTTP."""
        return f"{self.endpoint_url}/restapis/{self.outputs['ApiId']}/{STAGE}/_user_request_{target}"

    def logs(self) -> dict[str, list[str]]:
        """Returns everything logged so far, by log group."""
        client = self.client("logs")
        groups = client.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{STACK}-")["logGroups"]
        pages = client.get_paginator("filter_log_events")
        return {
            group["logGroupName"]: [
                event["message"]
                for page in pages.paginate(logGroupName=group["logGroupName"])
                for event in page["events"]
            ]
            for group in groups
        }

    def errors(self) -> str:
        """Returns failed invocations and the functions' warnings and errors so far: the reasons behind a 5xx."""
        signs = ('"level":"ERROR"', '"level":"WARNING"', "[ERROR]", "Traceback")
        logged = [message for messages in self.logs().values() for message in messages]
        return "\n".join([*self.failures, *(it for it in logged if any(sign in it for sign in signs))])


def convert_concurrency(stack: Stack) -> None:
    """Sets the concurrency of each event source to a number, which CloudFormation makes of the parameter's text.

    MiniStack doesn't, and can't compare the text with a number, so no queue would be read.
    """
    functions = stack.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig=mapping["ScalingConfig"])


def connect(stack: Stack, external: ExternalServices) -> None:
    """Passes on values that exist only after the deployment, and registers the GitHub App's URLs as operators do."""
    external.pool_url = f"{stack.endpoint_url}/{stack.physical_ids['UserPool']}"
    external.github.accounts.callback_url = f"{stack.outputs['BaseUrl']}/github/callback"
    external.webhooks.url = stack.url("/v1/github/webhooks")
    ring = stack.function_environment("SystemFunction")["GITHUB_WEBHOOK_SECRET"]
    external.webhooks.secret = json.loads(ring)["current"]
    for name, value in (("GithubAppKey", external.app_key), ("GithubClientSecret", external.client_secret)):
        secret = stack.physical_ids[name]
        stack.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=value)


# Response fields that hold a credential: in JSON by their names on the wire, in pages as form fields.
_CREDENTIAL_FIELDS = {"accessToken", "refreshToken", "access_token", "refresh_token", "deviceCode", "userCode", "key"}
_FORM_CREDENTIAL = re.compile(r'name="(?:form_token|seal)" value="([^"]+)"')


def _credentials_in(reply: Reply) -> set[str]:
    """Returns every credential in the response: cookies, tokens, keys, and codes."""
    found = {cookie.partition("=")[2].partition(";")[0] for cookie in reply.cookies}
    content = reply.body.get("data", reply.body) if isinstance(reply.body, dict) else None
    if isinstance(content, dict):
        found |= {value for name, value in content.items() if name in _CREDENTIAL_FIELDS and isinstance(value, str)}
    found |= set(_FORM_CREDENTIAL.findall(reply.text))
    query = parse_qs(urlsplit(reply.headers.get("location", "")).query)
    found |= {value for name in ("state", "nonce", "code") for value in query.get(name, [])}
    return found - {""}
