"""`assent-ops intake`: sends external findings to the intake manually."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.command import command
from ops.errors import Refused
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="Send runtime detections and advisories to the finding intake.")

_SENT = "Sent. The finding will appear in the inbox shortly."


@command(app, "send")
def send_file(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file with a message or a list of messages; - for stdin.")
    ],
) -> Result:
    """Send the messages in a file. Sends nothing unless all of them are valid."""
    from ops import intake

    try:
        text = file.read()
    except UnicodeDecodeError:
        raise Refused("The file isn't valid UTF-8.") from None
    return Result(intake.send(intake.read_messages(text)), _SENT)
