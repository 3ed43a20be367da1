"""The help of commands in plain text: upper-case arguments, no types of switches, and short summaries.

Without rich, which takes longer to import than the rest of the program.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup

MORE = "`assent --help` lists the options of every command, such as --json."


def argument_name(parameter: Any) -> str:
    """Returns the name of an argument as the help shows it."""
    return str(parameter.metavar or parameter.name.upper())


def option_names(option: Any) -> str:
    """Returns the names of an option, and the name of its value."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names = f"{names}, {', '.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {option.metavar or _upper(max(option.opts, key=len))}"


def arguments_of(command: Any) -> list[Any]:
    return [it for it in command.params if it.param_type_name == "argument"]


def visible_options(command: Any, context: Any) -> list[Any]:
    return [it for it in command.get_params(context) if it.param_type_name == "option" and not it.hidden]


def _upper(option: str) -> str:
    return option.lstrip("-").replace("-", "_").upper()


def _usage(command: Any) -> list[str]:
    given = {it.name for it in command.params if it.hidden}  # `invocation.command` adds these for required arguments
    names = [
        argument_name(it) if it.required or f"{it.name}_option" in given else f"[{argument_name(it)}]"
        for it in arguments_of(command)
    ]
    return [*names, "[OPTIONS]"]


def _explained(option: Any) -> str:
    """Returns the text of an option with its default."""
    default = option.default if isinstance(option.default, str | int) and not option.is_flag else None
    notes = ["required"] if option.required else [f"default: {default}"] if default is not None else []
    if option.envvar:
        notes.append(str(option.envvar))
    return " ".join([option.help or "", *(f"[{it}]" for it in notes)])


def _write_parameters(command: Any, context: Any, formatter: Any) -> None:
    if arguments := [(argument_name(it), it.help or "") for it in arguments_of(command)]:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    with formatter.section("Options"):
        formatter.write_dl([(option_names(it), _explained(it)) for it in visible_options(command, context)])


class PlainCommand(TyperCommand):
    """A command with plain help."""

    def collect_usage_pieces(self, _: Any) -> list[str]:
        return _usage(self)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group with plain help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_parameters(self, ctx, formatter)
