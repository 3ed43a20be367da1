"""The template's front door: what it forwards, caches, and trusts."""

import json

from controlplane.core.settings import read_signing_secret
from controlplane.http.front_door import SECRET_HEADER
from local.front_door import restore_challenge
from local.template import load_template
from tests.support.template import api_functions, functions, resources, without

RESOURCES = load_template()["Resources"]
(DISTRIBUTION,) = [it["Properties"]["DistributionConfig"] for it in resources("AWS::CloudFront::Distribution").values()]
BEHAVIOR, (ORIGIN,) = DISTRIBUTION["DefaultCacheBehavior"], DISTRIBUTION["Origins"]
NAMES = ("FrontDoorDistribution", "FrontDoorAddressFunction", "FrontDoorChallengeFunction", "FrontDoorSecret")
# Statuses whose responses CloudFront caches (CloudFront developer guide, "HTTP 4xx and 5xx status codes that CloudFront
# caches").
CACHED_ERRORS = {400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504}


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


class TestFunctions:
    def test_the_local_front_door_leaves_errors_alone_as_cloudfront_does(self):
        sent = {"x-amzn-remapped-www-authenticate": "Bearer", "x-front-door-status": "401"}
        for status in (400, 401, 503):
            assert restore_challenge(status, sent.items()) == (status, list(sent.items()))

    def test_names_are_short_enough_and_differ_between_stacks(self):
        for name in ("FrontDoorAddressFunction", "FrontDoorChallengeFunction"):
            text, variables = RESOURCES[name]["Properties"]["Name"]["Fn::Sub"]
            assert "AWS::StackId" in json.dumps(variables)
            assert len(text.replace("${Stack}", "x" * 36)) <= 64
