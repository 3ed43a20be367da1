"""A local run deploys only the template's stateful resources."""

from local.template import STATEFUL_TYPES, load_template, stateful_part

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
          Arn: !GetAtt Function.Arn
  Function:
    Type: AWS::Serverless::Function
"""


def test_short_tags_and_loops_are_expanded_and_only_the_stateful_part_is_kept(tmp_path):
    path = tmp_path / "template.yaml"
    path.write_text(LOOPING)
    queues = {
        f"{name}Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "VisibilityTimeout": seconds,
                "KmsMasterKeyId": {"Fn::If": ["HasKey", {"Ref": "Key"}, {"Ref": "AWS::NoValue"}]},
                "Arn": {"Fn::GetAtt": ["Function", "Arn"]},
            },
        }
        for name, seconds in (("One", 1), ("Two", 2))
    }
    template = load_template(path)
    assert template["Resources"] == {**queues, "Function": {"Type": "AWS::Serverless::Function"}}
    assert template["Conditions"] == {"HasKey": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Key"}, ""]}]}}
    part = stateful_part(template)
    assert part.keys() == {"Parameters", "Mappings", "Conditions", "Resources"}
    assert part["Resources"] == queues


def test_the_stateful_part_of_the_real_template_contains_the_table():
    resources = stateful_part(load_template())["Resources"]
    assert resources["Table"]["Type"] == "AWS::DynamoDB::Table"
    assert {it["Type"] for it in resources.values()} <= set(STATEFUL_TYPES)
