"""`assent mcp`: the MCP server."""

from typing import Annotated

import typer

from openassent_cli.exits import Exit
from openassent_cli.invocation import invocation, note
from openassent_cli.problems import NotSignedIn, Problem


def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
) -> None:
    """Serve the API to an AI assistant, with the Model Context Protocol over standard input and output.

    Offers only tools that the credential's scopes allow. Without a credential, it offers the offline scan alone.
    """
    try:
        from openassent_cli.mcp_server import server  # noqa: PLC0415 - the package that it needs is optional
    except ModuleNotFoundError as error:
        if error.name not in {"mcp", "mcp_types"}:
            raise
        advice = "Install it with the extra `mcp`: pipx install 'assent[mcp]'"
        raise Problem("The MCP server isn't installed.", advice, Exit.USAGE) from None
    given = invocation()
    try:
        given.settings()
    except NotSignedIn:
        note("You aren't signed in, so only the offline scan is offered.")
        server(None, set(), read_only=True).run("stdio")
        return
    with given.client() as client:
        server(client, set(client.me.get().scopes), read_only=read_only).run("stdio")
