"""`assent-ops dead-letters`: messages that workers failed to process."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Yes, one_of
from ops.command import command
from ops.errors import Misused
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="Messages that workers failed to process, kept for 14 days.")

# The values of controlplane.platform.queues.messages.Queue, which can't be imported before the table is known.
QUEUES = (
    "scan-preparation",
    "scan-execution",
    "issue-creation",
    "finding-intake",
    "github-events",
    "notifications",
    "emails",
)

_parse_queue = one_of(QUEUES)
_HELP = f"One of {', '.join(QUEUES)}."
Queue = Annotated[str, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=_HELP)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="The maximum number of messages per queue.")]


@command(app, "list")
def list_letters(
    queue: Annotated[
        str | None, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=f"{_HELP} Default: all.")
    ] = None,
    limit: Limit = 100,
) -> Result:
    """List dead letters and the reason for each, oldest first. Nothing is removed.

    If a worker rejected the message, its reason is shown. Messages that SQS moved itself, after five attempts in which
    a worker crashed or timed out, have no reason.
    """
    from controlplane.platform.queues import messages
    from ops import dead_letters

    wanted = [messages.Queue(name) for name in ([queue] if queue else QUEUES)]
    return Result(dead_letters.list_letters(wanted, limit))


@command(app, "redrive")
def redrive(
    queue: Queue,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="A message's id; repeatable. Default: all.")
    ] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Result:
    """Send dead letters back to their work queue. Fix the cause first.

    Each message is sent before it is removed here: it may be delivered twice, but is never lost. Workers skip a message
    whose work is already done. A message that fails again returns here with its new reason.
    """
    from controlplane.platform.queues import messages
    from ops import dead_letters

    confirm(f"Redrive {_named(message)} of {queue}?", yes=yes)
    return Result(dead_letters.redrive(messages.Queue(queue), message or [], limit))


@command(app, "discard")
def discard(
    queue: Queue,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="A message's id; repeatable.")
    ] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Result:
    """Permanently delete dead letters that can never succeed, such as malformed messages.

    A scan that waits for a deleted message is marked as failed, unless a worker is processing it.
    """
    from controlplane.platform.queues import messages
    from ops import dead_letters

    if not message:
        raise Misused("Select the messages to discard with --message.")
    confirm(f"Discard {_named(message)} of {queue}?", yes=yes)
    return Result(dead_letters.discard(messages.Queue(queue), message, limit))


def _named(message: list[str] | None) -> str:
    if not message:
        return "all dead letters"
    return "one dead letter" if len(message) == 1 else f"{len(message)} dead letters"
