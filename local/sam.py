"""`scripts/sam-local`: SAM's local Lambda on the data of a running `make run`.

Each function runs as it was built, in a container of Lambda's image, and finds what `make run` serves: the local AWS
and the code host. Both listen on this machine alone, which to a container is another one, so this process passes on
what containers send to the machine's address in their network. What template.yaml declares of the functions is taken
over and completed with what on AWS would come from elsewhere; the template itself knows of no local run.
"""

import argparse
import errno
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from botocore.session import Session

from local import checkout, environment
from local.checkout import HOST, ROOT, SOURCES
from local.github import setup
from local.relay import Relay
from local.stack import LocalStack
from local.template import load_template

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
BUILD = ROOT / ".aws-sam" / "local" / "build"
DEFAULT_PORT = 3001
# On Docker Desktop the machine's own network is not the containers'; it gives the machine this name there, and passes
# on by itself.
_DESKTOP = "host.docker.internal"
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_SECRET = "github-app-key"  # noqa: S105 - the name of one
# Of this machine's processes, or better as the template has them.
_NOT_FOR_CONTAINERS = {
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "GITHUB_APP_PRIVATE_KEY_FILE",
    "LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of SAM. Exits with status 1 and one line where it cannot start."""
    parser = argparse.ArgumentParser(
        prog="scripts/sam-local",
        description="Runs `sam local` on the built functions, with the data of a running `make run`.",
        epilog="Examples: scripts/sam-local start-api; "
        "scripts/sam-local invoke SystemFunction -e events/system_get_health.json",
    )
    parser.add_argument("--build-dir", type=Path, help="use this build instead of building")
    parser.add_argument("command", choices=("start-api", "start-lambda", "invoke"), help="of sam local")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what else sam local is told")
    options = parser.parse_args(arguments)

    memory = checkout.running_memory()
    if memory is None or memory.demo is None:
        _fail("This checkout's stack is not running: start it with `make run`, and leave it running.")
    base_url = json.loads(checkout.CREDENTIALS.read_text())["baseUrl"]
    gateway = _container_gateway()
    build_dir = options.build_dir or _build()
    more = [*options.arguments, *defaults(options.command, options.arguments)]
    with _reachable(gateway, [memory.ministack_port, urlsplit(base_url).port or 80]) as host:
        variables = _variables(memory, base_url, host, more)
        template, declared = complete(load_template(build_dir / "template.yaml"), variables)
        # Next to the built template, since it names folders there.
        path = build_dir / f"{options.command}.json"
        checkout.write_private(path, json.dumps(template))
        return _run([str(SAM), "local", options.command, *more, "--template", str(path)], declared)


def defaults(command: str, given: Sequence[str]) -> list[str]:
    """Returns the options that the caller left out: a port next to `make run`'s, and containers that are reused."""
    if command != "start-api":
        return []
    port = [] if _option(given, "--port", "-p") else ["--port", str(DEFAULT_PORT)]
    return port + ([] if _option(given, "--warm-containers") else ["--warm-containers", "LAZY"])


def _build() -> Path:
    if is_current(BUILD, [ROOT / "template.yaml", *(ROOT / name for name in SOURCES)]):
        return BUILD
    print("Building for this machine's processor, which takes a minute or two.", file=sys.stderr)
    command = [str(ROOT / "scripts" / "build"), "--architecture", architecture(), "--build-dir", str(BUILD)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        _fail("The build failed.")
    return BUILD


def is_current(build_dir: Path, sources: Iterable[Path]) -> bool:
    """Returns whether the build is up to date."""
    try:
        built = (build_dir / "template.yaml").stat().st_mtime
    except FileNotFoundError:
        return False
    paths = (path for source in sources for path in (source, *source.rglob("*")) if path.name != "__pycache__")
    return all(path.stat().st_mtime < built for path in paths if path.parent.name != "__pycache__")


def architecture() -> str:
    """Lambda's name of this machine's processor."""
    return _ARCHITECTURES[platform.machine().lower()]


def _container_gateway() -> str:
    """The machine's address in the network of its containers."""
    command = ["docker", "network", "inspect", "bridge", "--format", "{{json .IPAM.Config}}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        _fail("Docker is not installed: sam local runs functions in its containers.")
    if result.returncode:
        _fail(f"Docker does not answer: {result.stderr.strip()}")
    return gateway_of(json.loads(result.stdout))


def gateway_of(networks: list[dict[str, str]]) -> str:
    """The gateway of a Docker network, from what Docker says of its addresses.

    Not every version says it of the network that it made at its start; it is the first address then.
    """
    addressed = [(network, subnet) for network in networks if (subnet := ip_network(network["Subnet"])).version == 4]
    if not addressed:
        _fail("Docker's network `bridge` has no IPv4 addresses, by which containers would reach this machine.")
    network, subnet = addressed[0]
    return network.get("Gateway") or str(subnet[1])


@contextmanager
def _reachable(gateway: str, ports: list[int]) -> Iterator[str]:
    """Lets containers reach these ports of this machine. Yields the host under which they do."""
    host = gateway
    with ExitStack() as relays:
        for port in ports:
            try:
                relays.enter_context(Relay((gateway, port), (HOST, port)))
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    host = _DESKTOP
                elif error.errno != errno.EADDRINUSE:
                    raise
                # In use: by another scripts/sam-local, which passes on what this one would.
        yield host


def _variables(memory: checkout.Memory, base_url: str, host: str, sam_arguments: list[str]) -> dict[str, str]:
    """The functions' variables as `make run` has them, with the addresses under which a container finds the same."""
    endpoint = f"http://{HOST}:{memory.ministack_port}"
    resources = LocalStack(endpoint, base_url).deploy(memory.deployed).resources
    found = environment.function_environment(memory, base_url, endpoint, resources)
    own = {name: value for name, value in found.items() if name not in _NOT_FOR_CONTAINERS}
    own |= {name: value.replace(HOST, host) for name, value in own.items() if name.endswith("_URL")}
    _keep_app_key(endpoint)
    port = _option(sam_arguments, "--port", "-p")
    public = f"http://{HOST}:{port}" if port else base_url
    # People sign in at the pages of `make run`: their user pool sends them back there.
    return {**own, "PUBLIC_BASE_URL": public, "DASHBOARD_BASE_URL": base_url, "GITHUB_APP_SECRET_ARN": _SECRET}


def _option(arguments: Sequence[str], *names: str) -> str | None:
    """Returns the values that SAM's arguments have for one of the option's names."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(*names, dest="value")
    value: str | None = parser.parse_known_args(arguments)[0].value
    return value


def _keep_app_key(endpoint: str) -> None:
    """Puts the GitHub App's private key where functions have it from on AWS."""
    session = Session()
    session.set_credentials(environment.ACCESS_KEY, environment.SECRET_KEY)
    client = session.create_client("secretsmanager", region_name=environment.REGION, endpoint_url=endpoint)
    key = setup.key_file(checkout.DIRECTORY / setup.FOLDER).read_text()
    try:
        client.create_secret(Name=_SECRET, SecretString=key)
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=_SECRET, SecretString=key)


def complete(built: dict[str, Any], variables: dict[str, str]) -> tuple[dict[str, Any], set[str]]:
    """The template with the variables in every function, and the names of all variables that functions then have."""
    template = deepcopy(built)
    template["Parameters"]["Architecture"]["Default"] = architecture()
    names = set(template["Globals"]["Function"]["Environment"]["Variables"])
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            declared = resource["Properties"].setdefault("Environment", {}).setdefault("Variables", {})
            declared.update(variables)
            names |= set(declared)
    return template, names


def _run(command: list[str], declared: set[str]) -> int:
    """Runs SAM, for which a variable of this process would come before the template's."""
    names = {name for name in os.environ if not name.startswith("AWS_")} - declared
    credentials = {
        "AWS_ACCESS_KEY_ID": environment.ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": environment.SECRET_KEY,
        "AWS_DEFAULT_REGION": environment.REGION,
        "AWS_REGION": environment.REGION,
        "SAM_CLI_TELEMETRY": "0",
    }
    print(shlex.join(command), file=sys.stderr)
    # Ctrl-C reaches SAM by itself, which then ends its containers. Not SIG_IGN, which SAM would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(command, env={name: os.environ[name] for name in names} | credentials)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:  # before SAM ran
        raise SystemExit(1) from None
