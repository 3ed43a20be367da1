"""A local run deploys only the template's stateful resources."""

import pytest

from local.template import STATEFUL_TYPES, load_template, stateful_part

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Protection: {Type: String, Default: "true"}
Conditions:
  Protected: !Equals [!Ref Protection, "true"]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      DeletionProtectionEnabled: !If [Protected, true, false]
      Arn: !GetAtt Other.Arn
  Function:
    Type: AWS::Serverless::Function
"""


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return load_template(path)


class TestLoadTemplate:
    def test_short_tags_are_expanded(self, template):
        assert template["Resources"]["Table"]["Properties"] == {
            "DeletionProtectionEnabled": {"Fn::If": ["Protected", True, False]},
            "Arn": {"Fn::GetAtt": ["Other", "Arn"]},
        }

    def test_includes_files_next_to_the_template(self, tmp_path):
        (tmp_path / "body.yaml").write_text("Fn::Sub: ${AWS::StackName}")
        include = "{Fn::Transform: {Name: AWS::Include, Parameters: {Location: body.yaml}}}"
        (tmp_path / "template.yaml").write_text(f"Resources: {{Board: {{Properties: {{Body: {include}}}}}}}")
        board = load_template(tmp_path / "template.yaml")["Resources"]["Board"]
        assert board["Properties"] == {"Body": {"Fn::Sub": "${AWS::StackName}"}}


class TestStatefulPart:
    def test_the_stateful_part_keeps_resources_with_parameters_and_conditions(self, template):
        part = stateful_part(template)
        assert part.keys() == {"Parameters", "Conditions", "Resources"}
        assert part["Resources"].keys() == {"Table"}

    def test_the_stateful_part_of_the_real_template_contains_the_table(self):
        resources = stateful_part(load_template())["Resources"]
        assert resources["Table"]["Type"] == "AWS::DynamoDB::Table"
        assert {it["Type"] for it in resources.values()} <= set(STATEFUL_TYPES)
