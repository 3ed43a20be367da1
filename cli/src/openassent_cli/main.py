"""The program and its commands."""

from typing import Annotated

import typer

from openassent import __version__
from openassent_cli.commands import (
    account,
    inbox,
    keys,
    members,
    organizations,
    projects,
    repositories,
    scans,
    vendors,
    websites,
)
from openassent_cli.commands import profiles as profile_commands
from openassent_cli.commands.api import api
from openassent_cli.commands.ci import ci
from openassent_cli.commands.fix import fix
from openassent_cli.commands.mcp import mcp
from openassent_cli.invocation import command

app = typer.Typer(
    name="assent",
    help="Consent on your websites: projects, scans, and findings, from the command line.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"assent {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and exit.")


@app.callback()
def root(version: Annotated[bool, _VERSION] = False) -> None:
    """Handles the options of the program itself."""


account.register(app)
for _function in (fix, ci, api, mcp):
    app.command()(command(_function))
for _name, _module in {
    "profile": profile_commands,
    "org": organizations,
    "project": projects,
    "website": websites,
    "vendor": vendors,
    "repo": repositories,
    "scan": scans,
    "inbox": inbox,
    "key": keys,
    "member": members,
}.items():
    app.add_typer(_module.app, name=_name)
