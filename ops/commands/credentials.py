"""`assent-ops credential`: the index of users' sessions, devices, and tokens."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.command import command
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="The index of users' sessions, devices, and tokens.")


@app.callback()
def _group() -> None:
    """Keeps `index` a subcommand while it is the only command."""


@command(app, "index")
def index_credentials(
    again: Annotated[
        bool, typer.Option("--again", help="Start over, for instance after a rollback to an older release.")
    ] = False,
) -> Result:
    """Index credentials that an older release created and that haven't been used since. Revokes nothing.

    Run it once, after every function runs the release that introduced the index. It reads the whole table. If it is
    interrupted, the next run resumes. After it has completed, `user revoke` and `user delete` no longer scan the table
    for credentials.
    """
    from ops import credential_backfill

    return Result(credential_backfill.run(again=again))
