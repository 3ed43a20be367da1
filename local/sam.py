"""Lets plain `sam local` run the built functions on the data of a running `make run`.

`make run` writes the two files that samconfig.toml names: the functions' variables and this machine's processor.
MiniStack and the server listen only on this machine's loopback address, which is a different one inside a container.
With SAM_LOCAL=on, `make run` also accepts connections from containers, from all of them.
"""

import fcntl
import json
import os
import platform
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from local import checkout, environment
from local.checkout import HOST
from local.github import setup
from local.relay import Relay

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
_POLL_SECONDS = 1


def architecture() -> str:
    """Returns Lambda's name of this machine's processor."""
    return _ARCHITECTURES[platform.machine().lower()]


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


def start_serving(endpoint: str, ports: Sequence[int]) -> None:
    """Starts a thread that stores the GitHub App's key and accepts containers' connections, if they may connect."""
    threading.Thread(target=_serve, args=(endpoint, shared(ports)), name="sam", daemon=True).start()


def shared(ports: Sequence[int]) -> Sequence[int]:
    """Returns the ports that containers may connect to: none, unless SAM_LOCAL is on."""
    return ports if os.environ.get("SAM_LOCAL") == "on" else []


def _serve(endpoint: str, ports: Sequence[int]) -> None:
    _store_app_key(endpoint)
    served: str | None = None
    relays = ExitStack()
    while True:
        address = bridge_address()
        if address != served:
            relays.close()
            served = address if address is None or _listen(relays, address, ports) else None
        time.sleep(_POLL_SECONDS)


def _listen(relays: ExitStack, address: str, ports: Sequence[int]) -> bool:
    """Passes connections to the address on to this machine's loopback address. Returns False if a port is taken."""
    try:
        for port in ports:
            relays.enter_context(Relay((address, port), (HOST, port)))
    except OSError:
        relays.close()
        return False
    return True


def bridge_address() -> str | None:
    """Returns this machine's address in Docker's default network, or None without such a network.

    Only Linux has it. Docker Desktop forwards connections to CONTAINER_HOST by itself.
    """
    if sys.platform != "linux":
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            interface = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", _BRIDGE))
        except OSError:
            return None
    return socket.inet_ntoa(interface[20:24])


def _store_app_key(endpoint: str) -> None:
    """Stores the GitHub App's private key in Secrets Manager, where functions read it on AWS."""
    client = environment.create_client("secretsmanager", endpoint)
    key = setup.key_file(checkout.DIRECTORY / setup.FOLDER).read_text()
    try:
        client.create_secret(Name=_SECRET, SecretString=key)
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=_SECRET, SecretString=key)
