"""Which table the commands act on: the local stack's, that of a CloudFormation stack, or one given by name.

`connect` comes before the first import of the shared layer's store, which reads its settings from the os.environ.
"""

import json
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ops.errors import Misused, NotFound, Refused

LOCAL_STATE = Path(__file__).resolve().parents[1] / ".local/stack.json"
_LOCAL_STACK = "assent"
_LOCAL_REGION = "eu-central-1"
# What the local stack takes as credentials. Real ones are never read for it.
_LOCAL_CREDENTIAL = "local"

_TABLE = "Table"
_BRANDS = {"ServiceBrand": "SERVICE_BRAND", "LibraryBrand": "LIBRARY_BRAND"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says of the table. At most one of local, stack and table."""

    local: bool = False
    stack: str | None = None
    table: str | None = None
    region: str | None = None
    endpoint_url: str | None = None

    def over(self, outer: "Options") -> "Options":
        """These, and where they say nothing, those given before the command's name."""
        named = self if self.local or self.stack or self.table else outer
        return replace(named, region=self.region or outer.region, endpoint_url=self.endpoint_url or outer.endpoint_url)


def connect(options: Options) -> None:
    """Points the store at the table. Raises Misused, NotFound (no such stack), Refused (no local stack).

    Sets environment variables, for botocore and for the shared layer's settings.
    """
    if sum((options.local, bool(options.stack), bool(options.table))) > 1:
        raise Misused("Give one of --local, --stack and --table.")
    if options.local:
        options = _local(options)
    if options.region:
        os.environ["AWS_DEFAULT_REGION"] = options.region
    elif "AWS_REGION" in os.environ:  # what Lambda and many shells set, and botocore does not read
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])

    name = options.table or os.environ.get("TABLE_NAME")
    if options.stack:
        name = _read_stack(options.stack, options.endpoint_url)
    if not name:
        raise Misused("Say which table: --local, --stack NAME or --table NAME (or the variable TABLE_NAME).")
    os.environ["TABLE_NAME"] = name
    # The functions need these and no command does. What nobody knows can sign nothing.
    os.environ.setdefault("SIGNING_SECRET", secrets.token_urlsafe(32))
    os.environ.setdefault("PUBLIC_BASE_URL", "https://unused.invalid")
    os.environ.setdefault("DASHBOARD_BASE_URL", "https://unused.invalid")

    try:
        from controlplane.store.table import table  # noqa: PLC0415 (reads the environment)
    except ValueError as error:  # pydantic's, which also shows values: a secret may be among them
        raise Misused(f"The settings in the environment are wrong: {_wrong_settings(error)}.") from None

    table.name = name
    if options.endpoint_url:
        table.connect(options.endpoint_url)


def _wrong_settings(error: ValueError) -> str:
    problems = error.errors() if hasattr(error, "errors") else []
    return ", ".join(str(problem["loc"][0]).upper() for problem in problems) or type(error).__name__


def _local(options: Options) -> Options:
    """The options that lead to this checkout's own stack, with no other AWS variable left that could lead elsewhere."""
    if options.region or options.endpoint_url:
        raise Misused("--local knows its region and endpoint: leave out --region and --endpoint-url.")
    try:
        port = json.loads(LOCAL_STATE.read_text())["ministack_port"]
    except FileNotFoundError:
        raise Refused("There is no local stack here. Start one with `make run`.") from None
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[variable]
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = _LOCAL_CREDENTIAL
    return Options(stack=_LOCAL_STACK, region=_LOCAL_REGION, endpoint_url=f"http://127.0.0.1:{port}")


def _read_stack(stack: str, endpoint_url: str | None) -> str:
    """The name of the stack's table. Its brand goes into the environment: secrets are minted with it."""
    from botocore.config import Config  # noqa: PLC0415 (slow to import, and --help needs none of it)
    from botocore.exceptions import ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    # A local stack that does not run is told at once.
    config = Config(connect_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})
    client = Session().create_client("cloudformation", endpoint_url=endpoint_url, config=config)
    try:
        described = client.describe_stacks(StackName=stack)["Stacks"][0]
        resource = client.describe_stack_resource(StackName=stack, LogicalResourceId=_TABLE)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        raise NotFound(f"There is no stack {stack} with a table in this region and account.") from None
    parameters: list[dict[str, Any]] = described.get("Parameters", [])
    for parameter in parameters:
        if parameter["ParameterKey"] in _BRANDS:
            os.environ[_BRANDS[parameter["ParameterKey"]]] = parameter["ParameterValue"]
    return str(resource["StackResourceDetail"]["PhysicalResourceId"])
