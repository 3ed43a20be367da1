"""`assent member`: the members of the organization."""

from typing import Annotated

import typer

from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Yes, confirm
from openassent_cli.finding import member_of
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list

app = Group()
Member = Annotated[str, typer.Argument(metavar="MEMBER", help="The member's ID or email address.")]


@app.add("list")
def list_members(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the members."""
    with invocation().client() as client:
        show_list(
            client.members.list(),
            {"NAME": "user.name", "EMAIL": "user.email", "ROLE": "role", "JOINED": "joined_at", "ID": "id"},
            limit=limit,
            empty="There are no members.",
        )


@app.add("invite")
def invite(
    email: Annotated[str, typer.Argument(help="The person's email address.")],
    role: Annotated[str, typer.Option(help="member, admin, or owner.")] = "member",
    dry_run: DryRun = False,
) -> None:
    """Invite a person, by email."""
    with invocation().client() as client:
        invitation = client.invitations.create(email=email, role=role, dry_run=dry_run)
        done(invitation, f"{'Would invite' if dry_run else 'Invited'} {email} as {role}.")


@app.add("set-role")
def set_role(
    member: Member, role: Annotated[str, typer.Argument(help="member, admin, or owner.")], dry_run: DryRun = False
) -> None:
    """Change a member's role."""
    with invocation().client() as client:
        changed = client.members.update(member_of(client, member).id, role=role, dry_run=dry_run)
        done(changed, f"{member} {'would be' if dry_run else 'is now'} {role}.")


@app.add("remove")
def remove(member: Member, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove a member from the organization."""
    with invocation().client() as client:
        found = member_of(client, member).id
        if not dry_run:
            confirm(f"Remove {member} from the organization?", yes=yes)
        done(client.members.delete(found, dry_run=dry_run), f"{'Would remove' if dry_run else 'Removed'} {member}.")
