"""Selects the table that commands use: the local stack's, a CloudFormation stack's, or one given by name.

Call `connect` before the first import of the shared layer's store, which reads its settings from os.environ.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ops.output import Misused, NotFound, Refused

LOCAL_STATE = Path(os.environ.get("LOCAL_DIRECTORY", Path(__file__).resolve().parents[1] / ".local")) / "stack.json"
_LOCAL_STACK = "assent"
_LOCAL_REGION = "eu-central-1"
# The credentials of the local stack. Real ones are never read for it.
_LOCAL_CREDENTIAL = "local"

_TABLE = "Table"
# The parameter that names a table to use instead.
_ADOPTED = "TableName"
# Stack parameters and outputs that the commands need, with the environment variables that the functions read them from.
_PARAMETERS = {
    "ServiceBrand": "SERVICE_BRAND",
    "GithubApiUrl": "GITHUB_API_URL",
    "GithubAppId": "GITHUB_APP_ID",
    "Settings": "SETTINGS",
}
_OUTPUTS = {"GithubAppKeyArn": "GITHUB_APP_SECRET_ARN"}


@dataclass(frozen=True, slots=True)
class Options:
    """The command line's options for the table. At most one of local, stack, and table."""

    local: bool = False
    stack: str | None = None
    table: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    started: float | None = None
    """The Unix time when `make run` started, which is its deployment. Set for the local stack."""


# Set by connect.
_connected = Options()


def connect(options: Options) -> None:
    """Connects the store to the table. Raises Misused, NotFound (no such stack), Refused (no local stack).

    Sets environment variables, for boto3 and for the shared layer's settings.
    """
    global _connected  # noqa: PLW0603 (one command line, one connection)
    if sum((options.local, bool(options.stack), bool(options.table))) > 1:
        raise Misused("Pass only one of --local, --stack, and --table.")
    local_variables: dict[str, str] = {}
    if options.local:
        options, local_variables = _local(options)
    if options.region:
        os.environ["AWS_DEFAULT_REGION"] = options.region
    elif "AWS_REGION" in os.environ:  # set by Lambda and many shells, but not read by boto3
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])

    _connected = options
    name = options.table or os.environ.get("TABLE_NAME")
    if options.stack:
        name = _read_stack(options.stack)
    if not name:
        raise Misused("Select a table with --local, --stack NAME, or --table NAME (or the variable TABLE_NAME).")
    os.environ.update(local_variables)
    prepare(name)
    try:
        from controlplane.platform.table.table import table  # noqa: PLC0415 (reads the environment)
    except ValueError as error:  # pydantic's message also shows values, which may include a secret
        raise Misused(f"The environment's settings are invalid: {_wrong_settings(error)}.") from None

    table.name = name
    if options.endpoint_url:
        table.connect(options.endpoint_url)


def prepare(table_name: str) -> None:
    """Sets the variables that the shared layer can't be imported without."""
    os.environ["TABLE_NAME"] = table_name
    os.environ.setdefault("PUBLIC_BASE_URL", "https://unused.invalid")
    os.environ.setdefault("DASHBOARD_BASE_URL", "https://unused.invalid")
    # boto3 finds an operator's credentials, such as those of a profile.
    os.environ["AWS_CLIENT"] = "boto3"
    # The layer logs to stdout, which is only for the command's result.
    os.environ.setdefault("LOG_LEVEL", "CRITICAL")


def _wrong_settings(error: ValueError) -> str:
    problems = error.errors() if hasattr(error, "errors") else []
    return ", ".join(str(problem["loc"][0]).upper() for problem in problems) or type(error).__name__


def _local(options: Options) -> tuple[Options, dict[str, str]]:
    """Returns the options for this checkout's local stack, and the environment variables for its code host.

    Removes all other AWS variables, which could point elsewhere.
    """
    if options.region or options.endpoint_url:
        raise Misused("--local sets its own region and endpoint: omit --region and --endpoint-url.")
    try:
        state = json.loads(LOCAL_STATE.read_text())
    except FileNotFoundError:
        raise Refused("No local stack is running. Start one with `make run`.") from None
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[variable]
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = _LOCAL_CREDENTIAL
    address = f"http://127.0.0.1:{state['ministack_port']}"
    found = Options(stack=_LOCAL_STACK, region=_LOCAL_REGION, endpoint_url=address, started=state.get("started"))
    return found, state.get("code_host") or {}


def create_client(service: str) -> Any:
    """Returns an AWS client for the connected stack's endpoint.

    Its timeouts are short, so that a local stack that isn't running is reported quickly.
    """
    config = Config(connect_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})
    return boto3.Session().client(service, endpoint_url=_connected.endpoint_url, config=config)


def find_resource(logical_id: str, variable: str) -> str:
    """Returns the physical id of the stack's resource or, if no stack is named, the variable's value.

    A queue's id is its URL, and a secret's its ARN. Raises Misused without both, NotFound if the stack doesn't have it.
    """
    if _connected.stack is not None:
        return _describe_resource(_connected.stack, logical_id)
    if variable not in os.environ:
        raise Misused(f"Name the stack with --local or --stack NAME, or set the variable {variable}.")
    return os.environ[variable]


def deployed_at() -> float | None:
    """Returns the Unix time when the stack's last deployment started, or None if no stack is named.

    For the local stack, that is the start of `make run`. Raises Refused unless that deployment has completed.
    """
    if _connected.started is not None:
        return _connected.started
    stack = _connected.stack
    if stack is None:
        return None
    described = _describe_stack(stack)
    if described["StackStatus"] not in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
        raise Refused(f"The last deployment of {stack} has not completed ({described['StackStatus']}). Deploy first.")
    return float(described.get("LastUpdatedTime", described["CreationTime"]).timestamp())


def _describe_stack(stack: str) -> dict[str, Any]:
    described: dict[str, Any] = create_client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    return described


def _describe_resource(stack: str, logical_id: str) -> str:
    """Returns the physical id of the stack's resource. Raises NotFound."""
    try:
        found = create_client("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId=logical_id)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        raise NotFound(f"The stack {stack} has no {logical_id} in this region and account.") from None
    return str(found["StackResourceDetail"]["PhysicalResourceId"])


def _read_stack(stack: str) -> str:
    """Returns the name of the table that the stack uses. Sets variables for its brands, App, and retention times."""
    own_table = _describe_resource(stack, _TABLE)
    described = _describe_stack(stack)
    parameters = {it["ParameterKey"]: it["ParameterValue"] for it in described.get("Parameters", [])}
    outputs = {it["OutputKey"]: it["OutputValue"] for it in described.get("Outputs", [])}
    os.environ.update({variable: parameters[name] for name, variable in _PARAMETERS.items() if name in parameters})
    os.environ.update({variable: outputs[name] for name, variable in _OUTPUTS.items() if name in outputs})
    return parameters.get(_ADOPTED) or own_table
