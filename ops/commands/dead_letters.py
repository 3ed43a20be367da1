"""`assent-ops dead-letters`: messages that no worker could settle."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Yes
from ops.command import command
from ops.errors import Misused
from ops.output import Shown, confirm

app = typer.Typer(no_args_is_help=True, help="Messages that no worker could settle, kept for 14 days.")

# As controlplane.queues.Queue, which cannot be imported before the table is known.
QUEUES = ("scan-preparation", "scan-execution", "issue-creation", "finding-intake")


def _parse_queue(text: str) -> str:
    if text not in QUEUES:
        raise typer.BadParameter(f"There is no queue {text!r}. There are: {', '.join(QUEUES)}.")
    return text


_HELP = f"One of {', '.join(QUEUES)}."
Queue = Annotated[str, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=_HELP)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many of a queue at most.")]


@command(app, "list")
def list_letters(
    queue: Annotated[
        str | None, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=f"{_HELP} All if left out.")
    ] = None,
    limit: Limit = 100,
) -> Shown:
    """List what lies in the dead letters and why, the oldest first. Nothing is consumed.

    A worker's reason stands beside its message. SQS itself moves a message here, without a reason, after five times in
    which a worker died or ran out of time.
    """
    from controlplane import queues
    from ops import dead_letters

    wanted = [queues.Queue(name) for name in ([queue] if queue else QUEUES)]
    return Shown(dead_letters.list_letters(wanted, limit))


@command(app, "redrive")
def redrive(
    queue: Queue,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="This one; repeat it. All if left out.")
    ] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Shown:
    """Put dead letters back to work, once their reason is gone.

    Each is sent to its queue first and removed second: a message may come twice, and none is lost. Workers take a
    message that was settled meanwhile as done. What fails again comes back here, with its new reason.
    """
    from controlplane import queues
    from ops import dead_letters

    confirm(f"Put {_named(message)} of {queue} back to work?", yes=yes)
    return Shown(dead_letters.redrive(queues.Queue(queue), message or [], limit))


@command(app, "discard")
def discard(
    queue: Queue,
    message: Annotated[list[str] | None, typer.Option("--message", metavar="ID", help="Which one; repeat it.")] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Shown:
    """Throw dead letters away that can never be settled, such as malformed ones. There is no way back.

    A scan that waits for its message is ended as failed, unless a worker has it.
    """
    from controlplane import queues
    from ops import dead_letters

    if not message:
        raise Misused("Name what to throw away, by --message.")
    confirm(f"Throw {_named(message)} of {queue} away?", yes=yes)
    return Shown(dead_letters.discard(queues.Queue(queue), message, limit))


def _named(message: list[str] | None) -> str:
    if not message:
        return "all dead letters"
    return "one dead letter" if len(message) == 1 else f"{len(message)} dead letters"
