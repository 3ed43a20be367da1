"""The template's front door: what it forwards, caches, and trusts, and the JavaScript of its two functions."""

import json
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

from controlplane.core.settings import read_signing_secret
from controlplane.http.front_door import ADDRESS_HEADER, SECRET_HEADER
from local.front_door import request_headers, restore_challenge
from local.template import load_template
from tests.support.missing import is_missing
from tests.support.template import api_functions, functions, resources, without

RESOURCES = load_template()["Resources"]
(DISTRIBUTION,) = [it["Properties"]["DistributionConfig"] for it in resources("AWS::CloudFront::Distribution").values()]
BEHAVIOR, (ORIGIN,) = DISTRIBUTION["DefaultCacheBehavior"], DISTRIBUTION["Origins"]
NAMES = ("FrontDoorDistribution", "FrontDoorAddressFunction", "FrontDoorChallengeFunction", "FrontDoorSecret")
# Statuses whose responses CloudFront caches (CloudFront developer guide, "HTTP 4xx and 5xx status codes that CloudFront
# caches").
CACHED_ERRORS = {400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504}


def _reference(event_type: str) -> str:
    """Returns the name of the function that runs for the event."""
    (function,) = [it["FunctionARN"] for it in BEHAVIOR["FunctionAssociations"] if it["EventType"] == event_type]
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


class TestConditions:
    def test_the_front_door_exists_if_it_has_a_certificate(self):
        assert load_template()["Conditions"]["HasFrontDoor"] == {
            "Fn::Not": [{"Fn::Equals": [{"Ref": "FrontDoorCertificateArn"}, ""]}]
        }
        assert {name for name, it in RESOURCES.items() if it.get("Condition") == "HasFrontDoor"} == set(NAMES)
        assert load_template()["Parameters"]["FrontDoorCertificateArn"]["Default"] == ""

    def test_nothing_that_always_exists_refers_to_it(self):
        for name, resource in RESOURCES.items():
            if name not in NAMES:
                assert not any(front in json.dumps(without(resource, "HasFrontDoor")) for front in NAMES), name

    def test_a_front_door_needs_the_domain_and_no_other_proxy(self):
        rule = load_template()["Rules"]["FrontDoorNeedsTheCustomDomain"]
        assert [it["Assert"] for it in rule["Assertions"]] == [
            {"Fn::Not": [{"Fn::Equals": [{"Ref": "CustomDomain"}, ""]}]},
            {"Fn::Equals": [{"Ref": "TrustedProxyHeader"}, ""]},
        ]

    def test_the_gateways_own_domain_stays_until_direct_requests_are_rejected(self):
        assert RESOURCES["ApiDomain"]["Condition"] == RESOURCES["ApiDomainMapping"]["Condition"] == "HasApiDomain"
        conditions = {it.get("Condition") for it in load_template()["Conditions"]["HasApiDomain"]["Fn::And"]}
        assert "HasCustomDomain" in conditions
        assert {"Fn::Not": [{"Condition": "RequiresFrontDoor"}]} in load_template()["Conditions"]["HasApiDomain"][
            "Fn::And"
        ]


