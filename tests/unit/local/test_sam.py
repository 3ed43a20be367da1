"""Support of plain `sam local` by `make run`: files that samconfig.toml names, and connections from containers."""

import json
import socket
import stat

import yaml

from local import checkout, sam

CLOUD, PAGES = "http://127.0.0.1:4566", "http://127.0.0.1:3000"
LOCAL = {
    "AWS_ENDPOINT_URL": CLOUD,
    "SCAN_EXECUTION_QUEUE_URL": f"{CLOUD}/000000000000/queue",
    "PUBLIC_BASE_URL": PAGES,
    "DASHBOARD_BASE_URL": PAGES,
    "GITHUB_APP_PRIVATE_KEY_FILE": "/home/ada/key.pem",
    "POWERTOOLS_SERVICE_NAME": "local",
    "LOG_LEVEL": "WARNING",
    "TABLE_NAME": "table",
}


def test_variables_have_addresses_that_containers_reach_and_no_files_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(sam, "ENVIRONMENT", tmp_path / sam.ENVIRONMENT.name)
    monkeypatch.setattr(sam, "PARAMETERS", tmp_path / sam.PARAMETERS.name)
    sam.write_files(LOCAL)
    found = json.loads(sam.ENVIRONMENT.read_text())["Parameters"]
    assert found["AWS_ENDPOINT_URL"] == "http://host.docker.internal:4566"
    assert found["SCAN_EXECUTION_QUEUE_URL"] == "http://host.docker.internal:4566/000000000000/queue"
    assert found["PUBLIC_BASE_URL"] == found["DASHBOARD_BASE_URL"] == PAGES
    assert found.keys() & {"GITHUB_APP_PRIVATE_KEY_FILE", "POWERTOOLS_SERVICE_NAME", "LOG_LEVEL"} == set()
    assert found["GITHUB_APP_SECRET_ARN"] == "github-app-key"
    assert yaml.safe_load(sam.PARAMETERS.read_text()) == {"Architecture": sam.architecture()}
    assert stat.S_IMODE(sam.ENVIRONMENT.stat().st_mode) == 0o600


def test_containers_may_connect_only_on_request_to_an_address_of_this_machine(monkeypatch):
    monkeypatch.delenv("SAM_LOCAL", raising=False)
    assert sam.bridge_address() == checkout.HOST
    monkeypatch.setenv("SAM_LOCAL", "on")
    with socket.socket() as probe:
        probe.bind((sam.bridge_address(), 0))
