"""`assent-ops github`: the GitHub App that scans use to read code and that creates issues."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated, Any

import typer

from ops.command import command
from ops.commands.repositories import parse_full_name
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="The GitHub App.")


@command(app, "check")
def check_app(
    full_name: Annotated[
        str | None,
        typer.Argument(
            metavar="OWNER/NAME", parser=parse_full_name, help="A repository that the App must have access to."
        ),
    ] = None,
) -> Result:
    """Check that the App's id and private key match, and that it has the required permissions and webhook events.

    With a repository, also checks that the App is installed there and that the owner granted the permissions.
    """
    from ops import code_host

    found = code_host.get_app()
    document: dict[str, Any] = {
        "appId": found.app_id,
        "name": found.name,
        "url": found.html_url,
        "permissions": [f"{name} {level}" for name, level in sorted(found.permissions.items())],
        "events": sorted(found.events),
    }
    if full_name is None:
        return Result(document)
    owner, _, name = full_name.partition("/")
    code_host.check_permissions(owner, name)
    installed = code_host.find_repository(owner, name)
    repository = installed.repository
    return Result(
        document
        | {
            "installation": installed.installation_id,
            "repository": f"{repository.owner}/{repository.name}",
            "defaultBranch": repository.default_branch,
            "archived": repository.is_archived,
            "issues": repository.has_issues,
        }
    )
