"""`assent-ops signing-key`: step-by-step rotation of the signing secret."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import TYPE_CHECKING, Annotated

import typer

from ops.command import command
from ops.output import Result

if TYPE_CHECKING:
    from ops.signing_keys import Ring

app = typer.Typer(no_args_is_help=True, help="The keys that sign refresh tokens, cursors, and forms.")

Early = Annotated[bool, typer.Option("--early", help="Proceed even if the previous key still verifies refresh tokens.")]


@command(app, "show")
def show_ring() -> Result:
    """Show the rotation's current step: single, added, or switched. Doesn't print any key."""
    from ops import signing_keys

    return _shown(signing_keys.read())


@command(app, "add")
def add_key(early: Early = False) -> Result:
    """Add a new key that is accepted in addition to the current one. Deploy afterward."""
    from ops import signing_keys

    return _shown(signing_keys.add(early=early))


@command(app, "switch")
def switch_key() -> Result:
    """Sign with the added key, and keep accepting the old one. Deploy afterward.

    Deploy after `signing-key add` before you run this: a function that doesn't have the added key would reject its
    signatures.
    """
    from ops import signing_keys

    return _shown(signing_keys.switch())


@command(app, "drop")
def drop_key(early: Early = False) -> Result:
    """Stop accepting the previous key. Deploy afterward."""
    from ops import signing_keys

    return _shown(signing_keys.drop(early=early))


def _shown(ring: "Ring") -> Result:
    from controlplane.platform.core import clock

    return Result({"step": ring.step, "keys": len(ring.secret.keys), "since": clock.timestamp(ring.since)})
