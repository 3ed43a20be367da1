"""Deploys the template's stateful resources to MiniStack through CloudFormation, and lets the demo's users sign in."""

import hashlib
import json
import secrets
from typing import Any, NamedTuple

from botocore.exceptions import ClientError, WaiterError

from local import environment
from local.ministack import DeployFailed
from local.sign_in import create_account
from local.template import load_template, stateful_part

_STACK = "assent"
_WAITER = {"Delay": 0.05, "MaxAttempts": 1200}
# A table that a changed template replaces must be deletable here.
_PARAMETERS = {"DeletionProtection": "false"}
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class Deployment(NamedTuple):
    """Physical ids by logical id, the current signing secret, and whether the stack is new."""

    resources: dict[str, str]
    signing_secret: str
    is_new: bool


class LocalStack:
    """The stack on one MiniStack."""

    def __init__(self, endpoint: str, base_url: str) -> None:
        self._client = environment.create_client("cloudformation", endpoint)
        self._secrets = environment.create_client("secretsmanager", endpoint)
        template = stateful_part(load_template())
        # The sign-in page of the user pool sends people back to the base URL.
        values = {**_PARAMETERS, "DashboardBaseUrl": base_url}
        self._options = {
            "StackName": _STACK,
            "TemplateBody": json.dumps(template, sort_keys=True),
            "Parameters": [
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in values.items()
                if name in template.get("Parameters", {})
            ],
        }
        self.digest = hashlib.sha256(json.dumps(self._options).encode()).hexdigest()

    def deploy(self, deployed: str) -> Deployment:
        """Deploys the current template, unless its digest is `deployed`. Raises DeployFailed."""
        resources = self._find_resources()
        try:
            if resources is None:
                self._client.create_stack(**self._options)
                self._client.get_waiter("stack_create_complete").wait(StackName=_STACK, WaiterConfig=_WAITER)
            elif deployed != self.digest:
                self._client.update_stack(**self._options)
                self._client.get_waiter("stack_update_complete").wait(StackName=_STACK, WaiterConfig=_WAITER)
        except (ClientError, WaiterError) as error:
            if "No updates are to be performed" not in str(error):
                (stack,) = getattr(error, "last_response", {}).get("Stacks", [{}])
                raise DeployFailed(stack.get("StackStatusReason", str(error))) from error
        found = self._find_resources() or {}
        signing = {"SecretId": found["SigningSecret"]}
        if "SigningSecret" not in (resources or {}):
            # MiniStack generates punctuation as well: a key that starts with a brace would be taken for a ring.
            self._secrets.put_secret_value(**signing, SecretString=secrets.token_urlsafe(48))
        return Deployment(found, self._secrets.get_secret_value(**signing)["SecretString"], is_new=resources is None)

    def _find_resources(self) -> dict[str, str] | None:
        """Returns physical ids by logical id, or None if the stack doesn't exist."""
        try:
            found = self._client.describe_stack_resources(StackName=_STACK)["StackResources"]
        except ClientError:
            return None
        return {it["LogicalResourceId"]: it["PhysicalResourceId"] for it in found}


def ensure_people(endpoint: str, pool_id: str, users: list[dict[str, Any]]) -> None:
    """Lets every user of the demo sign in, and stores the password under `password`. Known passwords are kept."""
    client = environment.create_client("cognito-idp", endpoint)
    found = client.list_users(UserPoolId=pool_id)["Users"]
    known = {it["Value"] for user in found for it in user["Attributes"] if it["Name"] == "email"}
    for user in users:
        if user["email"] in known:
            continue
        user.setdefault("password", _new_password())
        create_account(client, pool_id, user["email"], user["password"], user["name"])


def _new_password() -> str:
    """Returns four groups of four letters: easy to type, with 79 bits of entropy."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))
