"""`assent-ops table`: restoring, checking, and migrating the table."""
# ruff: noqa: PLC0415 (see ops.command.command)

from datetime import datetime
from typing import Annotated

import typer

from ops.command import command
from ops.errors import Refused
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="Restoring, checking, and migrating the table.")


def _parse_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter("Write the time like this: 2026-03-04T05:06:07Z.")
    return moment


@command(app, "restore")
def restore_table(
    target: Annotated[str, typer.Argument(metavar="NEW_TABLE", help="The name of the table to create.")],
    at: Annotated[
        datetime | None,
        typer.Option("--at", parser=_parse_moment, metavar="TIME", help="Default: the latest time that is possible."),
    ] = None,
) -> Result:
    """Restore the table as it was at a time within the last 35 days, as a new table. Changes no other table.

    Waits until the new table is active, which can take hours, and turns on what DynamoDB doesn't restore: expiry,
    point-in-time recovery, and deletion protection. Run it again if it is interrupted. Then check the new table, and
    deploy its name as the parameter TableName.
    """
    from controlplane.store.table import table
    from ops.restore import restore
    from ops.target import connected_client

    done = restore(connected_client("dynamodb"), table.name, target, at)
    return Result(done, f"Check it: assent-ops table check --table {target}. Then deploy TableName={target}.")


@command(app, "check")
def check_table() -> Result:
    """Compare counters with what they count, and find items whose counterpart is missing. Changes nothing.

    Also counts the items of each schema version, with 0 for those that have none. Reads the whole table. Concurrent
    changes of the table can look like contradictions: check again.
    """
    from ops.table_check import check

    found = check()
    if found["contradictions"]:
        raise Refused(
            f"{found['contradictions']} contradictions in {found['items']} items. " + "; ".join(found["first"])
        )
    return Result({name: found[name] for name in ("items", "versions", "organizations", "contradictions")})


@command(app, "migrate")
def migrate_table(
    again: Annotated[
        bool, typer.Option("--again", help="Start over, for instance after a rollback to an older release.")
    ] = False,
) -> Result:
    """Complete what older releases wrote. Run it after every upgrade, as soon as every function runs the new release.

    It runs each migration that wasn't completed before, and does nothing if there isn't one. Each reads the table. If
    it is interrupted, the next run resumes.
    """
    from ops import migrations

    return Result(migrations.run(again=again))
