"""Writes the manual page from the commands: python -m openassent_cli.manual > man/assent.1."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command

from openassent_cli.help import argument_name, arguments_of, option_names, visible_options
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
    program: Any = get_command(app)
    context = typer.Context(program)
    yield _INTRODUCTION
    yield ".SH COMMANDS"
    for name, command in _commands("assent", program):
        arguments = arguments_of(command)
        yield ".SS " + " ".join(map(_roff, (name, *map(argument_name, arguments))))
        yield _roff(re.sub(r"\s+", " ", command.help or ""))
        for argument in arguments:
            yield from _entry(argument_name(argument), argument.help)
        for option in visible_options(command, context):
            if option.name != "help":
                yield from _entry(option_names(option), option.help)
    yield ".SH OPTIONS OF EVERY COMMAND"
    for option in visible_options(program, context):
        yield from _entry(option_names(option), option.help)
    yield ".SH ENVIRONMENT"
    for variable, meaning in _ENVIRONMENT.items():
        yield from _entry(variable, meaning)
    yield ".SH EXIT STATUS"
    for code in Exit:
        yield from _entry(str(int(code)), code.reason)


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        yield name, command
        return
    for part, inner in parts.items():
        yield from _commands(f"{name} {part}", inner)


def _entry(title: str, text: str | None) -> Iterator[str]:
    yield from (".TP", f".B {_roff(title)}", _roff(text or ""))


def _roff(text: str) -> str:
    """Returns the text so that roff shows it unchanged."""
    written = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + written if written.startswith((".", "'")) else written


if __name__ == "__main__":
    sys.stdout.write(page())
