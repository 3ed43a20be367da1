"""`assent invite`: invitations to the organization."""

from typing import Annotated

import typer

from openassent import Assent
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit
from openassent_cli.finding import found_by_name
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list

app = Group("Invitations to the organization.")
Invitation = Annotated[str, typer.Argument(metavar="INVITATION", help="The invitation's ID or email address.")]


@app.add("list")
def list_invitations(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the pending invitations."""
    with invocation().client() as client:
        show_list(
            client.invitations.list(),
            [
                ("EMAIL", lambda it: it.email),
                ("ROLE", lambda it: it.role),
                ("EXPIRES", lambda it: it.expires_at),
                ("ID", lambda it: it.id),
            ],
            limit=limit,
            empty="No invitations are pending.",
        )


@app.add("create")
def create(
    email: Annotated[str, typer.Argument(help="The person's email address.")],
    role: Annotated[str, typer.Option(help="member, admin, or owner.")] = "member",
    dry_run: DryRun = False,
) -> None:
    """Invite a person."""
    with invocation().client() as client:
        created = client.invitations.create(email=email, role=role, dry_run=dry_run)
        done(created, f"{'Would invite' if dry_run else 'Invited'} {email} as {role}.")


@app.add("resend")
def resend(invitation: Invitation, dry_run: DryRun = False) -> None:
    """Renew an invitation, and send its email again."""
    with invocation().client() as client:
        resent = client.invitations.resend(_invitation_id(client, invitation), dry_run=dry_run)
        done(resent, f"{'Would renew' if dry_run else 'Renewed'} the invitation of {resent.email}.")


@app.add("cancel")
def cancel(invitation: Invitation, dry_run: DryRun = False) -> None:
    """Cancel an invitation."""
    with invocation().client() as client:
        canceled = client.invitations.delete(_invitation_id(client, invitation), dry_run=dry_run)
        done(canceled, f"{'Would cancel' if dry_run else 'Canceled'} the invitation of {invitation}.")


def _invitation_id(client: Assent, wanted: str) -> str:
    if wanted.startswith("inv_"):
        return wanted
    return str(found_by_name("invite", wanted, client.invitations.list(), "id", "email").id)
