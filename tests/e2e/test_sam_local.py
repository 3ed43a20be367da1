"""Plain `sam local` as developers use it: with a running `make run`, and each function in a container."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from local.checkout import free_port
from local.gateway import rename_headers
from local.sam import ENVIRONMENT, PARAMETERS
from tests.e2e import containers
from tests.e2e.deployment import BUILD, ROOT
from tests.support.api import Reply
from tests.support.engines import wait_until_listening
from tests.support.local_stack import LocalStack
from tests.support.response_checks import check_response


def _call(base_url: str, method: str, path: str, token: str | None = None, body: Any = None) -> Reply:
    connection = HTTPConnection(urlsplit(base_url).netloc, timeout=60)
    sent = {"Content-Type": "application/json"} if body is not None else {}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    answered = dict(rename_headers(response.getheaders()))  # SAM doesn't
    return Reply.read(response.status, answered, text)


@dataclass
class Sam:
    """`sam local` with samconfig.toml, and the tests' engine, image, build, and local stack."""

    variables: dict[str, str]
    image: str

    def containers(self) -> list[str]:
        """Returns the containers that SAM is running or has left behind."""
        command = ["docker", "ps", "--all", "--quiet", "--filter", f"ancestor={self.image}"]
        result = subprocess.run(command, env=self.variables, capture_output=True, text=True, check=True)
        return result.stdout.split()

    def start(self, *arguments: str | Path, output: int = subprocess.DEVNULL, errors: Any = None) -> Any:
        command, *more = arguments
        local = Path(self.variables["LOCAL_DIRECTORY"])
        return subprocess.Popen(
            [
                *(ROOT / ".tools" / "sam" / "bin" / "sam", "local", command),
                *("--template", BUILD / "template.yaml", "--config-file", ROOT / "samconfig.toml"),
                *("--env-vars", local / ENVIRONMENT.name, "--parameter-overrides", f"file://{local / PARAMETERS.name}"),
                *("--invoke-image", self.image, "--skip-pull-image", *more),
            ],
            cwd=ROOT,
            env={**self.variables, "SAM_CLI_TELEMETRY": "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            text=True,
        )


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    with containers.running_engine() as found:
        yield found


@pytest.fixture(scope="module")
def local(sizes: str, engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Yields a local stack. Docker's network must exist before it starts."""
    stack = LocalStack(tmp_path_factory.mktemp("local"), SAM_LOCAL="on")
    yield stack
    stack.process.terminate()
    stack.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def credentials(local: LocalStack) -> dict[str, Any]:
    return local.credentials


@pytest.fixture(scope="module")
def sam(engine: dict[str, str], local: LocalStack) -> Iterator[Sam]:
    with containers.imported_image(engine) as image:
        yield Sam({**local.environment, **engine}, image)


@pytest.fixture(scope="module")
def api(sam: Sam, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of the API that `sam local start-api` serves."""
    port, log_file = free_port(), tmp_path_factory.mktemp("sam") / "log"
    with log_file.open("w") as log:
        process = sam.start("start-api", "--port", str(port), output=log, errors=log)
    try:
        try:
            wait_until_listening(process, port, within_seconds=60)
        except (RuntimeError, TimeoutError) as error:
            raise AssertionError(log_file.read_text()) from error
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
        sys.stdout.write(log_file.read_text())  # pytest shows it if a test failed
        assert sam.containers() == []


class TestStartApi:
    def test_start_api_reaches_the_table(self, api: str):
        reply = _call(api, "GET", "/health")
        assert reply.status == 200, reply.text
        check_response("/health", {}, reply)

    def test_start_api_accepts_a_key_and_uses_the_local_stacks_data(self, api: str, credentials: dict[str, Any]):
        key = credentials["apiKeys"][0]["key"]
        assert _call(api, "GET", "/v1/me", key).data["principal"]["type"] == "api_key"
        body = {"name": "In a container", "region": "eu-central", "websites": ["https://container.example.com"]}
        created = _call(api, "POST", "/v1/projects", key, body)
        assert created.status == 201, created.text
        found = _call(credentials["baseUrl"], "GET", f"/v1/projects/{created.data['id']}", key)
        assert found.data["projectName"] == "In a container"

    def test_start_api_hands_work_to_the_local_stacks_workers(self, api: str, credentials: dict[str, Any]):
        (repository,) = credentials["repositories"]
        (owner,) = [
            user
            for user in credentials["users"]
            if (user["role"], user["organizationId"]) == ("owner", repository["organizationId"])
        ]
        body = {"repositoryId": repository["repositoryId"]}
        started = _call(api, "POST", "/v1/code-audit/scans", owner["accessToken"], body)
        assert started.status == 202, started.text
        deadline = time.monotonic() + 60
        while len(self._completed(api, owner["accessToken"])) < 2:  # the demo data include one
            assert time.monotonic() < deadline
            time.sleep(0.5)

    @staticmethod
    def _completed(api: str, token: str) -> list[Any]:
        scans = _call(api, "GET", "/v1/code-audit/scans", token).data
        return [scan for scan in scans if scan["status"] == "completed"]

    def test_start_api_refuses_a_missing_credential(self, api: str):
        reply = _call(api, "GET", "/v1/projects")
        check_response("/v1/projects", {}, reply)
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")


class TestInvoke:
    @pytest.mark.parametrize(
        ("function", "event"),
        [("SystemFunction", "system_get_health"), ("FindingIntakeFunction", "finding_intake_advisory")],
    )
    def test_invoke_responds_to_an_event(self, sam: Sam, function: str, event: str):
        process = sam.start(
            "invoke", function, "-e", f"events/{event}.json", output=subprocess.PIPE, errors=subprocess.PIPE
        )
        output, log = process.communicate(timeout=120)
        assert process.returncode == 0, log
        answer = json.loads(output)
        assert answer.get("statusCode") == 200 or answer == {"batchItemFailures": []}, f"{output}\n{log}"
