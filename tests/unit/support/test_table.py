"""The tests' table matches the template's."""

import json
from pathlib import Path

import pytest

from tests.support.engines import Engine
from tests.support.table import create_table, table_properties

TEMPLATE = """
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub "${AWS::StackName}-table"
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: sk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: sk, KeyType: RANGE}]
      TimeToLiveSpecification: {AttributeName: expiresAt, Enabled: true}
      DeletionProtectionEnabled: !If [IsProduction, true, false]
"""


def test_only_the_properties_of_a_table_are_read(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(TEMPLATE)
    assert set(table_properties(template)) == {"BillingMode", "AttributeDefinitions", "KeySchema"}


def test_the_products_table_needs_no_deployment_values() -> None:
    written = json.dumps(table_properties())
    assert '"Ref"' not in written
    assert '"Fn::' not in written


@pytest.mark.races
def test_the_table_is_created_on_an_engine_with_its_keys(engine: Engine) -> None:
    client = engine.client
    create_table(client, "made-here")
    described = client.describe_table(TableName="made-here")["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert [(key["AttributeName"], key["KeyType"]) for key in described["KeySchema"]] == [
        ("pk", "HASH"),
        ("sk", "RANGE"),
    ]
