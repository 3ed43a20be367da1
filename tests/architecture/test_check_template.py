"""The template's checks: what is accepted has a reason, and the policies are complete before they are checked."""

import json
import re
from typing import Any

import pytest

from local.checkout import ROOT
from local.template import load_template
from scripts.accepted_findings import ACCEPTED, ANNOUNCED
from scripts.check_policies import policies, resolved
from scripts.conditions import resolve
from scripts.limits import Measured, excesses, measure, of_roles
from tests.support.each import each
from tests.support.template import functions

DEFAULTS = resolve(load_template(), {})
VARIANTS = {"defaults", "everything", "elsewhere"}


class TestAcceptedFindings:
    @each("rule", ACCEPTED)
    def test_each_accepted_finding_has_variants_and_a_reason(self, rule: str):
        accepted = ACCEPTED[rule]
        assert {*accepted.variants.split()} <= VARIANTS
        assert accepted.variants
        assert len(accepted.reason.split()) > 5

    def test_every_parameter_that_a_reason_names_exists(self):
        text = " ".join(it.reason for it in ACCEPTED.values())
        named = set(re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", text)) - {"CloudFront", "CloudWatch", "CodeDeploy", "GitHub"}
        assert named <= DEFAULTS["Parameters"].keys() | DEFAULTS["Resources"].keys()

    def test_each_announced_problem_of_an_upgrade_is_about_a_resource_and_has_a_reason(self):
        for problem, reason in ANNOUNCED.items():
            assert problem.split(":")[0].split()[0] in DEFAULTS["Resources"]
            assert len(reason.split()) > 5

    def test_no_accepted_finding_allows_every_action_or_resource(self):
        wildcards = {rule for rule in ACCEPTED if rule.startswith("AwsSolutions-IAM5")}
        assert all("Resource::" in rule for rule in wildcards)
        assert not any(rule in {"AwsSolutions-IAM4", "AwsSolutions-IAM5"} for rule in ACCEPTED)


class TestPolicies:
    def test_every_policy_document_is_checked(self):
        documented = {
            name
            for name, it in DEFAULTS["Resources"].items()
            if "PolicyDocument" in it.get("Properties", {})
            or (it["Type"] == "AWS::IAM::Role" and "Policies" in it["Properties"])
        }
        assert documented
        assert {name for name, _ in policies(DEFAULTS)} == documented

    def test_a_role_has_its_inline_policies_checked(self):
        role = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": {"Statement": []}}]}}
        assert [*policies({"Parameters": {}, "Resources": {"Role": role}})] == [("Role", {"Statement": []})]

    def test_no_reference_is_left_in_a_policy(self):
        assert not re.search(r"Fn::|\$\{|\"Ref\"", json.dumps([*policies(DEFAULTS)]))

    def test_a_reference_to_an_unknown_kind_of_resource_is_an_error(self):
        template = {"Parameters": {}, "Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}}}
        with pytest.raises(KeyError):
            resolved({"Fn::GetAtt": ["Bucket", "Arn"]}, template)

    def test_every_function_has_a_policy_of_the_current_language_version(self):
        versions = {policy["Version"] for it in functions().values() for policy in it["Properties"]["Policies"]}
        assert versions == {"2012-10-17"}


class TestEnvironments:
    def test_every_tool_of_the_check_has_a_lock_file(self):
        prerequisites = re.search(r"^template: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert prerequisites
        for environment in re.findall(r"\.tools/(\w+)/", prerequisites[1]):
            locks = [ROOT / f"requirements/{environment}.txt", ROOT / f"requirements/{environment}/package-lock.json"]
            assert any(lock.exists() for lock in locks), environment


def planted(**resources: dict[str, Any]) -> dict[str, Any]:
    """Returns a transformed template with these resources: their types and properties."""
    queue = {"Type": "AWS::SQS::Queue"}
    return {"Parameters": {"Text": {"Default": ""}}, "Resources": {"Queue": queue, **resources}}


def measured(template: dict[str, Any], source: str = "") -> list[Measured]:
    return measure(source, template, template)


def policy(actions: int) -> dict[str, Any]:
    """Returns the document of a policy, of 226 characters and 18 for each action beyond the first, in GovCloud."""
    statement = {
        "Effect": "Allow",
        "Action": ["sqs:SendMessage"] * actions,
        "Resource": {"Fn::GetAtt": ["Queue", "Arn"]},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def role(*actions: int) -> dict[str, Any]:
    policies = [{"PolicyName": str(it), "PolicyDocument": policy(it)} for it in actions]
    return {"Type": "AWS::IAM::Role", "Properties": {"Policies": policies}}


def routes(number: int) -> dict[str, Any]:
    """Returns permissions to invoke a function: one for each route."""
    permission = {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "FunctionName": {"Ref": "Alias"},
            "Action": "lambda:InvokeFunction",
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": {"Fn::Sub": ["arn:aws:execute-api:${Id}/*/GET/", {"Id": {"Ref": "AWS::StackName"}}]},
        },
    }
    return {"Alias": {"Type": "AWS::Lambda::Alias"}, **{f"Route{it}": permission for it in range(number)}}


def api(paths: int) -> dict[str, Any]:
    return {
        "Type": "AWS::ApiGateway::RestApi",
        "Properties": {"Body": {"paths": dict.fromkeys(map(str, range(paths)))}},
    }


def variables(length: int) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"NAME": "x" * length}}}}


class TestLimits:
    """AWS refuses a deployment that exceeds one of these, and some depend on the stack's name and region."""

    def test_a_policy_has_the_length_that_iam_counts_under_the_longest_name_in_govcloud(self):
        (found,) = of_roles(planted(Role=role(1)))
        queue = f"{'s' * 64}-Queue-123456789012"[:80]
        arn = f"arn:aws-us-gov:sqs:us-gov-west-1:123456789012:{queue}"
        statement = f'{{"Effect":"Allow","Action":["sqs:SendMessage"],"Resource":"{arn}"}}'
        assert found.size == len(f'{{"Version":"2012-10-17","Statement":[{statement}]}}') == 226
        assert found == Measured("the inline policies of Role", 226, 10_240)

    def test_the_policies_of_a_role_count_together_wherever_they_are_declared(self):
        attached = {"Roles": [{"Ref": "Role"}], "PolicyDocument": policy(1)}
        (found,) = of_roles(planted(More={"Type": "AWS::IAM::Policy", "Properties": attached}, Role=role(1, 2)))
        assert found == Measured("the inline policies of Role", 226 + (226 + 244), 10_240)

    def test_a_secret_counts_as_its_two_values_during_a_rotation(self):
        secret = {"Fn::Sub": "{{resolve:secretsmanager:${Secret}:SecretString}}"}
        function = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"SECRET": secret}}}}
        sizes = {it.what: it.size for it in measured(planted(Function=function))}
        assert 2 * 64 < sizes["the environment of Function"] < 200

    @each(
        ("resources", "limit", "what"),
        [
            ({"Role": role(510)}, 10_240, "the inline policies of Role"),
            ({"Role": role(250, 250)}, 10_240, "the inline policies of Role"),
            (
                {"Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": policy(300)}}},
                6_144,
                "the policy Policy",
            ),
            ({"Function": variables(3_500)}, 4_096, "the environment of Function"),
            (routes(40), 20_480, "the resource policy of Alias"),
            ({"Api": api(260)}, 300, "the resources of Api"),
            ({f"Queue{it}": {"Type": "AWS::SQS::Queue"} for it in range(430)}, 500, "the template's resources"),
        ],
    )
    def test_what_takes_more_than_85_percent_of_a_limit_is_refused(
        self, resources: dict[str, Any], limit: int, what: str
    ):
        (sentence,) = excesses(measured(planted(**resources)))
        assert re.fullmatch(
            rf"{what}: [0-9,]+ is (8[5-9]|9[0-9])% of AWS's limit of {limit:,}, and more than 85%", sentence
        )

    @each("section", ["Parameters", "Outputs", "Mappings"])
    def test_more_than_85_percent_of_the_parts_of_a_template_are_refused(self, section: str):
        (sentence,) = excesses(measured({**planted(), section: dict.fromkeys(map(str, range(171)))}))
        assert sentence == f"the template's {section.lower()}: 171 is 86% of AWS's limit of 200, and more than 85%"
        assert not excesses(measured({**planted(), section: dict.fromkeys(map(str, range(170)))}))

    def test_a_template_that_is_too_large_is_refused_as_sent_and_as_transformed(self):
        (sentence,) = excesses(measured(planted(), "x" * 860_000))
        assert sentence == "the template: 860,000 is 86% of AWS's limit of 1,000,000, and more than 85%"
        (sentence,) = excesses(measured({**planted(), "Description": "x" * 860_000}))
        assert sentence.startswith("the transformed template: 860,")

    def test_no_role_has_more_than_4000_characters(self):
        """Less than half of the limit. This also finds what SAM's transformation would tell only `make template`."""
        resources = dict(DEFAULTS["Resources"])
        for name, it in DEFAULTS["Resources"].items():
            if it["Type"] == "AWS::Serverless::Function":
                own = [{"PolicyDocument": document} for document in it["Properties"].get("Policies", [])]
                role = {"Type": "AWS::IAM::Role", "Properties": {"Policies": own}}
                resources |= {
                    name: {"Type": "AWS::Lambda::Function"},
                    f"{name}Role": resources.get(f"{name}Role", role),
                }
        sizes = {it.what: it.size for it in of_roles({**DEFAULTS, "Resources": resources})}
        assert len(sizes) > len(functions())
        assert {what: size for what, size in sizes.items() if size > 4_000 and what.startswith("the inline")} == {}
