"""The environment of the functions on this machine: the variables that template.yaml sets on AWS, with local values."""

import os
import secrets
from collections.abc import MutableMapping
from typing import Any

from local import mail, sign_in, workers
from local.checkout import Memory
from local.template import load_template

REGION = "eu-central-1"
# MiniStack takes any credentials. These look like none, and no real ones are ever read.
ACCESS_KEY = "local"
SECRET_KEY = "local"  # noqa: S105


def function_environment(
    memory: Memory, base_url: str, endpoint: str, resources: dict[str, str], signing_secret: str
) -> dict[str, str]:
    """Returns the variables of every function. `resources` maps logical ids to physical ids."""
    pool_id = resources["UserPool"]
    # A new one for each run.
    front_door = {} if os.environ.get("FRONT_DOOR") == "off" else {"FRONT_DOOR_SECRET": secrets.token_hex(32)}
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_CLIENT": os.environ.get("AWS_CLIENT", "own"),
        "TABLE_NAME": resources["Table"],
        "SIGNING_SECRET": signing_secret,
        "PUBLIC_BASE_URL": base_url,
        "DASHBOARD_BASE_URL": base_url,
        # Served here, whatever AWS region the emulator has.
        "REGIONS": "eu-central|This machine",
        "CONTACT": "help@assent.example",
        # Test clients make organizations without end.
        "ORGANIZATIONS_PER_PERSON": "1000",
        # MiniStack's user pools call themselves what AWS would. The metadata leads to the sign-in page of this machine.
        "SIGN_IN_ISSUER": f"https://cognito-idp.{pool_id.partition('_')[0]}.amazonaws.com/{pool_id}",
        "SIGN_IN_METADATA_URL": f"{base_url}{sign_in.PREFIX}/{sign_in.METADATA}",
        "SIGN_IN_CLIENT_ID": resources["UserPoolClient"],
        **front_door,
        **(memory.code_host or {}),
        **workers.variables(load_template(), resources),
        **mail.function_variables(base_url),
        "WEBHOOKS_TO_THIS_MACHINE": "true",
        # Clients under test make many mistakes in a minute, all from one address.
        "REJECTED_CREDENTIALS_PER_MINUTE": "1000",
        # The server prints a line a request; the functions' own log adds what goes wrong. LOG_LEVEL=INFO shows it all.
        "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
        "POWERTOOLS_SERVICE_NAME": "local",
        "POWERTOOLS_METRICS_DISABLED": "true",
        "POWERTOOLS_TRACE_DISABLED": "true",
    }


def apply(variables: dict[str, str], target: MutableMapping[str, str] = os.environ) -> None:
    """Sets the variables and removes every other AWS_ variable, so that no call leaves this machine."""
    for name in [name for name in target if name.startswith("AWS_")]:
        del target[name]
    target.update(variables)


def create_client(service: str, endpoint: str) -> Any:
    """Returns a client of MiniStack."""
    import boto3  # noqa: PLC0415 (slow to import, and not needed to set variables)

    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
