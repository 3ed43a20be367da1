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


LOOPING = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Parameters:
  Key: {Type: String, Default: ""}
Mappings:
  Queues: {One: {Seconds: 1}, Two: {Seconds: 2}}
Conditions:
  HasKey: !Not [!Equals [!Ref Key, ""]]
Resources:
  Fn::ForEach::Queues:
    - Name
    - [One, Two]
    - ${Name}Queue:
        Type: AWS::SQS::Queue
        Properties:
          VisibilityTimeout: !FindInMap [Queues, !Ref Name, Seconds]
          KmsMasterKeyId: !If [HasKey, !Ref Key, !Ref AWS::NoValue]
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

    def test_a_loop_becomes_its_resources_and_leaves_references_and_conditions(self, tmp_path):
        path = tmp_path / "template.yaml"
        path.write_text(LOOPING)
        template = load_template(path)
        assert template["Resources"] == {
            f"{name}Queue": {
                "Type": "AWS::SQS::Queue",
                "Properties": {
                    "VisibilityTimeout": seconds,
                    "KmsMasterKeyId": {"Fn::If": ["HasKey", {"Ref": "Key"}, {"Ref": "AWS::NoValue"}]},
                },
            }
            for name, seconds in (("One", 1), ("Two", 2))
        }
        assert template["Conditions"] == {"HasKey": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Key"}, ""]}]}}


class TestStatefulPart:
    def test_the_stateful_part_keeps_resources_with_parameters_and_conditions(self, template):
        part = stateful_part(template)
        assert part.keys() == {"Parameters", "Conditions", "Resources"}
        assert part["Resources"].keys() == {"Table"}

    def test_the_stateful_part_of_the_real_template_contains_the_table(self):
        resources = stateful_part(load_template())["Resources"]
        assert resources["Table"]["Type"] == "AWS::DynamoDB::Table"
        assert {it["Type"] for it in resources.values()} <= set(STATEFUL_TYPES)
