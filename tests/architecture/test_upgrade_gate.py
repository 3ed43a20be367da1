"""The upgrade gate finds what would replace data, and conditions of the template are decided as CloudFormation does."""

import copy
from typing import Any

import pytest

from local.template import load_template
from scripts.conditions import Undecided, resolve
from scripts.upgrade_gate import STATEFUL_TYPES, compare
from tests.support.each import each

# Excerpts of AWS's schemas.
CREATE_ONLY = {
    "AWS::Backup::BackupVault": {"BackupVaultName", "EncryptionKeyArn"},
    "AWS::Cognito::UserPool": set[str](),
    "AWS::DynamoDB::Table": {"TableName", "ImportSourceSpecification", "KeySchema"},
    "AWS::Logs::LogGroup": {"LogGroupName"},
    "AWS::SecretsManager::Secret": {"Name"},
    "AWS::SQS::Queue": {"FifoQueue", "QueueName"},
}
DEFAULTS = resolve(load_template(), {"BackupCopyVaultArn": "arn:aws:backup:eu-west-1:210987654321:backup-vault:assent"})

TEMPLATE: dict[str, Any] = {
    "Parameters": {"Key": {"Default": ""}, "Style": {"Default": "slow"}},
    "Mappings": {"Styles": {"slow": {"IsGradual": "true"}, "fast": {"IsGradual": "false"}}},
    "Conditions": {
        "HasKey": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Key"}, ""]}]},
        "IsGradual": {"Fn::Equals": [{"Fn::FindInMap": ["Styles", {"Ref": "Style"}, "IsGradual"]}, "true"]},
        "Both": {"Fn::And": [{"Condition": "HasKey"}, {"Condition": "IsGradual"}]},
        "Either": {"Fn::Or": [{"Condition": "HasKey"}, {"Condition": "IsGradual"}]},
    },
    "Resources": {
        "Topic": {
            "Type": "T",
            "Properties": {"Key": {"Fn::If": ["HasKey", {"Ref": "Key"}, {"Ref": "AWS::NoValue"}]}},
        },
        "Alarm": {"Type": "A", "Condition": "Either", "Properties": {"List": [{"Fn::If": ["Both", 1, 2]}]}},
        "Extra": {"Type": "E", "Condition": "Both"},
    },
}


def problems(change: Any) -> list[str]:
    """Returns what the gate finds after a change of the resolved template's resources."""
    after = copy.deepcopy(DEFAULTS)
    change(after["Resources"])
    return compare(DEFAULTS, after, CREATE_ONLY.__getitem__)


def index(name: str) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}]}


class TestGate:
    def test_an_unchanged_template_passes(self):
        assert problems(lambda resources: None) == []

    def test_the_template_has_every_stateful_type(self):
        assert {it["Type"] for it in DEFAULTS["Resources"].values()} >= {*STATEFUL_TYPES}

    @each("name", ["Table", "UserPool", "SigningSecret", "ScanExecutionQueue"])
    def test_a_removed_resource_with_data_is_found(self, name: str):
        (problem,) = problems(lambda resources: resources.pop(name))
        assert problem.startswith(f"{name} is removed")

    def test_a_removed_function_passes(self):
        assert problems(lambda resources: resources.pop("BillingFunction")) == []

    def test_a_replacement_is_found(self):
        (problem,) = problems(lambda resources: resources["Table"]["Properties"].update(TableName="assent"))
        assert "TableName" in problem
        (problem,) = problems(lambda resources: resources["ScanExecutionQueue"]["Properties"].update(FifoQueue=True))
        assert "FifoQueue" in problem

    def test_a_change_in_place_passes(self):
        assert problems(lambda resources: resources["Table"]["Properties"].update(BillingMode="PROVISIONED")) == []

    def test_one_new_index_passes_and_two_are_found(self):
        def add(*names: str) -> Any:
            def change(resources: dict[str, Any]) -> None:
                resources["Table"]["Properties"]["GlobalSecondaryIndexes"] += [index(name) for name in names]

            return change

        assert problems(add("one")) == []
        (problem,) = problems(add("one", "two"))
        assert "one index only, not one, two" in problem

    def test_a_replaced_index_counts_twice_and_a_changed_one_is_found(self):
        def replace(resources: dict[str, Any]) -> None:
            resources["Table"]["Properties"]["GlobalSecondaryIndexes"][0] = index("other")

        def change(resources: dict[str, Any]) -> None:
            resources["Table"]["Properties"]["GlobalSecondaryIndexes"][0]["Projection"] = {
                "ProjectionType": "KEYS_ONLY"
            }

        assert "one index only" in problems(replace)[0]
        assert "can't be changed" in problems(change)[0]

    def test_a_resource_that_is_no_longer_retained_is_found(self):
        assert len(problems(lambda resources: resources["Table"].pop("DeletionPolicy"))) == 1

    def test_a_new_parameter_without_a_default_is_found(self):
        after = {**DEFAULTS, "Parameters": {**DEFAULTS["Parameters"], "Size": {"Type": "Number"}}}
        assert "Size" in compare(DEFAULTS, after, CREATE_ONLY.__getitem__)[0]


class TestConditions:
    def test_conditions_are_decided_with_defaults(self):
        assert resolve(TEMPLATE, {})["Resources"] == {
            "Topic": {"Type": "T", "Properties": {}},
            "Alarm": {"Type": "A", "Properties": {"List": [2]}},
        }

    def test_conditions_are_decided_with_parameters(self):
        resources = resolve(TEMPLATE, {"Key": "arn"})["Resources"]
        assert resources["Topic"]["Properties"] == {"Key": {"Ref": "Key"}}
        assert resources["Alarm"]["Properties"] == {"List": [1]}
        assert "Extra" in resources
        assert "Alarm" not in resolve(TEMPLATE, {"Style": "fast"})["Resources"]

    def test_an_unknown_function_in_a_condition_is_an_error(self):
        by_region = {"Fn::Equals": [{"Ref": "AWS::Region"}, ""]}
        template = {**TEMPLATE, "Conditions": {**TEMPLATE["Conditions"], "Either": by_region}}
        with pytest.raises(Undecided):
            resolve(template, {})

    def test_nothing_conditional_is_left_in_the_template(self):
        assert "Fn::If" not in str(DEFAULTS["Resources"])
        assert "AWS::NoValue" not in str(DEFAULTS["Resources"])
