"""Writes the manual page from the commands: python -m openassent_cli.manual > man/assent.1."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from openassent_cli.main import app
from openassent_cli.problems import Exit

_INTRODUCTION = """\
.TH ASSENT 1
.SH NAME
assent \\- consent on your websites, from the command line
.SH SYNOPSIS
.B assent
.I COMMAND
.RI [ ARGUMENT ]...
.SH DESCRIPTION
Signs in to an Assent service, and manages its organizations, projects, scans, and findings. Also scans folders on this
machine, without an account."""

_ENVIRONMENT = {
    "ASSENT_API_KEY": "An API key, in place of a profile's tokens.",
    "ASSENT_BASE_URL": "The address of the service.",
    "ASSENT_CONFIG_DIR": "The folder of the profiles. The platform's by default.",
    "ASSENT_KEYRING": "If it is off, tokens are kept in a file that only you can read, not in the system's keyring.",
    "ASSENT_ORG": "The organization to act in, by its ID or slug.",
    "ASSENT_PROFILE": "The profile to use.",
    "NO_COLOR": "If it is set, the output has no colors.",
}


def page() -> str:
    """Returns the manual page in roff, as man(7) describes it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield ".SH COMMANDS"
    shared = _shared_options()
    for name, command in _commands("assent", get_command(app)):
        arguments = [it for it in command.params if it.param_type_name == "argument"]
        options = [it for it in command.params if it.param_type_name == "option" and it.name not in {"help", *shared}]
        yield ".SS " + " ".join([_roff(name), *(_argument(it) for it in arguments)])
        yield _roff(re.sub(r"\s+", " ", command.help or ""))
        for parameter in (*arguments, *options):
            yield from _parameter(parameter)
    yield ".SH OPTIONS OF EVERY COMMAND"
    for parameter in shared.values():
        yield from _parameter(parameter)
    yield ".SH ENVIRONMENT"
    for variable, meaning in _ENVIRONMENT.items():
        yield from (".TP", f".B {_roff(variable)}", _roff(meaning))
    yield ".SH EXIT STATUS"
    for code in Exit:
        yield from (".TP", f".B {int(code)}", _roff(code.reason))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        yield name, command
        return
    for part, inner in parts.items():
        yield from _commands(f"{name} {part}", inner)


def _shared_options() -> dict[str, Any]:
    """Returns the options of every command by name."""
    first = next(command for _, command in _commands("assent", get_command(app)))
    return {it.name: it for it in first.params if getattr(it, "rich_help_panel", None)}


def _argument(parameter: Any) -> str:
    return _roff(parameter.metavar or str(parameter.name).upper())


def _parameter(parameter: Any) -> Iterator[str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    title = _argument(parameter) if parameter.param_type_name == "argument" else ", ".join(map(_roff, names))
    yield from (".TP", f".B {title}", _roff(parameter.help or ""))


def _roff(text: str) -> str:
    """Returns the text so that roff shows it unchanged."""
    written = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + written if written.startswith((".", "'")) else written


if __name__ == "__main__":
    sys.stdout.write(page())