class TestDistribution:
    def test_it_forwards_everything_except_the_host_and_caches_nothing(self):
        # The IDs of the managed policies AllViewerExceptHostHeader and CachingDisabled.
        assert BEHAVIOR["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
        assert BEHAVIOR["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
        assert "CacheBehaviors" not in DISTRIBUTION

    def test_it_caches_no_error(self):
        kept = {it["ErrorCode"]: it for it in DISTRIBUTION["CustomErrorResponses"]}
        assert set(kept) == CACHED_ERRORS
        assert all(it == {"ErrorCode": code, "ErrorCachingMinTTL": 0} for code, it in kept.items())

    def test_it_accepts_every_method_of_the_api(self):
        assert set(BEHAVIOR["AllowedMethods"]) == {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

    def test_it_uses_tls_on_both_sides(self):
        assert BEHAVIOR["ViewerProtocolPolicy"] == "https-only"
        assert DISTRIBUTION["ViewerCertificate"]["MinimumProtocolVersion"] == "TLSv1.2_2021"
        assert ORIGIN["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
        assert ORIGIN["CustomOriginConfig"]["OriginSSLProtocols"] == ["TLSv1.2"]
        assert DISTRIBUTION["HttpVersion"] == "http2and3"

    def test_it_waits_longer_than_the_gateway(self):
        assert ORIGIN["CustomOriginConfig"]["OriginReadTimeout"] > 29

    def test_it_leaves_compression_to_the_gateway(self):
        assert BEHAVIOR["Compress"] is False

    def test_it_proves_itself_with_the_secret_that_the_apis_functions_have(self):
        (header,) = ORIGIN["OriginCustomHeaders"]
        assert header["HeaderName"].lower() == SECRET_HEADER
        assert header["HeaderValue"] == {
            "Fn::Sub": "{{resolve:secretsmanager:${FrontDoorSecret}:SecretString:current}}"
        }
        given = {"Fn::Sub": "{{resolve:secretsmanager:${FrontDoorSecret}:SecretString}}"}
        for name, function in functions().items():
            variable = function["Properties"]["Environment"]["Variables"].get("FRONT_DOOR_SECRET")
            assert variable == ({"Fn::If": ["HasFrontDoor", given, ""]} if name in api_functions() else None), name
        generated = RESOURCES["FrontDoorSecret"]["Properties"]["GenerateSecretString"]
        secret = {**json.loads(generated["SecretStringTemplate"]), generated["GenerateStringKey"]: "x" * 64}
        assert read_signing_secret(json.dumps(secret)) == {"current": "x" * 64}
        assert generated["PasswordLength"] == 64

    def test_functions_require_it_only_if_it_exists(self):
        variables = load_template()["Globals"]["Function"]["Environment"]["Variables"]
        assert variables["FRONT_DOOR_REQUIRED"] == {"Fn::If": ["RequiresFrontDoor", "true", "false"]}
        assert {"Condition": "HasFrontDoor"} in load_template()["Conditions"]["RequiresFrontDoor"]["Fn::And"]


@cache
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


class TestFunctions:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        if shutil.which("node") is None:
            is_missing("Node is not installed")

    def test_the_challenge_function_restores_status_and_header(self):
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

    def test_the_local_front_door_leaves_errors_alone_as_cloudfront_does(self):
        sent = {"x-amzn-remapped-www-authenticate": "Bearer", "x-front-door-status": "401"}
        for status in (400, 401, 503):
            assert restore_challenge(status, sent.items()) == (status, list(sent.items()))

    @pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::7"])
    def test_the_address_function_overwrites_what_the_client_sent(self, address: str):
        sent = {"accept": "*/*", ADDRESS_HEADER: "198.51.100.1", "x-forwarded-for": "198.51.100.1"}
        headers = {**_as_event(sent), ADDRESS_HEADER: {"value": "1", "multiValue": [{"value": "1"}, {"value": "2"}]}}
        events = [{"viewer": {"ip": address}, "request": {"method": "GET", "uri": "/v1/me", "headers": headers}}]
        (returned,) = run("viewer-request", events)
        # CloudFront itself adds the secret.
        expected = dict(request_headers(sent.items(), address, "secret"))
        assert expected.pop(SECRET_HEADER) == "secret"
        assert returned["headers"] == _as_event(expected)
        assert (returned["method"], returned["uri"]) == ("GET", "/v1/me")

    def test_names_are_short_enough_and_differ_between_stacks(self):
        for name in ("FrontDoorAddressFunction", "FrontDoorChallengeFunction"):
            text, variables = RESOURCES[name]["Properties"]["Name"]["Fn::Sub"]
            assert "AWS::StackId" in json.dumps(variables)
            assert len(text.replace("${Stack}", "x" * 36)) <= 64
