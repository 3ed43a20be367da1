"""SAM's settings for a local run: the host address for containers, the build, and the functions' variables."""

import os
from copy import deepcopy
from pathlib import Path

import pytest

from local.sam import _reachable, architecture, complete, defaults, gateway_of, is_current
from local.template import load_template
from tests.support.engines import free_port


class TestGateway:
    def test_is_what_docker_says(self):
        assert gateway_of([{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.9"}]) == "172.17.0.9"

    @pytest.mark.parametrize("network", [{"Subnet": "172.17.0.0/16"}, {"Subnet": "172.17.0.0/16", "Gateway": ""}])
    def test_is_the_first_address_where_docker_does_not_say(self, network: dict[str, str]):
        assert gateway_of([network]) == "172.17.0.1"

    def test_is_of_the_network_that_has_ipv4(self):
        networks = [{"Subnet": "fd00::/64", "Gateway": "fd00::1"}, {"Subnet": "10.1.0.0/24", "Gateway": "10.1.0.1"}]
        assert gateway_of(networks) == "10.1.0.1"

    def test_must_be_there(self, capsys: pytest.CaptureFixture[str]):
        with pytest.raises(SystemExit):
            gateway_of([])
        assert "IPv4" in capsys.readouterr().err

    def test_has_a_name_where_it_is_no_address_of_this_machine(self):
        # From a block reserved for documentation (RFC 5737).
        with _reachable("192.0.2.1", [free_port(), free_port()]) as host:
            assert host == "host.docker.internal"


class TestDefaults:
    def test_keep_out_of_the_way_of_the_local_stack(self):
        assert defaults("start-api", []) == ["--port", "3001", "--warm-containers", "LAZY"]

    @pytest.mark.parametrize("given", [["--port", "4000"], ["--port=4000"], ["-p", "4000"]])
    def test_give_way_to_what_is_asked_for(self, given: list[str]):
        assert defaults("start-api", [*given, "--debug"]) == ["--warm-containers", "LAZY"]

    def test_are_none_for_a_single_invocation(self):
        assert defaults("invoke", ["SystemFunction"]) == []


class TestBuild:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        """Creates source files with an old timestamp, and a newer build."""
        source = tmp_path / "functions"
        (source / "system" / "__pycache__").mkdir(parents=True)
        (source / "system" / "app.py").touch()
        (tmp_path / "build").mkdir()
        (tmp_path / "build" / "template.yaml").touch()
        for path in (source, *source.rglob("*")):
            os.utime(path, (1_000_000, 1_000_000))
        return source

    def test_is_current_until_something_changes(self, source: Path, tmp_path: Path):
        assert is_current(tmp_path / "build", [source])
        (source / "system" / "__pycache__" / "app.cpython-313.pyc").touch()
        assert is_current(tmp_path / "build", [source])

    @pytest.mark.parametrize("file", ["app.py", "routes.py"])
    def test_is_not_current_after_a_change_or_an_addition(self, source: Path, tmp_path: Path, file: str):
        (source / "system" / file).touch()
        os.utime(source / "system" / file, (9_999_999_999, 9_999_999_999))
        assert not is_current(tmp_path / "build", [source])

    def test_is_not_current_where_there_is_none(self, source: Path, tmp_path: Path):
        assert not is_current(tmp_path, [source])


class TestVariables:
    def test_reach_every_function_and_come_before_the_templates(self):
        template, names = complete(
            load_template(), {"TABLE_NAME": "local", "AWS_ENDPOINT_URL": "http://172.17.0.1:4566"}
        )
        assert {"TABLE_NAME", "AWS_ENDPOINT_URL", "SIGNING_SECRET", "POWERTOOLS_SERVICE_NAME"} <= names
        functions = [it for it in template["Resources"].values() if it["Type"] == "AWS::Serverless::Function"]
        found = [it["Properties"]["Environment"]["Variables"] for it in functions]
        assert {one["TABLE_NAME"] for one in found} == {"local"}
        assert {one["AWS_ENDPOINT_URL"] for one in found} == {"http://172.17.0.1:4566"}
        assert all(isinstance(one["POWERTOOLS_SERVICE_NAME"], str) for one in found)

    def test_are_of_functions_for_this_processor(self):
        template, _ = complete(load_template(), {})
        assert template["Parameters"]["Architecture"]["Default"] == architecture()

    def test_leave_the_template_itself_as_it_was(self):
        built = load_template()
        before = deepcopy(built)
        complete(built, {"TABLE_NAME": "local"})
        assert built == before
