"""`assent-ops table`: restoring and checking the table.

A restore makes a new table, and gives that the settings that DynamoDB doesn't restore. It never deletes a table. It
takes from minutes to hours, so it is polled without a time limit. Every step can be repeated: an interrupted command
continues when it is run again.
"""

import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import typer

from controlplane.platform.core.errors import known
from controlplane.platform.table.table import table
from ops.arguments import new_group, parse_moment
from ops.output import Conflict, NotFound, Refused, Result
from ops.table_check import check
from ops.target import create_client

app = new_group("Restoring and checking the table.")

_POLL_SECONDS = 20
_TTL_ATTRIBUTE = "expiresAt"

type Pause = Callable[[float], None]


@app.command("restore")
def restore_table(
    target: Annotated[str, typer.Argument(metavar="NEW_TABLE", help="The name of the table to create.")],
    at: Annotated[
        datetime | None,
        typer.Option("--at", parser=parse_moment, metavar="TIME", help="Default: the latest time that is possible."),
    ] = None,
) -> Result:
    """Restore the table as it was at a time within the last 35 days, as a new table. Changes no other table.

    Waits until the new table is active, which can take hours, and turns on what DynamoDB doesn't restore: expiry,
    point-in-time recovery, and deletion protection. Run it again if it is interrupted. Then check the new table, and
    deploy its name as the parameter TableName.
    """
    done = restore(create_client("dynamodb"), table.name, target, at)
    return Result(done, f"Check it: assent-ops table check --table {target}. Then deploy TableName={target}.")


@app.command("check")
def check_table() -> Result:
    """Compare counters with what they count, and find items whose counterpart is missing. Changes nothing.

    Reads the whole table. Concurrent changes of the table can look like contradictions: check again.
    """
    found = check()
    if found["contradictions"]:
        raise Refused(
            f"{found['contradictions']} contradictions in {found['items']} items. " + "; ".join(found["first"])
        )
    return Result({name: found[name] for name in ("items", "organizations", "contradictions")})


def restore(
    client: Any, source: str, target: str, moment: datetime | None, pause: Pause = time.sleep
) -> dict[str, Any]:
    """Restores `source` as it was at that moment, or as late as possible, and returns a description of `target`.

    client: of DynamoDB. Raises Conflict if `target` exists and isn't a restore of `source`, NotFound without `source`.
    """
    described = known(_describe(client, source), NotFound(f"There is no table {source} in this region and account."))
    existing = _describe(client, target)
    if existing is None:
        when = {"RestoreDateTime": moment} if moment else {"UseLatestRestorableTime": True}
        client.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, **when, **_encryption(described)
        )
    elif existing.get("RestoreSummary", {}).get("SourceTableArn") != described["TableArn"]:
        raise Conflict(f"The table {target} exists, and isn't a restore of {source}. Choose another name.")
    restored = _wait(client, target, pause)
    _complete(client, target, restored, pause)
    # MiniStack doesn't say when, except in a local run.
    restored_to = restored.get("RestoreSummary", {}).get("RestoreDateTime")
    return {
        "table": target,
        "source": source,
        "restoredTo": restored_to.isoformat() if restored_to else None,
        "approximateItems": restored.get("ItemCount", 0),
    }


def _describe(client: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.describe_table(TableName=name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        return None
    return found


def _encryption(described: dict[str, Any]) -> dict[str, Any]:
    """Returns the source's key as an option of the restore, whose default is a key that DynamoDB owns."""
    encryption = described.get("SSEDescription", {})
    if "KMSMasterKeyArn" not in encryption:
        return {}
    key = encryption["KMSMasterKeyArn"]
    return {"SSESpecificationOverride": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}}


def _wait(client: Any, name: str, pause: Pause) -> dict[str, Any]:
    """Returns the table's description once it and all of its indexes are active."""
    waited = 0
    while True:
        described = _describe(client, name)
        if described is not None:
            parts = [
                described,
                *({"TableStatus": it["IndexStatus"]} for it in described.get("GlobalSecondaryIndexes", [])),
            ]
            if all(part["TableStatus"] == "ACTIVE" for part in parts):
                return described
        print(f"Restoring {name}: {waited // 60} min", file=sys.stderr)
        pause(_POLL_SECONDS)
        waited += _POLL_SECONDS


def _complete(client: Any, name: str, described: dict[str, Any], pause: Pause) -> None:
    """Turns on settings that a restore omits: expiry of items, point-in-time recovery, deletion protection."""
    status = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"]
    if status == "DISABLED":
        specification = {"Enabled": True, "AttributeName": _TTL_ATTRIBUTE}
        client.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
    while not _enable_recovery(client, name):
        pause(_POLL_SECONDS)
    if not described.get("DeletionProtectionEnabled"):
        client.update_table(TableName=name, DeletionProtectionEnabled=True)


def _enable_recovery(client: Any, name: str) -> bool:
    """Enables point-in-time recovery. Returns False if DynamoDB isn't ready for that, as shortly after a restore."""
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    if backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") == "ENABLED":
        return True
    try:
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
    except client.exceptions.ContinuousBackupsUnavailableException:
        return False
    return True
