"""The JavaScript of the front door's two functions, run in Node, does what their doubles do that other tests use."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from controlplane.platform.http.client_address import ADDRESS_HEADER, SECRET_HEADER
from local.front_door import request_headers, restore_challenge
from local.template import NESTED, load_template
from tests.support.missing import is_missing

RESOURCES = load_template(NESTED["FrontDoor"])["Resources"]
(DISTRIBUTION,) = [
    it["Properties"]["DistributionConfig"] for it in RESOURCES.values() if it["Type"] == "AWS::CloudFront::Distribution"
]


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if shutil.which("node") is None:
        is_missing("Node is not installed")


def _reference(event_type: str) -> str:
    """Returns the name of the function that runs for the event."""
    (function,) = [
        it["FunctionARN"]
        for it in DISTRIBUTION["DefaultCacheBehavior"]["FunctionAssociations"]
        if it["EventType"] == event_type
    ]
    name, attribute = function["Fn::GetAtt"]
    assert attribute == "FunctionMetadata.FunctionARN"
    return str(name)


def run(event_type: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs the template's function for each event in Node, and returns what it returns."""
    code = RESOURCES[_reference(event_type)]["Properties"]["FunctionCode"]
    program = f"{code}\nconst events = {json.dumps(events)};\nconsole.log(JSON.stringify(events.map(handler)));"
    done = subprocess.run(["node", "-e", f'"use strict";\n{program}'], capture_output=True, text=True, check=True)
    returned: list[dict[str, Any]] = json.loads(done.stdout)
    return returned


def _as_event(headers: dict[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"value": value} for name, value in headers.items()}


def _responses() -> list[tuple[int, dict[str, str]]]:
    """Returns responses of the gateway to requests through the front door, as (status, headers)."""
    challenge, common = "x-amzn-remapped-www-authenticate", {"content-type": "application/json", "x-request-id": "r"}
    insufficient = 'Bearer error="insufficient_scope", scope="projects.read"'
    return [
        (200, common),
        (303, {"location": "/", "x-request-id": "r"}),
        (200, {**common, "x-front-door-status": "401", challenge: "Bearer"}),
        (200, {**common, "x-front-door-status": "403", challenge: insufficient}),
        (200, {**common, "x-amzn-remapped-date": "x"}),
    ]


def test_the_challenge_function_restores_status_and_header():
    events = [
        {"response": {"statusCode": status, "statusDescription": "OK", "headers": _as_event(headers)}}
        for status, headers in _responses()
    ]
    for (status, headers), returned in zip(_responses(), run("viewer-response", events), strict=True):
        expected_status, expected = restore_challenge(status, headers.items())
        assert returned["statusCode"] == expected_status
        assert returned["headers"] == _as_event(dict(expected))
        names = {200: "OK", 303: "OK", 401: "Unauthorized", 403: "Forbidden"}
        assert returned["statusDescription"] == names[expected_status]


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::7"])
def test_the_address_function_overwrites_what_the_client_sent(address: str):
    sent = {"accept": "*/*", ADDRESS_HEADER: "198.51.100.1", "x-forwarded-for": "198.51.100.1"}
    headers = {**_as_event(sent), ADDRESS_HEADER: {"value": "1", "multiValue": [{"value": "1"}, {"value": "2"}]}}
    events = [{"viewer": {"ip": address}, "request": {"method": "GET", "uri": "/v1/me", "headers": headers}}]
    (returned,) = run("viewer-request", events)
    # CloudFront itself adds the secret.
    expected = dict(request_headers(sent.items(), address, "secret"))
    assert expected.pop(SECRET_HEADER) == "secret"
    assert returned["headers"] == _as_event(expected)
    assert (returned["method"], returned["uri"]) == ("GET", "/v1/me")
