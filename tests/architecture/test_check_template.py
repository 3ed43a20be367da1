"""The template's checks: what is accepted has a reason, and the policies are complete before they are checked."""

import json
import re

import pytest

from local.checkout import ROOT
from local.template import load_template
from scripts.accepted_findings import ACCEPTED, ANNOUNCED
from scripts.check_policies import policies, resolved
from scripts.conditions import resolve
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
