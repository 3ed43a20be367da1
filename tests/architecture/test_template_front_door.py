"""The template's front door: its conditions and its secret."""

import json

from controlplane.platform.core.settings import read_signing_secret
from controlplane.platform.http.client_address import ADDRESS_HEADER, SECRET_HEADER
from local.front_door import restore_challenge
from local.template import NESTED, load_template
from tests.support.template import resources, without

RESOURCES = load_template()["Resources"]
OWN = load_template(NESTED["FrontDoor"])
(DISTRIBUTION,) = [it["Properties"]["DistributionConfig"] for it in resources("AWS::CloudFront::Distribution").values()]
BEHAVIOR, (ORIGIN,) = DISTRIBUTION["DefaultCacheBehavior"], DISTRIBUTION["Origins"]


class TestConditions:
    def test_nothing_that_always_exists_refers_to_the_front_door(self):
        own = {name for name, it in RESOURCES.items() if it.get("Condition") == "HasFrontDoor"}
        assert own == {"FrontDoor", "FrontDoorSecret"}
        assert RESOURCES["FrontDoor"]["Properties"]["Parameters"].keys() == OWN["Parameters"].keys()
        for name in RESOURCES.keys() - own:
            assert not any(front in json.dumps(without(RESOURCES[name], "HasFrontDoor")) for front in own), name

    def test_the_front_door_proves_itself_with_the_secret_that_functions_read(self):
        (header,) = ORIGIN["OriginCustomHeaders"]
        assert header["HeaderName"].lower() == SECRET_HEADER
        generated = RESOURCES["FrontDoorSecret"]["Properties"]["GenerateSecretString"]
        secret = {**json.loads(generated["SecretStringTemplate"]), generated["GenerateStringKey"]: "x" * 64}
        assert read_signing_secret(json.dumps(secret)) == {"current": "x" * 64}


class TestCaching:
    def test_only_the_configuration_is_cached_by_origin_for_as_long_as_its_header_says(self):
        (cached,) = DISTRIBUTION["CacheBehaviors"]
        assert (cached["PathPattern"], cached["ViewerProtocolPolicy"]) == ("/v1/consent-instances/*", "https-only")
        policy = OWN["Resources"][cached["CachePolicyId"]["Ref"]]["Properties"]["CachePolicyConfig"]
        assert (policy["MinTTL"], policy["DefaultTTL"]) == (0, 0)
        forwarded = policy["ParametersInCacheKeyAndForwardedToOrigin"]
        assert forwarded["HeadersConfig"] == {"HeaderBehavior": "whitelist", "Headers": ["Origin"]}
        assert forwarded["CookiesConfig"] == {"CookieBehavior": "none"}
        assert forwarded["QueryStringsConfig"] == {"QueryStringBehavior": "none"}

    def test_the_configuration_is_cached_compressed(self):
        (cached,) = DISTRIBUTION["CacheBehaviors"]
        policy = OWN["Resources"][cached["CachePolicyId"]["Ref"]]["Properties"]["CachePolicyConfig"]
        assert cached["Compress"] is True
        assert policy["ParametersInCacheKeyAndForwardedToOrigin"]["EnableAcceptEncodingGzip"] is True

    def test_the_gateway_gets_the_address_of_a_visitor_and_nothing_else_that_is_not_cached_by(self):
        (cached,) = DISTRIBUTION["CacheBehaviors"]
        assert cached["FunctionAssociations"] == [BEHAVIOR["FunctionAssociations"][0]]
        policy = OWN["Resources"][cached["OriginRequestPolicyId"]["Ref"]]["Properties"]["OriginRequestPolicyConfig"]
        (header,) = policy["HeadersConfig"]["Headers"]
        assert (policy["HeadersConfig"]["HeaderBehavior"], header.lower()) == ("whitelist", ADDRESS_HEADER)
        assert policy["CookiesConfig"] == {"CookieBehavior": "none"}
        assert policy["QueryStringsConfig"] == {"QueryStringBehavior": "none"}


class TestFunctions:
    def test_the_local_front_door_leaves_errors_alone_as_cloudfront_does(self):
        sent = {"x-amzn-remapped-www-authenticate": "Bearer", "x-front-door-status": "401"}
        for status in (400, 401, 503):
            assert restore_challenge(status, sent.items()) == (status, list(sent.items()))

    def test_names_are_short_enough_and_differ_between_stacks(self):
        for name in ("FrontDoorAddressFunction", "FrontDoorChallengeFunction"):
            text, variables = OWN["Resources"][name]["Properties"]["Name"]["Fn::Sub"]
            assert "AWS::StackId" in json.dumps(variables)
            assert len(text.replace("${Stack}", "x" * 36)) <= 64
