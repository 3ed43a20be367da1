"""`assent-ops table`: restoring and checking the table."""

from datetime import datetime
from typing import Annotated

import typer

from controlplane.platform.table.table import table
from ops.arguments import new_group, parse_moment
from ops.errors import Refused
from ops.output import Result
from ops.restore import restore
from ops.table_check import check
from ops.target import connected_client

app = new_group("Restoring and checking the table.")


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
    done = restore(connected_client("dynamodb"), table.name, target, at)
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
