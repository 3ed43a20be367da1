"""`assent org`: organizations."""

from typing import Annotated

import typer

from openassent_cli import profiles
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit
from openassent_cli.finding import organization_id
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list

app = Group()


@app.add("list")
def list_organizations(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the organizations that you are a member of."""
    with invocation().client() as client:
        show_list(
            client.organizations.list(),
            {"SLUG": "slug", "NAME": "name", "ROLE": "role", "ID": "id"},
            limit=limit,
            empty="You aren't a member of an organization. Create one with `assent org create`.",
        )


@app.add("create")
def create(
    name: Annotated[str, typer.Argument(help="The organization's name.")],
    slug: Annotated[str | None, typer.Option(help="Its slug. Derived from the name by default.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Create an organization on the free plan. You become its owner."""
    with invocation().client() as client:
        created = client.organizations.create(name=name, slug=slug, dry_run=dry_run)
        done(created, f"{'Would create' if dry_run else 'Created'} {created.name} ({created.slug}).")


@app.add("use")
def use(organization: Annotated[str, typer.Argument(help="The organization's ID or slug.")]) -> None:
    """Act in an organization from now on, with this profile."""
    given = invocation()
    with given.client() as client:
        chosen = client.organizations.get(organization_id(client, organization))
    profiles.choose_organization(given.profile_name, chosen.id)
    done(chosen, f"Commands act in {chosen.name} now.")
