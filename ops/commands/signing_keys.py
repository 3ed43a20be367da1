"""`assent-ops signing-key`: the rotation of the signing secret, a step at a time."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import TYPE_CHECKING, Annotated

import typer

from ops.command import command
from ops.output import Shown

if TYPE_CHECKING:
    from ops.signing_keys import Ring

app = typer.Typer(no_args_is_help=True, help="The key ring that signs refresh tokens, cursors and forms.")

Early = Annotated[bool, typer.Option("--early", help="Even if the previous key still verifies refresh tokens.")]


@command(app, "show")
def show_ring() -> Shown:
    """Show how far a rotation is: single, added or switched. No key is shown."""
    from ops import signing_keys

    return _shown(signing_keys.read())


@command(app, "add")
def add_key(early: Early = False) -> Shown:
    """Add a new key, to be accepted besides the current one. Deploy afterwards."""
    from ops import signing_keys

    return _shown(signing_keys.add(early=early))


@command(app, "switch")
def switch_key() -> Shown:
    """Sign with the added key, and keep accepting the old one.

    Deploy after `signing-key add` first: a function that doesn't have the added key would refuse what it signs. Deploy
    afterwards as well.
    """
    from ops import signing_keys

    return _shown(signing_keys.switch())


@command(app, "drop")
def drop_key(early: Early = False) -> Shown:
    """Stop accepting the previous key. Deploy afterwards."""
    from ops import signing_keys

    return _shown(signing_keys.drop(early=early))


def _shown(ring: "Ring") -> Shown:
    from controlplane import clock

    return Shown({"step": ring.step, "keys": len(ring.secret.keys), "since": clock.timestamp(ring.since)})
