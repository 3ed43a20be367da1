"""`assent mcp`: the MCP server."""

from typing import Annotated

import typer

from openassent_cli.commands.shared import Group
from openassent_cli.invocation import invocation, note
from openassent_cli.problems import NotSignedIn

app = Group()


@app.add("mcp")
def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
) -> None:
    """Serve the API to an AI assistant, with the Model Context Protocol over standard input and output.

    Offers only tools that the credential's scopes allow. Without a credential, it offers the offline scan alone.
    """
    from openassent_cli.mcp_server import serve, server  # noqa: PLC0415 - needs the extra `mcp`

    given = invocation()
    try:
        given.settings()
    except NotSignedIn:
        note("You aren't signed in, so only the offline scan is offered.")
        serve(server(None, set(), read_only=True))
        return
    with given.client() as client:
        serve(server(client, set(client.me.get().scopes), read_only=read_only))
