"""What was built: each function alone with the layer, nothing else importable, and every module compiled for good."""

import json
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from scripts import artifacts
from tests.e2e.deployment import BUILD, ROOT, Stack, run
from tests.support.api import Reply, check_envelope
from tests.support.template import resources
from tests.support.world import Company, World

FUNCTIONS = resources("AWS::Serverless::Function")
EVENTS = ROOT / "events"


def group_of(logical_id: str) -> str:
    return Path(FUNCTIONS[logical_id]["Properties"]["CodeUri"]).name


def events_of(group: str) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(EVENTS.glob(f"{group}_*.json"))}


def authorized(event: dict[str, Any], token: str) -> dict[str, Any]:
    """The event with a credential that exists, where it had a placeholder."""
    headers = dict(event["headers"])
    if "Authorization" in headers:
        headers["Authorization"] = f"Bearer {token}"
    return {**event, "headers": headers, "multiValueHeaders": {name: [value] for name, value in headers.items()}}


class TestBuild:
    def test_left_no_module_without_lasting_bytecode(self, sizes: str):
        assert artifacts.modules_without_bytecode(BUILD) == []

    def test_made_an_artifact_of_each_function_and_the_layer(self, sizes: str):
        assert {path.name for path in BUILD.iterdir() if path.is_dir()} == {*FUNCTIONS, "SharedLayer"}

    def test_took_no_more_than_half_of_what_the_plain_packages_weigh(self, sizes: str):
        limit_bytes = 21.5 * 2**20
        for logical_id in FUNCTIONS:
            together = artifacts.size_bytes(BUILD / "SharedLayer") + artifacts.size_bytes(BUILD / logical_id)
            assert together < limit_bytes, sizes

    def test_put_the_amazon_roots_into_the_layer(self, sizes: str):
        assert (BUILD / "SharedLayer" / "python" / artifacts.ROOTS_FILE).is_file()


@pytest.mark.parametrize("logical_id", FUNCTIONS)
class TestEachFunctionAlone:
    @pytest.fixture
    def answered(self, logical_id: str, stack: Stack, world: World, company: Company, tmp_path: Path) -> dict[str, Any]:
        """Its answers to its events by the events' names, the files of the modules it loaded, and its log."""
        events = events_of(group_of(logical_id))
        given, taken = tmp_path / "events.json", tmp_path / "answers.json"
        token = company.owner.token
        given.write_text(json.dumps([authorized(event, token) for event in events.values()]), encoding="utf-8")
        log = run(
            sys.executable,
            *("-I", "-S", "-B", ROOT / "tests" / "e2e" / "isolated.py"),
            *(BUILD / "SharedLayer", BUILD / logical_id, FUNCTIONS[logical_id]["Properties"]["Handler"], given, taken),
            **stack.function_environment(logical_id),
            AWS_ENDPOINT_URL=stack.endpoint_url,
        )
        result = json.loads(taken.read_text(encoding="utf-8"))
        answers = dict(zip(events, result["answers"], strict=True))
        return {"answers": answers, "loaded": result["loaded"], "log": log}

    def test_answers_its_events_in_the_envelope(self, logical_id: str, answered: dict[str, Any]):
        events = events_of(group_of(logical_id))
        for name, answer in answered["answers"].items():
            headers = {header.lower(): value for header, value in answer["headers"].items()}
            reply = Reply(answer["statusCode"], headers, json.loads(answer["body"]), answer["body"])
            check_envelope(events[name]["path"], reply, events[name]["requestContext"]["requestId"])
            assert reply.status in {200, 201, 402, 403, 404, 409}, f"{name}: {reply.text}\n{answered['log']}"

    def test_loads_nothing_but_itself_the_layer_and_the_standard_library(
        self, logical_id: str, answered: dict[str, Any]
    ):
        standard = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})
        homes = [str(BUILD / "SharedLayer"), str(BUILD / logical_id), standard, str(ROOT / "tests" / "e2e")]
        foreign = [
            origin
            for origin in answered["loaded"]
            if Path(origin).is_absolute() and not any(origin.startswith(home) for home in homes)
        ]
        assert foreign == []
