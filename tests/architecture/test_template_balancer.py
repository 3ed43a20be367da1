"""The template's load balancer: when it exists, what it reaches, and what it trusts; and the log lines of Lambda."""

import json
from typing import Any

from controlplane.http.balancer import COMPRESSED_FROM_BYTES
from local.balancer import template_rules
from local.template import load_template
from tests.support.each import each
from tests.support.template import api_functions, functions, resources, routes_by_group, without

RESOURCES = load_template()["Resources"]
CONDITIONS = load_template()["Conditions"]
OWN = {name: it for name, it in RESOURCES.items() if "HasBalancer" in it.get("Condition", "")}
TARGETS = resources("AWS::ElasticLoadBalancingV2::TargetGroup")
LISTENER = RESOURCES["BalancerListener"]["Properties"]
NO_VALUE = {"Ref": "AWS::NoValue"}


def _is_set(parameter: str) -> dict[str, Any]:
    return {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}


class TestConditions:
    def test_it_exists_if_it_has_a_vpc_and_subnets_and_by_default_it_does_not(self):
        assert CONDITIONS["HasBalancer"] == {"Fn::And": [_is_set("BalancerVpc"), _is_set("BalancerSubnets")]}
        assert load_template()["Parameters"]["BalancerVpc"]["Default"] == ""
        for name in ("HasBalancerWebAcl", "HasBalancerSignIn", "TracesNothing"):
            assert {"Condition": "HasBalancer"} in CONDITIONS[name]["Fn::And"]

    def test_nothing_that_always_exists_refers_to_it(self):
        for name, resource in {**RESOURCES, "outputs": load_template()["Outputs"]}.items():
            if name not in OWN:
                text = json.dumps(without(resource, "HasBalancer", "HasBalancerSignIn"))
                assert not any(f'"{own}"' in text or f"${{{own}" in text for own in OWN), name

    def test_it_needs_the_domain_its_certificate_and_subnets_and_no_front_door(self):
        rule = load_template()["Rules"]["BalancerNeedsTheCustomDomain"]
        assert rule["RuleCondition"] == _is_set("BalancerVpc")
        assert [it["Assert"] for it in rule["Assertions"]] == [
            _is_set("CustomDomain"),
            _is_set("CertificateArn"),
            _is_set("BalancerSubnets"),
            {"Fn::Equals": [{"Ref": "FrontDoorCertificateArn"}, ""]},
        ]


class TestTargets:
    def test_every_function_of_the_api_is_a_target_by_its_alias(self):
        found = sorted(it["Properties"]["Targets"][0]["Id"]["Ref"] for it in TARGETS.values())
        assert found == sorted(f"{name}.Alias" for name in api_functions())
        assert {rule.function for rule in template_rules()} - {None} == set(routes_by_group())

    @each("name", TARGETS)
    def test_a_target_gets_values_in_lists_and_no_health_checks(self, name: str):
        properties = TARGETS[name]["Properties"]
        assert (properties["TargetType"], properties["HealthCheckEnabled"]) == ("lambda", False)
        assert properties["TargetGroupAttributes"] == [{"Key": "lambda.multi_value_headers.enabled", "Value": "true"}]

    @each("name", TARGETS)
    def test_only_its_own_target_group_may_invoke_a_function(self, name: str):
        target = TARGETS[name]
        permission = RESOURCES[target["DependsOn"]]["Properties"]
        assert permission["FunctionName"] == target["Properties"]["Targets"][0]["Id"]
        assert permission["Principal"] == "elasticloadbalancing.amazonaws.com"
        assert permission["Action"] == "lambda:InvokeFunction"
        text, variables = target["Properties"]["Name"]["Fn::Sub"]
        source, given = permission["SourceArn"]["Fn::Sub"]
        assert source == f"${{Groups}}/{text}/*"
        assert given["Id"] == variables["Id"]
        assert given["Groups"]["Fn::Sub"].endswith(":${AWS::AccountId}:targetgroup")
        # Eight digits of the stack's ID replace the variable.
        assert len(text.replace("${Id}", "x" * 8)) <= 32

    def test_rules_have_distinct_priorities_and_end_with_the_pages(self):
        rules = resources("AWS::ElasticLoadBalancingV2::ListenerRule").values()
        assert sorted(it["Properties"]["Priority"] for it in rules) == list(range(11, 11 + len(rules)))
        assert [(rule.patterns, rule.function) for rule in template_rules()[-2:]] == [
            (("/v1/*",), None),
            (("/*",), "dashboard"),
        ]
        # Those beyond ten that a request passes are billed.
        assert [rule.function for rule in template_rules()[:6]] == [
            *("projects", "inbox", "code_audit", "system", "billing", "feedback"),
        ]


