"""The template's checks: accepted findings, AWS's limits, upgrades, and conditions."""

import copy
import re
from typing import Any

from local.checkout import ROOT
from local.template import load_template
from scripts.conditions import resolve
from scripts.limits import Measured, excesses, measure, of_roles
from scripts.upgrade_gate import STATEFUL_TYPES, compare
from tests.support.each import each
from tests.support.template import every_resource, functions

DEFAULTS = resolve(load_template(), {})


class TestAcceptedFindings:
    def test_checkov_skips_only_these_checks(self):
        entries = every_resource().values()
        skips = [skip for it in entries for skip in it.get("Metadata", {}).get("checkov", {}).get("skip", [])]
        assert {it["id"] for it in skips} == {f"CKV_AWS_{number}" for number in (86, 111, 115, 120)}
        assert not any("cfn-lint" in str(it.get("Metadata")) for it in [load_template(), *entries])
        checks = (ROOT / "scripts/check_template.py").read_text()
        assert "--skip-check" not in checks
        assert "--ignore" not in checks


def planted(**resources: dict[str, Any]) -> dict[str, Any]:
    """Returns a transformed template with these resources: their types and properties."""
    queue = {"Type": "AWS::SQS::Queue"}
    return {"Parameters": {"Text": {"Default": ""}}, "Resources": {"Queue": queue, **resources}}


def policy(actions: int) -> dict[str, Any]:
    """Returns the document of a policy, of 255 characters and 18 for each action beyond the first."""
    actions_ = ["sqs:SendMessage"] * actions
    statement = {"Effect": "Allow", "Action": actions_, "Resource": {"Fn::GetAtt": ["Queue", "Arn"]}}
    return {"Version": "2012-10-17", "Statement": [statement]}


def entry(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def role(*actions: int) -> dict[str, Any]:
    return entry("IAM::Role", Policies=[{"PolicyName": str(it), "PolicyDocument": policy(it)} for it in actions])


def routes(number: int) -> dict[str, Any]:
    """Returns permissions to invoke a function: one for each route."""
    source = {"Fn::Sub": ["arn:aws:execute-api:${Id}/*/GET/", {"Id": {"Ref": "AWS::StackName"}}]}
    action = {"Action": "lambda:InvokeFunction", "Principal": "apigateway.amazonaws.com"}
    permission = entry("Lambda::Permission", FunctionName={"Ref": "Alias"}, SourceArn=source, **action)
    return {"Alias": {"Type": "AWS::Lambda::Alias"}, **{f"Route{it}": permission for it in range(number)}}


PATHS = dict.fromkeys(map(str, range(260)))


class TestLimits:
    """AWS refuses a deployment that exceeds one of these, and some depend on the stack's name and region."""

    def test_a_policy_has_the_length_that_iam_counts_with_the_longest_arn(self):
        (found,) = of_roles(planted(Role=role(1)))
        statement = f'{{"Effect":"Allow","Action":["sqs:SendMessage"],"Resource":"{"r" * 155}"}}'
        assert found.size == len(f'{{"Version":"2012-10-17","Statement":[{statement}]}}') == 255
        assert found == Measured("the inline policies of Role", 255, 10_240)

    def test_a_secret_counts_as_its_two_values_during_a_rotation(self):
        secret = {"Fn::Sub": "{{resolve:secretsmanager:${Secret}:SecretString}}"}
        function = entry("Lambda::Function", Environment={"Variables": {"SECRET": secret}})
        sizes = {it.what: it.size for it in measure(planted(Function=function))}
        assert 2 * 64 < sizes["the environment of Function"] < 200

    @each(
        ("resources", "limit", "what"),
        [
            ({"Role": role(510)}, 10_240, "the inline policies of Role"),
            ({"Role": role(250, 250)}, 10_240, "the inline policies of Role"),
            ({"Policy": entry("IAM::ManagedPolicy", PolicyDocument=policy(300))}, 6_144, "the policy Policy"),
            (
                {"Function": entry("Lambda::Function", Environment={"Variables": {"NAME": "x" * 3_500}})},
                4_096,
                "the environment of Function",
            ),
            (routes(38), 20_480, "the resource policy of Alias"),
            (
                {"Api": entry("ApiGateway::RestApi", Body={"paths": PATHS})},
                300,
                "the resources of Api",
            ),
        ],
    )
    def test_what_takes_more_than_85_percent_of_a_limit_is_refused(
        self, resources: dict[str, Any], limit: int, what: str
    ):
        (sentence,) = excesses(measure(planted(**resources)))
        assert re.fullmatch(
            rf"{what}: [0-9,]+ is (8[5-9]|9[0-9])% of AWS's limit of {limit:,}, and more than 85%", sentence
        )

    def test_no_role_has_more_than_5000_characters(self):
        """Less than half of the limit. This also finds what SAM's transformation would tell only `make template`."""
        resources = dict(DEFAULTS["Resources"])
        for name, it in DEFAULTS["Resources"].items():
            if it["Type"] == "AWS::Serverless::Function":
                own = [{"PolicyDocument": document} for document in it["Properties"].get("Policies", [])]
                made = resources.get(f"{name}Role", entry("IAM::Role", Policies=own))
                resources |= {name: {"Type": "AWS::Lambda::Function"}, f"{name}Role": made}
        sizes = {it.what: it.size for it in of_roles({**DEFAULTS, "Resources": resources})}
        assert len(sizes) > len(functions())
        assert {what: size for what, size in sizes.items() if size > 5_000 and what.startswith("the inline")} == {}


# Excerpts of AWS's schemas.
CREATE_ONLY = {
    "AWS::Backup::BackupVault": {"BackupVaultName", "EncryptionKeyArn"},
    "AWS::Cognito::UserPool": set[str](),
    "AWS::DynamoDB::Table": {"TableName", "ImportSourceSpecification", "KeySchema"},
    "AWS::Logs::LogGroup": {"LogGroupName"},
    "AWS::SecretsManager::Secret": {"Name"},
    "AWS::SQS::Queue": {"FifoQueue", "QueueName"},
}
COPYING = resolve(load_template(), {"BackupCopyVaultArn": "arn:aws:backup:eu-west-1:210987654321:backup-vault:assent"})
STATEFUL = ("Table", "UserPool", "SigningSecret", "ScanExecutionQueue")


def problems(change: Any) -> list[str]:
    """Returns what the gate finds after a change of the resolved template's resources."""
    after = copy.deepcopy(COPYING)
    change(after["Resources"])
    return compare(COPYING, after, CREATE_ONLY.__getitem__)


def indexes(resources: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = resources["Table"]["Properties"]["GlobalSecondaryIndexes"]
    return found


def index(name: str) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}]}


