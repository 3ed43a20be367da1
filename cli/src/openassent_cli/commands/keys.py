"""`assent key`: the organization's API keys."""

from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Duration, Group, Limit, Yes, confirm
from openassent_cli.finding import found_by_name, project_id
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list, show_secret

if TYPE_CHECKING:
    from openassent import Assent

app = Group()
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key's ID or name.")]


@app.add("list")
def list_keys(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the API keys."""
    with invocation().client() as client:
        show_list(
            client.api_keys.list(),
            {
                "NAME": "name",
                "STARTS WITH": "start",
                "SCOPES": "scopes",
                "LAST USED": lambda it: it.last_used_at or "never",
                "EXPIRES": lambda it: it.expires_at or "never",
                "ID": "key_id",
            },
            limit=limit,
            empty="There are no API keys. Create one with `assent key create`.",
        )


@app.add("create", "assent key create deploy --scope projects.read --expires-in 90d")
def create(
    *,
    name: Annotated[str, typer.Argument(help="The key's name.")],
    scope: Annotated[list[str] | None, typer.Option(help="A scope; repeatable. All of a key's by default.")] = None,
    project: Annotated[list[str] | None, typer.Option(help="A project that it is limited to; repeatable.")] = None,
    allow_ip: Annotated[
        list[str] | None, typer.Option(help="An address or network that may use it; repeatable.")
    ] = None,
    expires_in: Annotated[Duration | None, typer.Option(help="When it expires, such as 90d.", parser=Duration)] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Create an API key. Its secret is printed once, on standard output."""
    with invocation().client() as client:
        created = client.api_keys.create(
            name=name,
            scopes=scope or None,
            project_ids=[project_id(client, it) for it in project] if project else None,
            allowed_ips=allow_ip or None,
            expires_at=expires_in.from_now() if expires_in else None,
            description=description,
            dry_run=dry_run,
        )
    done(created, f"{'Would create' if dry_run else 'Created'} the key {name}.")
    show_secret(created.key, dry_run=dry_run)


@app.add("roll")
def roll(
    key: Key,
    grace_period: Annotated[
        Duration | None, typer.Option(help="How long the old secret works, 7d at most.", parser=Duration)
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Replace the secret of an API key. The new one is printed once, on standard output."""
    with invocation().client() as client:
        found = _key_id(client, key)
        if not dry_run and grace_period is None:
            confirm(f"Replace the secret of {key} at once? Programs that use it are refused then.", yes=yes)
        seconds = grace_period.seconds if grace_period else None
        rolled = client.api_keys.roll(found, grace_period_seconds=seconds, dry_run=dry_run)
    done(rolled, f"{'Would replace' if dry_run else 'Replaced'} the secret of {rolled.name}.")
    show_secret(rolled.key, dry_run=dry_run)


@app.add("delete")
def delete(key: Key, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete an API key. Programs that use it are refused at once.

    With the ID of a key that was rolled, only its old secret ends, and the new key goes on working.
    """
    with invocation().client() as client:
        found = _key_id(client, key)
        if not dry_run:
            confirm(f"Delete the key {key}?", yes=yes)
        deleted = client.api_keys.delete(found, dry_run=dry_run)
        done(deleted, f"{'Would delete' if dry_run else 'Deleted'} the key {key}.")


def _key_id(client: "Assent", wanted: str) -> str:
    if wanted.startswith("key_"):
        return wanted
    return str(found_by_name("key", wanted, client.api_keys.list(), "key_id", "name").key_id)
