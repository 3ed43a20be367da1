"""`assent-ops github`: the GitHub App that scans use to read code and that creates issues."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated, Any

import typer

from ops.command import command
from ops.commands.repositories import parse_full_name
from ops.output import Shown

app = typer.Typer(no_args_is_help=True, help="The GitHub App.")


@command(app, "check")
def check_app(
    full_name: Annotated[
        str | None,
        typer.Argument(metavar="OWNER/NAME", parser=parse_full_name, help="A repository that it shall see."),
    ] = None,
) -> Shown:
    """Check that the App's id and private key match, and that the App has the required permissions.

    With a repository, also checks that the App is installed there and that the owner granted the permissions.
    """
    from ops import code_host

    found = code_host.get_app()
    document: dict[str, Any] = {
        "appId": found.app_id,
        "name": found.name,
        "url": found.html_url,
        "permissions": [f"{name} {level}" for name, level in sorted(found.permissions.items())],
    }
    if full_name is None:
        return Shown(document)
    owner, _, name = full_name.partition("/")
    seen = code_host.look_at(owner, name)
    code_host.check_issues(seen)
    repository = seen.repository
    return Shown(
        document
        | {
            "installation": seen.installation_id,
            "repository": f"{repository.owner}/{repository.name}",
            "defaultBranch": repository.default_branch,
            "archived": repository.is_archived,
            "issues": repository.has_issues,
        }
    )
