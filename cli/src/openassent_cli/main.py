"""The program and its commands."""

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from openassent_cli.commands import account
from openassent_cli.commands.api import api
from openassent_cli.commands.audit import audit
from openassent_cli.commands.ci import ci
from openassent_cli.commands.fix import fix
from openassent_cli.commands.mcp import mcp
from openassent_cli.invocation import command

# The module and the explanation of each group of commands.
_GROUPS = {
    "profile": ("profiles", "Profiles: several services or accounts side by side."),
    "org": ("organizations", "Organizations."),
    "project": ("projects", "Projects and their consent instances."),
    "website": ("websites", "The websites of a project."),
    "vendor": ("vendors", "Vendors that were seen on a project."),
    "repo": ("repositories", "Connected repositories. Connect them on the dashboard."),
    "scan": ("scans", "Code-audit scans."),
    "inbox": ("inbox", "The inbox: findings of scans, advisories, and the running websites."),
    "key": ("keys", "API keys of the organization."),
    "member": ("members", "Members of the organization."),
}


def _group_of(module: str) -> type[TyperGroup]:
    """Returns the group whose commands are in a module, which is imported when one of them is needed."""

    class Group(TyperGroup):
        @property
        def commands(self) -> dict[str, Any]:
            return _commands_of(module)

        @commands.setter
        def commands(self, given: object) -> None: ...

    return Group


@cache
def _commands_of(module: str) -> dict[str, Any]:
    loaded = import_module(f"openassent_cli.commands.{module}")
    return dict(get_group(loaded.app).commands)


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
        from openassent import __version__  # noqa: PLC0415 (see `extras`)

        typer.echo(f"assent {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and exit.")


@app.callback()
def root(version: Annotated[bool, _VERSION] = False) -> None:
    """Handles the options of the program itself."""


account.register(app)
for _function in (fix, audit, ci, api, mcp):
    app.command()(command(_function))
for _name, (_module, _help) in _GROUPS.items():
    app.add_typer(typer.Typer(cls=_group_of(_module), help=_help, no_args_is_help=True), name=_name)
