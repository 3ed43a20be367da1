"""`assent webhook`: the organization's webhook endpoints."""

from typing import Annotated

import typer

from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Yes, confirm
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list, show_secret

app = Group("Webhook endpoints of the organization.")
Endpoint = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's ID.")]


@app.add("list")
def list_endpoints() -> None:
    """List the webhook endpoints."""
    with invocation().client() as client:
        show_list(
            client.webhook_endpoints.list(),
            [
                ("NAME", lambda it: it.name),
                ("URL", lambda it: it.url),
                ("EVENTS", lambda it: it.events),
                ("STATUS", lambda it: it.status),
                ("ID", lambda it: it.id),
            ],
            empty="There are no webhook endpoints.",
        )


@app.add("create")
def create(
    name: Annotated[str, typer.Argument(help="The endpoint's name.")],
    url: Annotated[str, typer.Argument(help="The https URL that receives the events.")],
    event: Annotated[list[str], typer.Option(help="An event to send; repeatable.")],
    dry_run: DryRun = False,
) -> None:
    """Create a webhook endpoint. Its secret is printed once, on standard output."""
    with invocation().client() as client:
        created = client.webhook_endpoints.create(name=name, url=url, events=event, dry_run=dry_run)
    done(created, f"{'Would create' if dry_run else 'Created'} the endpoint {name}: {created.id}")
    show_secret(created.secret, dry_run=dry_run)


@app.add("delete")
def delete(endpoint: Endpoint, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a webhook endpoint."""
    with invocation().client() as client:
        if not dry_run:
            confirm(f"Delete the endpoint {endpoint}?", yes=yes)
        deleted = client.webhook_endpoints.delete(endpoint, dry_run=dry_run)
        done(deleted, f"{'Would delete' if dry_run else 'Deleted'} {endpoint}.")


@app.add("deliveries")
def deliveries(endpoint: Endpoint, limit: Limit = DEFAULT_LIMIT) -> None:
    """List the deliveries to an endpoint, newest first."""
    with invocation().client() as client:
        show_list(
            client.webhook_endpoints.deliveries(endpoint),
            [
                ("EVENT", lambda it: it.event),
                ("STATUS", lambda it: it.status),
                ("ATTEMPTS", lambda it: it.attempts),
                ("CREATED", lambda it: it.created_at),
                ("ID", lambda it: it.event_id),
            ],
            limit=limit,
            empty="Nothing was sent to this endpoint.",
        )


@app.add("replay")
def replay(
    endpoint: Endpoint, event: Annotated[str, typer.Argument(help="The event's ID.")], dry_run: DryRun = False
) -> None:
    """Send an event to an endpoint again."""
    with invocation().client() as client:
        replayed = client.webhook_endpoints.replay(endpoint, event, dry_run=dry_run)
        done(replayed, f"{event} {'would be' if dry_run else 'is being'} sent again.")
