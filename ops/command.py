"""The base of all commands: options for the table and the output format, and exit codes for failures.

An exception without a class of its own is a bug, and ends with a traceback.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from ops import output, target
from ops.errors import Conflict, Misused, NotFound, Refused
from ops.output import Result
from ops.target import Options

_TABLE_PANEL = "Which table"

Local = Annotated[
    bool,
    typer.Option("--local", help="The table of the local stack that `make run` starts.", rich_help_panel=_TABLE_PANEL),
]
Stack = Annotated[
    str | None,
    typer.Option("--stack", metavar="NAME", help="A CloudFormation stack's table.", rich_help_panel=_TABLE_PANEL),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="A table by its name. Default, if no table is selected: TABLE_NAME. Set SERVICE_BRAND as deployed.",
        rich_help_panel=_TABLE_PANEL,
    ),
]
Region = Annotated[
    str | None,
    typer.Option("--region", help="The AWS region, if the environment doesn't set it.", rich_help_panel=_TABLE_PANEL),
]
EndpointUrl = Annotated[
    str | None, typer.Option("--endpoint-url", help="Another endpoint for AWS.", rich_help_panel=_TABLE_PANEL)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors as JSON on stderr.")]


def _shared(  # noqa: PLR0917 (Typer passes them by name)
    local: Local = False,
    stack: Stack = None,
    table: TableName = None,
    region: Region = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
) -> None:
    """Declares the options of every command."""


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Registers a function as a command of `app`, with the shared options in addition to its own.

    The command prints what the function returns. Functions import the store locally, because it can only be imported
    once the table is known, and because --help must be fast.
    """

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        own, shared = (inspect.signature(it, eval_str=True).parameters.values() for it in (function, _shared))
        accepted = [it.replace(kind=inspect.Parameter.KEYWORD_ONLY) for it in (*own, *shared)]

        def run(**values: Any) -> None:
            as_json = values.pop("as_json")
            options = Options(**{name: values.pop(name) for name in Options.__annotations__})
            try:
                result = _call(function, values, options)
            except Refused as error:
                output.show_error(error, as_json=as_json)
                raise typer.Exit(error.exit_code) from None
            output.show(result, as_json=as_json)

        run.__doc__ = unwrap(function.__doc__)
        run.__signature__ = inspect.Signature(accepted)  # type: ignore[attr-defined]
        app.command(name)(run)
        return function

    return register


def unwrap(docstring: str | None) -> str:
    """Joins each paragraph of a docstring into one line, because Typer keeps the line breaks of the source."""
    paragraphs = inspect.cleandoc(docstring or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _call(function: Callable[..., Result], values: dict[str, Any], options: Options) -> Result:
    """Connects and calls the function. Converts errors from AWS to Refused."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (slow to import)

    from awsclient.errors import AwsError, ServiceError  # noqa: PLC0415

    try:
        target.connect(options)
        return _call_connected(function, values)
    except (ClientError, ServiceError) as error:
        raise Refused(f"AWS rejected the call: {error}") from error
    except (BotoCoreError, AwsError) as error:  # didn't reach AWS: no credentials, region, or connection
        hint = " Is the local stack running? `make run` starts it." if options.local else ""
        raise Refused(f"{error}.{hint}") from error


def _call_connected(function: Callable[..., Result], values: dict[str, Any]) -> Result:
    from controlplane.platform.core import acting  # noqa: PLC0415 (as the store)
    from controlplane.platform.core.errors import ApiError  # noqa: PLC0415
    from controlplane.platform.table.table import TableUnavailable, Throttled  # noqa: PLC0415 (reads the environment)

    try:
        with acting.command():
            return function(**values)
    except ApiError as error:  # refused as the API would
        raise {404: NotFound, 409: Conflict}.get(error.status, Refused)(error.public) from error
    except Throttled as error:
        raise Refused(f"The table is throttled ({error}). Check the current state, then try again.") from error
    except TableUnavailable as error:
        raise Refused(f"The table is unavailable ({error}). Check the current state, then try again.") from error


class Program(TyperGroup):
    """The root command. With --json, usage errors are printed as JSON too."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        arguments = list(sys.argv[1:] if args is None else args)
        wants_json = "--json" in arguments
        try:
            result = super().main(
                arguments, prog_name, complete_var, standalone_mode and not wants_json, windows_expand_args, **extra
            )
        except TyperException as error:
            if not wants_json:
                raise
            output.show_error(Misused(error.format_message()), as_json=True)
            raise SystemExit(error.exit_code) from None
        raise SystemExit(result if isinstance(result, int) else 0)
