"""`assent audit-log`: who changed what."""

from typing import Annotated

import typer

from openassent_cli.commands.shared import DEFAULT_LIMIT, Group, Limit
from openassent_cli.durations import Duration
from openassent_cli.invocation import invocation
from openassent_cli.output import show_list

app = Group("The organization's audit log.")


@app.add("list")
def list_entries(
    actor: Annotated[str | None, typer.Option(help="Only changes by this user or key, by ID.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, such as project.created.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only changes of this resource, by ID.")] = None,
    since: Annotated[
        Duration | None, typer.Option(help="Only the last while, such as 24h or 7d.", parser=Duration)
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> None:
    """List changes, newest first. Needs the role admin or owner."""
    with invocation().client() as client:
        entries = client.audit_log.list(
            actor_id=actor,
            action=action,
            resource_id=resource,
            since=since.ago() if since else None,
        )
        show_list(
            entries,
            [
                ("WHEN", lambda it: it.created_at),
                ("ACTION", lambda it: it.action),
                ("RESOURCE", lambda it: it.resource.name or it.resource.id),
                ("ACTOR", lambda it: f"{it.actor.type} {it.actor.id}"),
                ("CHANGED", lambda it: [change.field for change in it.changes]),
            ],
            limit=limit,
            empty="Nothing was changed.",
        )
