"""The restore of docs/operations/repair.md as a drill: the deployed stack's table is restored and checked."""

import json
import sys
from typing import Any

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.table import keys
from controlplane.platform.table.legs import encode_item
from tests.e2e import deployment
from tests.e2e.deployment import REGION, CommandFailed, Stack, run
from tests.e2e.external import ExternalServices
from tests.e2e.people import Caller, Operator
from tests.support.world import Company, World

RESTORED = "assent-restored"


@pytest.fixture(scope="module")
def older_key(world: World, company: Company) -> str:
    """Returns an API key from before the restore, which was never used."""
    return world.key(company)


@pytest.fixture(scope="module")
def restored(operator: Operator, project: dict[str, Any], older_key: str) -> dict[str, Any]:
    """Restores the table as it is once the project and the key exist."""
    found: dict[str, Any] = operator("table", "restore", RESTORED)
    return found


def test_the_restored_table_is_another_one_with_the_settings_that_a_restore_leaves_out(
    stack: Stack, restored: dict[str, Any]
):
    client = stack.client("dynamodb")
    assert (restored["table"], restored["source"]) == (RESTORED, stack.outputs["TableName"])
    expiry = client.describe_time_to_live(TableName=restored["table"])["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", "expiresAt")
    backups = client.describe_continuous_backups(TableName=restored["table"])["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    assert client.describe_table(TableName=restored["table"])["Table"]["DeletionProtectionEnabled"] is True


def test_the_restored_table_passes_the_check(stack: Stack, restored: dict[str, Any]):
    where = ("--table", restored["table"], "--region", REGION, "--endpoint-url", stack.endpoint_url, "--json")
    told = run(
        *(sys.executable, "-m", "ops", "table", "check", *where),
        SERVICE_BRAND="assent",
        PYTHONPATH="functions:layers/shared:.",
    )
    checked = json.loads(told)
    assert checked["contradictions"] == 0
    assert checked["organizations"] > 0


def test_a_table_that_exists_is_never_restored_into(operator: Operator, restored: dict[str, Any]):
    # MiniStack doesn't tell that it is a restore, so it is an unrelated table.
    with pytest.raises(CommandFailed, match="isn't a restore of"):
        operator("table", "restore", restored["table"])


@pytest.fixture(scope="module")
def adopting(stack: Stack, external: ExternalServices, restored: dict[str, Any]) -> None:
    """Has the stack use the restored table, and never again its own: no other test uses the stack after this one."""
    parameters = {**external.parameters, "TableName": restored["table"], "Release": "adopting"}
    deployment.deploy(stack.endpoint_url, parameters, deployment.PACKED)


@pytest.mark.usefixtures("adopting")
def test_the_stack_adopts_the_restored_table(stack: Stack, older_key: str, restored: dict[str, Any]):
    """An older key authenticates, which counts the request in the restored table only."""
    secret = encode_item(keys.key_secret(tokens.digest(older_key))._asdict())

    def stored(table: str) -> dict[str, Any]:
        item: dict[str, Any] = stack.client("dynamodb").get_item(TableName=table, Key=secret)["Item"]
        return item

    before = stored(restored["source"])
    assert stored(restored["table"]) == before
    Caller(stack, older_key)(200, "GET", "/v1/projects")
    assert stored(restored["table"])["hits"] != before["hits"]
    assert stored(restored["source"]) == before
