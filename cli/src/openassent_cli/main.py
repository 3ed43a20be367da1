"""The program and its commands."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from openassent_cli.help import PlainGroup
from openassent_cli.invocation import Invocation, begin, shared_options

# The module and the summary of each command and group, by section of the help. Modules are imported when a command of
# theirs is needed.
SECTIONS = {
    "Scan this machine": {
        "scan": ("scans", "Scan a folder, or use the scans of the service"),
        "audit": ("audit", "Visit a website, and list what it loads without consent"),
        "fix": ("fix", "Show or make the changes that fix findings in a folder"),
        "ci": ("ci", "Fail a pipeline whose commit has new findings"),
    },
    "Work with the service": {
        "inbox": ("inbox", "Decide about findings"),
        "project": ("projects", "Manage projects"),
        "website": ("websites", "Manage the websites of a project"),
        "vendor": ("vendors", "Decide about the vendors of a project"),
        "repo": ("repositories", "Link repositories to projects"),
        "org": ("organizations", "List, create, and choose organizations"),
        "member": ("members", "Manage the members of the organization"),
        "key": ("keys", "Manage API keys"),
        "open": ("pages", "Open a page of the dashboard"),
        "api": ("api", "Send any request to the API"),
        "mcp": ("mcp", "Serve the API to an AI assistant"),
    },
    "Account": {
        "login": ("account", "Sign in with your browser"),
        "logout": ("account", "Sign out"),
        "whoami": ("account", "Show who you are, and what you may do"),
        "profile": ("profiles", "Choose between services or accounts"),
    },
}
_COMMANDS = {name: found for commands in SECTIONS.values() for name, found in commands.items()}


class _Commands(Mapping[str, Any]):
    """The commands by name. One that is looked up is imported."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@cache
def _command(name: str) -> Any:
    module, summary = _COMMANDS[name]
    loaded: Any = get_command(import_module(f"openassent_cli.commands.{module}").app)
    loaded.help = loaded.help or f"{summary}."
    return getattr(loaded, "commands", {}).get(name, loaded)


class Program(PlainGroup):
    """The program itself, whose help imports no command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, _: Any) -> list[str]:
        return [*_COMMANDS]

    def format_commands(self, _: Any, formatter: Any) -> None:
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])


app = typer.Typer(
    name="assent",
    cls=Program,
    help="Find trackers that run without consent, and manage consent on your websites.",
    epilog="""\b
Examples:
  assent scan local                    find trackers in this folder
  assent login --base-url https://api.assent.example
  assent inbox list --priority P0
\b
`assent COMMAND --help` explains a command. The options above work with every
command. An argument can also be given as an option: NAME as --name.""",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from openassent import __version__  # noqa: PLC0415 (see `extras`)

        typer.echo(f"assent {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and exit.")


def _root(**options: Any) -> None:
    """Handles the options of the program itself."""
    options.pop("version")
    begin(Invocation(), **options)


_own = inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, _VERSION])
_root.__signature__ = inspect.Signature([*shared_options(hidden=False), _own])  # type: ignore[attr-defined]
app.callback()(_root)