class TestUpgradeGate:
    """An upgrade must not lose data."""

    def test_the_template_has_every_stateful_type(self):
        assert {it["Type"] for it in COPYING["Resources"].values()} >= {*STATEFUL_TYPES}

    @each(
        ("change", "problem"),
        [
            *((lambda it, name=name: it.pop(name), f"{name} is removed") for name in STATEFUL),
            (lambda it: it["Table"]["Properties"].update(TableName="assent"), "TableName"),
            (lambda it: it["ScanExecutionQueue"]["Properties"].update(FifoQueue=True), "FifoQueue"),
            (lambda it: indexes(it).extend([index("one"), index("two")]), "one index only, not one, two"),
            # A replaced index counts twice.
            (lambda it: indexes(it).__setitem__(0, index("other")), "one index only"),
            (lambda it: indexes(it)[0].update(Projection={"ProjectionType": "KEYS_ONLY"}), "can't be changed"),
            (lambda it: it["Table"].pop("DeletionPolicy"), "Table"),
        ],
    )
    def test_a_change_that_loses_data_or_exceeds_an_upgrade_is_found(self, change: Any, problem: str):
        (found,) = problems(change)
        assert problem in found

    @each(
        "change",
        [
            lambda it: None,
            lambda it: it.pop("BillingFunction"),
            lambda it: it["Table"]["Properties"].update(BillingMode="PROVISIONED"),
            lambda it: indexes(it).append(index("one")),
        ],
    )
    def test_any_other_change_passes(self, change: Any):
        assert problems(change) == []

    def test_a_new_parameter_without_a_default_is_found(self):
        after = {**COPYING, "Parameters": {**COPYING["Parameters"], "Size": {"Type": "Number"}}}
        assert "Size" in compare(COPYING, after, CREATE_ONLY.__getitem__)[0]


def test_nothing_conditional_is_left_in_the_template():
    assert "FrontDoor" not in DEFAULTS["Resources"]
    assert "Fn::If" not in str(COPYING["Resources"])
    assert "AWS::NoValue" not in str(COPYING["Resources"])
