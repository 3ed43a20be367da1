"""Support of plain `sam local` by `make run`: files that samconfig.toml names, and connections from containers."""

import json
import socket
import stat
import tomllib
from pathlib import Path

import pytest
import yaml

from local import checkout, environment, sam
from local.template import load_template

CONFIG = tomllib.loads((checkout.ROOT / "samconfig.toml").read_text())["default"]
LOCAL = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
    "SCAN_EXECUTION_QUEUE_URL": "http://127.0.0.1:4566/000000000000/queue",
    "PUBLIC_BASE_URL": "http://127.0.0.1:3000",
    "DASHBOARD_BASE_URL": "http://127.0.0.1:3000",
    "GITHUB_APP_PRIVATE_KEY_FILE": "/home/ada/key.pem",
    "POWERTOOLS_SERVICE_NAME": "local",
    "LOG_LEVEL": "WARNING",
    "TABLE_NAME": "table",
}


class TestVariables:
    def test_have_addresses_that_containers_reach(self):
        found = sam.container_variables(LOCAL)
        assert found["AWS_ENDPOINT_URL"] == "http://host.docker.internal:4566"
        assert found["SCAN_EXECUTION_QUEUE_URL"] == "http://host.docker.internal:4566/000000000000/queue"

    def test_send_browsers_to_the_pages_of_make_run(self):
        found = sam.container_variables(LOCAL)
        assert found["PUBLIC_BASE_URL"] == found["DASHBOARD_BASE_URL"] == "http://127.0.0.1:3000"

    def test_leave_out_files_of_this_machine_and_values_of_the_template(self):
        found = sam.container_variables(LOCAL)
        assert found.keys() & {"GITHUB_APP_PRIVATE_KEY_FILE", "POWERTOOLS_SERVICE_NAME", "LOG_LEVEL"} == set()
        assert found["GITHUB_APP_SECRET_ARN"] == "github-app-key"

    def test_include_an_endpoint_that_the_template_declares_but_never_sets(self):
        """SAM ignores variables of the file that the template doesn't declare."""
        variables = load_template()["Globals"]["Function"]["Environment"]["Variables"]
        assert variables["AWS_ENDPOINT_URL"] == {"Ref": "AWS::NoValue"}


class TestFiles:
    @pytest.fixture(autouse=True)
    def _written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sam, "ENVIRONMENT", tmp_path / sam.ENVIRONMENT.name)
        monkeypatch.setattr(sam, "PARAMETERS", tmp_path / sam.PARAMETERS.name)
        sam.write_files(LOCAL)

    def test_are_in_the_format_of_sam(self):
        assert json.loads(sam.ENVIRONMENT.read_text()) == {"Parameters": sam.container_variables(LOCAL)}
        assert yaml.safe_load(sam.PARAMETERS.read_text()) == {"Architecture": sam.architecture()}

    def test_are_private(self):
        assert stat.S_IMODE(sam.ENVIRONMENT.stat().st_mode) == 0o600


class TestConfig:
    @pytest.mark.parametrize("command", ["local_start_api", "local_invoke"])
    def test_names_what_make_run_writes(self, command: str):
        parameters = CONFIG[command]["parameters"]
        folder = checkout.ROOT / ".local"
        assert checkout.ROOT / parameters["env_vars"] == folder / sam.ENVIRONMENT.name
        assert parameters["parameter_overrides"] == f"file://.local/{sam.PARAMETERS.name}"
        assert parameters["add_host"] == f"{sam.CONTAINER_HOST}:host-gateway"
        assert parameters["region"] == environment.REGION

    def test_keeps_the_port_of_make_run_free(self):
        assert CONFIG["local_start_api"]["parameters"]["port"] == 3001


class TestBridge:
    def test_containers_may_connect_only_on_request(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("SAM_LOCAL", raising=False)
        assert sam.bridge_address() == checkout.HOST

    def test_is_an_address_of_this_machine(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SAM_LOCAL", "on")
        with socket.socket() as probe:
            probe.bind((sam.bridge_address(), 0))
