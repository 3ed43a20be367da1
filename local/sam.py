"""Lets plain `sam local` run the built functions on the data of a running `make run`.

`make run` writes the two files that samconfig.toml names: the functions' variables and this machine's processor.
MiniStack and the server listen only on this machine's loopback address, which is a different one inside a container.
With SAM_LOCAL=on, they listen on the address of Docker's default network, too, and accept connections from all
containers.
"""

import fcntl
import json
import os
import platform
import socket
import struct
import sys
from collections.abc import Mapping

from local import checkout, environment
from local.checkout import HOST
from local.github import setup

ENVIRONMENT = checkout.DIRECTORY / "sam-environment.json"
PARAMETERS = checkout.DIRECTORY / "sam-parameters.yaml"
# samconfig.toml gives containers this name for the machine that they run on. Docker Desktop does so by itself.
CONTAINER_HOST = "host.docker.internal"

_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_SECRET = "github-app-key"  # noqa: S105 - the name of one
# These have better values in the template, or name files of this machine.
_NOT_FOR_CONTAINERS = {
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "GITHUB_APP_PRIVATE_KEY_FILE",
    "LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
}
# People use the pages of `make run`: the user pool redirects there. Addresses in responses are those of `make run` too,
# because `sam local` can listen on any port.
_FOR_BROWSERS = {"DASHBOARD_BASE_URL", "PUBLIC_BASE_URL"}
_BRIDGE = b"docker0"
_SIOCGIFADDR = 0x8915


def architecture() -> str:
    """Returns Lambda's name of this machine's processor."""
    return _ARCHITECTURES[platform.machine().lower()]


def is_on() -> bool:
    return os.environ.get("SAM_LOCAL") == "on"


def write_files(variables: Mapping[str, str]) -> None:
    """Writes the files that samconfig.toml names, from the variables of the functions on this machine."""
    checkout.write_private(ENVIRONMENT, json.dumps({"Parameters": container_variables(variables)}, indent=2) + "\n")
    checkout.write_private(PARAMETERS, f"Architecture: {architecture()}\n")


def container_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with the addresses that a container reaches this machine under.

    SAM ignores those that template.yaml doesn't declare.
    """
    found = {name: value for name, value in variables.items() if name not in _NOT_FOR_CONTAINERS}
    for name in found.keys() - _FOR_BROWSERS:
        found[name] = found[name].replace(f"//{HOST}", f"//{CONTAINER_HOST}")
    return {**found, "GITHUB_APP_SECRET_ARN": _SECRET}


def bridge_address() -> str:
    """Returns this machine's address in Docker's default network, or its loopback address without SAM_LOCAL.

    Only Linux has that network. Docker Desktop forwards connections to CONTAINER_HOST by itself.
    """
    if not is_on() or sys.platform != "linux":
        return HOST
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            interface = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", _BRIDGE))
        except OSError:
            return HOST
    return socket.inet_ntoa(interface[20:24])


def store_app_key(endpoint: str) -> None:
    """Stores the GitHub App's private key in Secrets Manager, where functions read it on AWS."""
    client = environment.create_client("secretsmanager", endpoint)
    key = setup.key_file(checkout.DIRECTORY / setup.FOLDER).read_text()
    try:
        client.create_secret(Name=_SECRET, SecretString=key)
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=_SECRET, SecretString=key)
