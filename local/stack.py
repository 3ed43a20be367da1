"""Deploys the template's stateful resources to MiniStack through CloudFormation, unless they already exist."""

import hashlib
import json
import time
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from local import environment
from local.ministack import DeployFailed
from local.template import load_template, stateful_part

_STACK = "assent"
_DEPLOY_TIMEOUT_SECONDS = 60
# A table that a changed template replaces must be deletable here.
_PARAMETERS = {"DeletionProtection": "false"}


class Deployment(NamedTuple):
    """Physical ids by logical id, and whether the stack is new."""

    resources: dict[str, str]
    is_new: bool


class LocalStack:
    """The stack on one MiniStack."""

    def __init__(self, endpoint: str, base_url: str) -> None:
        self._client = environment.create_client("cloudformation", endpoint)
        self._template = stateful_part(load_template())
        # Where the sign-in page of the user pool sends people back to.
        self._parameters = {**_PARAMETERS, "DashboardBaseUrl": base_url}
        described = json.dumps([self._template, self._parameters], sort_keys=True)
        self.digest = hashlib.sha256(described.encode()).hexdigest()

    def deploy(self, deployed: str) -> Deployment:
        """Deploys the current template, unless its digest is `deployed`. Raises DeployFailed."""
        resources = self._find_resources()
        if resources is None:
            self._apply(self._client.create_stack)
            return Deployment(self._find_resources() or {}, is_new=True)
        if deployed != self.digest:
            self._apply(self._client.update_stack)
            resources = self._find_resources() or {}
        return Deployment(resources, is_new=False)

    def _find_resources(self) -> dict[str, str] | None:
        """Returns physical ids by logical id, or None if the stack doesn't exist."""
        try:
            found = self._client.describe_stack_resources(StackName=_STACK)["StackResources"]
        except ClientError:
            return None
        return {it["LogicalResourceId"]: it["PhysicalResourceId"] for it in found}

    def _apply(self, operation: Any) -> None:
        declared = self._template.get("Parameters", {})
        parameters = [
            {"ParameterKey": name, "ParameterValue": value}
            for name, value in self._parameters.items()
            if name in declared
        ]
        try:
            operation(StackName=_STACK, TemplateBody=json.dumps(self._template), Parameters=parameters)
        except ClientError as error:
            if "No updates are to be performed" in str(error):
                return
            raise DeployFailed(str(error)) from error
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _DEPLOY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            stack = self._client.describe_stacks(StackName=_STACK)["Stacks"][0]
            status = stack["StackStatus"]
            if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                return
            if not status.endswith("IN_PROGRESS"):
                raise DeployFailed(f"{status}: {stack.get('StackStatusReason', 'no reason given')}")
            time.sleep(0.02)
        raise DeployFailed(f"The stack was not ready within {_DEPLOY_TIMEOUT_SECONDS} s.")
