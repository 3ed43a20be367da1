"""`assent-ops signing-key`: the rotation of the signing secret in Secrets Manager: add a key, switch, drop the old one.

Each step is safe only once the step before it is deployed everywhere: docs/operations/run.md, *Rotate secrets*. No key
is ever printed, passed on a command line, or written to a file.
"""

import secrets
from dataclasses import dataclass
from math import ceil
from typing import Annotated

import typer
from pydantic import ValidationError

from controlplane.people.token_families import REFRESH_SECONDS
from controlplane.platform.core import clock
from controlplane.platform.core.settings import SigningSecret, read_signing_secret
from ops import target
from ops.arguments import new_group
from ops.output import Conflict, Refused, Result

_DAY = 24 * 3600
# The lifetime of a refresh token plus one day, because functions sign with the old key until they are deployed.
_WAIT_SECONDS = REFRESH_SECONDS + _DAY


@dataclass(frozen=True, slots=True)
class Ring:
    """The secret's current value, and the Unix time when it was set."""

    secret: SigningSecret
    since: float

    @property
    def step(self) -> str:
        """`single`, `added` (a next key is accepted) or `switched` (the previous key is still accepted)."""
        if self.secret.next is not None:
            return "added"
        return "switched" if self.secret.previous is not None else "single"


app = new_group("The keys that sign refresh tokens, cursors, and forms.")

Early = Annotated[bool, typer.Option("--early", help="Proceed even if the previous key still verifies refresh tokens.")]


@app.command("show")
def show_ring() -> Result:
    """Show the rotation's current step: single, added, or switched. Doesn't print any key."""
    return _shown(_read())


@app.command("add")
def add_key(early: Early = False) -> Result:
    """Add a new key that is accepted in addition to the current one, and drop the previous one. Deploy afterward."""
    ring = _read()
    if ring.step == "added":
        raise Conflict("A next key already exists. Deploy, then switch to it.")
    if ring.step == "switched":
        _check_deployed(ring)
        _check_age(ring, early)
    return _write(SigningSecret(current=ring.secret.current, next=secrets.token_urlsafe(48)))


@app.command("switch")
def switch_key() -> Result:
    """Sign with the added key, and keep accepting the old one. Deploy afterward.

    Deploy after `signing-key add` before you run this: a function that doesn't have the added key would reject its
    signatures.
    """
    ring = _read()
    if ring.secret.next is None:
        raise Conflict("There is no next key. Add one, and deploy.")
    _check_deployed(ring)
    return _write(SigningSecret(current=ring.secret.next, previous=ring.secret.current))


@app.command("drop")
def drop_key(early: Early = False) -> Result:
    """Stop accepting the previous key. Deploy afterward."""
    ring = _read()
    if ring.step != "switched":
        raise Conflict("There is no previous key.")
    _check_deployed(ring)
    _check_age(ring, early)
    return _write(SigningSecret(current=ring.secret.current))


def _read() -> Ring:
    """Returns the key ring of the connected stack. Raises Misused, NotFound, Refused."""
    value = target.create_client("secretsmanager").get_secret_value(SecretId=_secret_id())
    try:
        secret = SigningSecret.model_validate(read_signing_secret(value["SecretString"]))
    except (ValidationError, ValueError):
        raise Refused(
            "The signing secret is malformed: it must contain one key or two. Restore its previous version."
        ) from None
    return Ring(secret, value["CreatedDate"].timestamp())


def _secret_id() -> str:
    return target.find_resource("SigningSecret", "SIGNING_SECRET_ARN")


def _check_deployed(ring: Ring) -> None:
    """Raises Refused if functions may still run with the previous step's ring. Without a stack, it can't tell."""
    deployed_at = target.deployed_at()
    if deployed_at is not None and deployed_at < ring.since:
        raise Refused("The last step hasn't been deployed yet. Deploy, then try again.")


def _check_age(ring: Ring, early: bool) -> None:
    left = ring.since + _WAIT_SECONDS - clock.now()
    if left > 0 and not early:
        raise Refused(
            f"The previous key still verifies refresh tokens, for up to {ceil(left / _DAY)} days. Without it, "
            "devices that have not refreshed since the switch must be approved again. If the key leaked, use --early."
        )


def _write(secret: SigningSecret) -> Result:
    text = secret.model_dump_json(exclude_none=True)
    target.create_client("secretsmanager").put_secret_value(SecretId=_secret_id(), SecretString=text)
    return _shown(Ring(secret, clock.now()))


def _shown(ring: Ring) -> Result:
    return Result({"step": ring.step, "keys": len(ring.secret.keys), "since": clock.timestamp(ring.since)})