class TestListener:
    def test_it_accepts_only_tls_1_2_or_newer(self):
        (listener,) = resources("AWS::ElasticLoadBalancingV2::Listener").values()
        assert (listener["Properties"]["Protocol"], listener["Properties"]["Port"]) == ("HTTPS", 443)
        assert LISTENER["SslPolicy"] == "ELBSecurityPolicy-TLS13-1-2-2021-06"
        assert LISTENER["Certificates"] == [{"CertificateArn": {"Ref": "CertificateArn"}}]

    def test_an_unknown_path_gets_the_gateways_response(self):
        (action,) = LISTENER["DefaultActions"]
        response = RESOURCES["Api"]["Properties"]["GatewayResponses"]["DEFAULT_4XX"]
        assert action["FixedResponseConfig"] == {
            "StatusCode": str(response["StatusCode"]),
            "ContentType": "application/json",
            "MessageBody": response["ResponseTemplates"]["application/json"],
        }
        unknown = RESOURCES["BalancerUnknownRule"]["Properties"]
        assert unknown["Actions"] == LISTENER["DefaultActions"]

    def test_its_attributes_are_those_that_the_functions_rely_on(self):
        attributes = RESOURCES["Balancer"]["Properties"]["LoadBalancerAttributes"]
        found = {it["Key"]: it["Value"] for it in attributes if "Key" in it}
        assert found == {
            "routing.http.xff_header_processing.mode": "append",
            "routing.http.xff_client_port.enabled": "false",
            "routing.http.drop_invalid_header_fields.enabled": "true",
            "routing.http.desync_mitigation_mode": "defensive",
            "access_logs.s3.enabled": {"Fn::If": ["HasBalancerLog", "true", "false"]},
        }

    def test_clients_of_one_network_reach_one_port_and_it_reaches_nothing(self):
        properties = RESOURCES["BalancerSecurityGroup"]["Properties"]
        (inbound,), (outbound,) = properties["SecurityGroupIngress"], properties["SecurityGroupEgress"]
        assert (inbound["FromPort"], inbound["ToPort"], inbound["CidrIp"]) == (443, 443, {"Ref": "BalancerSources"})
        assert outbound["CidrIp"] == "127.0.0.1/32"

    def test_it_gets_the_gateways_web_acl(self):
        found = RESOURCES["BalancerWebAclAssociation"]
        assert found["Condition"] == "HasBalancerWebAcl"
        assert found["Properties"] == {"ResourceArn": {"Ref": "Balancer"}, "WebACLArn": {"Ref": "WebAclArn"}}

    def test_functions_compress_what_the_gateway_would(self):
        assert RESOURCES["Api"]["Properties"]["MinimumCompressionSize"] == COMPRESSED_FROM_BYTES


class TestSignIn:
    def test_its_client_differs_from_the_other_one_only_in_its_addresses(self):
        own, other = (RESOURCES[name]["Properties"] for name in ("BalancerUserPoolClient", "UserPoolClient"))
        addresses = ("CallbackURLs", "LogoutURLs")
        assert {name: it for name, it in own.items() if name not in addresses} == {
            name: it for name, it in other.items() if name not in addresses
        }
        for name in addresses:
            (own_address,), (other_address,) = own[name], other[name]
            assert own_address["Fn::If"][:2] == other_address["Fn::If"][:2]
            _, [base, path] = other_address["Fn::If"][2]["Fn::Join"]
            assert own_address["Fn::If"][2] == {"Fn::Sub": f"{base['Fn::If'][1]['Fn::Sub']}{path}"}

    def test_the_pages_get_its_id(self):
        variables = functions()["DashboardFunction"]["Properties"]["Environment"]["Variables"]
        assert variables["SIGN_IN_CLIENT_ID"] == {
            "Fn::If": [
                "HasBalancerSignIn",
                {"Ref": "BalancerUserPoolClient"},
                {"Fn::If": ["HasBalancer", {"Ref": "SignInClientId"}, ""]},
            ]
        }


class TestPlatformLogs:
    def test_all_lines_are_written_by_default(self):
        assert load_template()["Parameters"]["PlatformLogs"]["Default"] == "all"
        assert CONDITIONS["LogsFailuresOnly"] == {"Fn::Equals": [{"Ref": "PlatformLogs"}, "failures"]}

    def test_lambda_drops_no_line_of_the_service(self):
        # A line without a level, such as a metric's, is INFO to Lambda. The service applies its own level.
        assert CONDITIONS["LogsDebug"] == {"Fn::Equals": [{"Ref": "LogLevel"}, "DEBUG"]}
        shared = load_template()["Globals"]["Function"]["LoggingConfig"]
        lambdas = {"Fn::If": ["LogsDebug", "DEBUG", "INFO"]}
        assert shared == {
            "LogFormat": {"Fn::If": ["LogsFailuresOnly", "JSON", NO_VALUE]},
            "SystemLogLevel": {"Fn::If": ["LogsFailuresOnly", "WARN", NO_VALUE]},
            "ApplicationLogLevel": {"Fn::If": ["LogsFailuresOnly", lambdas, NO_VALUE]},
        }
        assert all(it["Properties"]["LoggingConfig"].keys() == {"LogGroup"} for it in functions().values())
