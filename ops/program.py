"""The program: selects the table, runs a command, and prints its result or why it was refused.

The store reads its settings when it is imported. So the options that say which table, and where AWS is, are read first,
wherever they are on the command line; then the commands are imported.

An exception without a class of its own is a bug, and ends with a traceback.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from typer.exceptions import TyperException

from awsclient.errors import AwsError, ServiceError
from ops import output, target
from ops.output import Conflict, Misused, NotFound, Refused, Result
from ops.target import Options


def main(arguments: Sequence[str]) -> int:
    """Runs the command line. Returns the exit code."""
    as_json = "--json" in arguments
    try:
        options, as_json, rest = read_options(arguments)
        result = _run(options, rest)
    except Refused as error:
        output.show_error(error, as_json=as_json)
        return error.exit_code
    except TyperException as error:
        output.show_error(Misused(f"{error.format_message().rstrip('.')}. See --help."), as_json=as_json)
        return error.exit_code
    if not isinstance(result, Result):
        return int(result)
    output.show(result, as_json=as_json)
    return 0


def read_options(arguments: Sequence[str]) -> tuple[Options, bool, list[str]]:
    """Returns the options of every command, whether to print JSON, and the other arguments. Raises Misused."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--local", "--json"):
        parser.add_argument(flag, action="store_true")
    for option in ("--stack", "--table", "--region", "--endpoint-url"):
        parser.add_argument(option)
    try:
        found, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise Misused(f"{error}.") from None
    as_json = vars(found).pop("json")
    return Options(**vars(found)), as_json, rest


def _run(options: Options, arguments: Sequence[str]) -> Any:
    """Returns the command's result, or 0 after its help. Converts errors of AWS to Refused."""
    try:
        if "--help" in arguments or len(arguments) < 2:
            target.prepare("unselected")
            return _run_connected([*arguments, "--help"])
        target.connect(options)
        return _run_connected(arguments)
    except (ClientError, ServiceError) as error:
        raise Refused(f"AWS rejected the call: {error}") from error
    except (BotoCoreError, AwsError) as error:  # didn't reach AWS: no credentials, region, or connection
        hint = " Is the local stack running? `make run` starts it." if options.local else ""
        raise Refused(f"{error}.{hint}") from error


def _run_connected(arguments: Sequence[str]) -> Any:
    """Converts errors of the API's rules and of the table to Refused."""
    # These read the environment.
    from controlplane.platform.core import acting  # noqa: PLC0415
    from controlplane.platform.core.errors import ApiError  # noqa: PLC0415
    from controlplane.platform.table.table import TableUnavailable, Throttled  # noqa: PLC0415
    from ops.cli import app  # noqa: PLC0415

    try:
        with acting.command():
            return app(arguments, prog_name="assent-ops", standalone_mode=False)
    except ApiError as error:
        raise {404: NotFound, 409: Conflict}.get(error.status, Refused)(error.public) from error
    except Throttled as error:
        raise Refused(f"The table is throttled ({error}). Check the current state, then try again.") from error
    except TableUnavailable as error:
        raise Refused(f"The table is unavailable ({error}). Check the current state, then try again.") from error
