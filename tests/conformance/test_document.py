"""schemathesis checks the API against docs/openapi.json, with all checks in all phases.

A run draws the same requests in every folder, on every machine, and in every order of tests: they depend on the seed,
the document, the pinned tools, and the API's responses.
FUZZ_EXAMPLES and FUZZ_SEED make it generate more and different requests (`make fuzz`).
"""

import json
import os
import re
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance.conftest import ROOT, Api

DOCUMENT = ROOT / "docs" / "openapi.json"
# Hypothesis also draws constants from the program that runs it, unless it is below a folder called "tests". Draws would
# depend on the program's path and on its installer. Code without a file has no constants.
PROGRAM = "from schemathesis.cli import schemathesis; schemathesis()"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 5)
SEED = int(os.environ.get("FUZZ_SEED") or 1)
REQUESTS: tuple[str, ...] = ("--phases", "examples,coverage,fuzzing")
MORE = ("--max-examples", str(8 * EXAMPLES))
MORE_REQUESTS = ("--phases", "fuzzing", *MORE)
SEQUENCES = ("--phases", "stateful", *MORE)
# A run ends early if the same prefix reaches a different state: most follow ten links or more, some three.
ENOUGH_LINKS = 12
# Runs use consecutive seeds until they have followed enough links. If the code works, one or two runs are enough.
MOST_RUNS = 6

# These need two related values, something that exists only for a while, or a person's approval. With few examples,
# requests rarely succeed; other tests cover them.
RARELY_REACHED = {
    "DELETE /v1/inbox/{itemId}/comments/{commentId}",
    "DELETE /v1/projects/{projectId}/audits/{auditId}",
    "DELETE /v1/projects/{projectId}/websites/{websiteId}",
    "GET /v1/code-audit/scan-requests/{preparationId}",
    "GET /v1/projects/{projectId}/audits/{auditId}/runs/{runId}",
    "GET /v1/requests/{requestId}",
    "PATCH /v1/code-audit/repositories/{repositoryId}/links/{projectId}",
    "PATCH /v1/inbox/{itemId}",
    "PATCH /v1/projects/{projectId}/audits/{auditId}",
    "POST /v1/auth/device/token",
    "POST /v1/code-audit/scans",
    "POST /v1/code-audit/scans/{scanId}/cancel",
    "POST /v1/code-audit/scans/{scanId}/unlock",
    "POST /v1/inbox/{itemId}/github-issue",
    "POST /v1/projects/{projectId}/audits",
    "POST /v1/projects/{projectId}/audits/{auditId}/runs",
}
# Keyed by method and path.
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, methods in json.loads(DOCUMENT.read_text())["paths"].items()
    for method, operation in methods.items()
}

# Half a minute each, or much longer on a busy machine.
pytestmark = pytest.mark.timeout(2100 + 60 * EXAMPLES)


class Run(NamedTuple):
    """The output and the report of a run."""

    output: str
    report: dict[str, Any]

    @property
    def links_followed(self) -> int:
        (covered,) = re.findall(r"API Links: +(\d+) covered", self.output)
        return int(covered)


class Schemathesis:
    """Runs schemathesis against one API."""

    def __init__(self, python: Path, folder: Path, api: Api) -> None:
        self._python, self._folder, self._base_url = python, folder, api.served.base_url
        self._settings = (ROOT / "tests/conformance/schemathesis.toml").read_text() + _known(api.served.ids)

    def run(self, token: str, *options: str, seed: int = SEED) -> Run:
        """Runs schemathesis. Fails if any response differs from the document."""
        written, report = self._folder / "schemathesis.toml", self._folder / "report.json"
        written.write_text(self._settings)
        run = subprocess.run(
            [
                *(self._python, "-c", PROGRAM, "--config-file", written),
                *("run", DOCUMENT, "--url", self._base_url, "--header", f"Authorization: Bearer {token}"),
                *("--max-examples", str(EXAMPLES), "--seed", str(seed), "--no-color"),
                *("--report", "json", "--report-json-path", report),
                *options,
            ],
            # Hypothesis keeps files in the current folder, and has other defaults if a variable says that this is CI.
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        reported = json.loads(report.read_text())
        assert reported["complete"]
        return Run(run.stdout, reported)


def _known(ids: dict[str, list[str]]) -> str:
    """Returns settings that make most requests refer to existing items."""
    bound = [
        f'"{place}.{name}" = {{ dictionary = "{name}", probability = 0.9 }}\n'
        for name in ids
        for place in ("path", "query", "body")
    ]
    named = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n" for name, values in ids.items()]
    return "".join([*bound, *named])


@pytest.fixture
def schemathesis(tools: Path, tmp_path: Path, api: Api) -> Schemathesis:
    return Schemathesis(tools / "python", tmp_path, api)


def never_succeeding(
    schemathesis: Schemathesis, api: Api, token: str, operations: dict[str, dict[str, Any]]
) -> set[str]:
    """Returns the operations that never succeeded. If an operation's few examples all fail, it gets more."""
    left, phases = operations, REQUESTS
    for seed in range(SEED, SEED + MOST_RUNS):
        chosen = [("--include-operation-id", operation["operationId"]) for operation in left.values()]
        run = schemathesis.run(token, *phases, *chain(*chosen), seed=seed)
        assert run.report["operations"]["tested"] == len(left)
        answers = api.answers().items()
        good = {name for name, counted in answers if any(status.startswith("2") for status in counted)}
        left = {name: operation for name, operation in left.items() if name not in good | RARELY_REACHED}
        if not left:
            break
        phases = MORE_REQUESTS
    return {*left}


def follow_links(schemathesis: Schemathesis, api: Api) -> int:
    """Returns how many links were followed, running until there are enough."""
    followed = 0
    for seed in range(SEED, SEED + MOST_RUNS):
        followed += schemathesis.run(api.served.user_token, *SEQUENCES, seed=seed).links_followed
        if followed >= ENOUGH_LINKS:
            break
    return followed


class TestDraws:
    def test_the_same_requests_are_drawn_in_every_folder(self, tools: Path, tmp_path: Path, api: Api):
        drawn = []
        for name in ("tests", "other"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "conformance").symlink_to(tools.parent)
            written = folder / "requests.har"
            only = ("--include-operation-id", "createProject", "--phases", "fuzzing", *MORE)
            Schemathesis(folder / "conformance/bin/python", folder, api).run(
                api.served.user_token, *only, "--report", "har", "--report-har-path", str(written)
            )
            requests = [entry["request"] for entry in json.loads(written.read_text())["log"]["entries"]]
            drawn.append([(request["url"], request.get("postData")) for request in requests])
        assert len(drawn[0]) > 8 * EXAMPLES
        assert drawn[0] == drawn[1]


class TestRequests:
    def test_requests_of_a_user_get_documented_responses(self, schemathesis: Schemathesis, api: Api):
        assert never_succeeding(schemathesis, api, api.served.user_token, OPERATIONS) == set()

    def test_requests_of_an_api_key_get_documented_responses(self, schemathesis: Schemathesis, api: Api):
        taking_keys = {
            name: operation
            for name, operation in OPERATIONS.items()
            if any("organizationApiKey" in one for one in operation.get("security", [{"organizationApiKey": []}]))
        }
        assert never_succeeding(schemathesis, api, api.served.api_key, taking_keys) == set()


class TestSequences:
    """Requests that read, change, and delete what an earlier request created."""

    def test_sequences_along_inferred_links_get_documented_responses(self, schemathesis: Schemathesis, api: Api):
        assert follow_links(schemathesis, api) >= ENOUGH_LINKS
