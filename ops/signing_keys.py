"""The signing secret in Secrets Manager and its rotation: add a key, switch to it, drop the old one.

Each step is safe only once the step before it is deployed everywhere: docs/operations/run.md, *Rotate secrets*. No key
is ever printed, passed on a command line, or written to a file.
"""

import secrets
from dataclasses import dataclass
from math import ceil

from pydantic import ValidationError

from controlplane.people.token_families import REFRESH_SECONDS
from controlplane.platform.core import clock
from controlplane.platform.core.settings import SigningSecret, read_signing_secret
from ops import target
from ops.errors import Conflict, Refused

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


def read() -> Ring:
    """Returns the key ring of the connected stack. Raises Misused, NotFound, Refused."""
    client, secret_id = target.find_secret("SigningSecret", "SIGNING_SECRET_ARN")
    value = client.get_secret_value(SecretId=secret_id)
    try:
        secret = SigningSecret.model_validate(read_signing_secret(value["SecretString"]))
    except (ValidationError, ValueError):
        raise Refused(
            "The signing secret is malformed: it must contain one key or two. Restore its previous version."
        ) from None
    return Ring(secret, value["CreatedDate"].timestamp())


def add(*, early: bool = False) -> Ring:
    """Adds a new key, which is accepted from the next deployment on. Removes the previous key from the ring.

    Raises Conflict if there is already a next key, Refused if refresh tokens of the previous key may still be valid
    (unless `early`).
    """
    ring = read()
    if ring.step == "added":
        raise Conflict("A next key already exists. Deploy, then switch to it.")
    if ring.step == "switched":
        _check_deployed(ring)
        _check_age(ring, early)
    return _write(SigningSecret(current=ring.secret.current, next=secrets.token_urlsafe(48)))


def switch() -> Ring:
    """Makes the next key the current one, and keeps the old one as the previous key. Raises Conflict, Refused."""
    ring = read()
    if ring.secret.next is None:
        raise Conflict("There is no next key. Add one, and deploy.")
    _check_deployed(ring)
    return _write(SigningSecret(current=ring.secret.next, previous=ring.secret.current))


def drop(*, early: bool = False) -> Ring:
    """Removes the previous key, which invalidates everything that only this key verifies.

    Raises Conflict if there is no previous key, Refused if its refresh tokens may still be valid (unless `early`).
    """
    ring = read()
    if ring.step != "switched":
        raise Conflict("There is no previous key.")
    _check_deployed(ring)
    _check_age(ring, early)
    return _write(SigningSecret(current=ring.secret.current))


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


def _write(secret: SigningSecret) -> Ring:
    client, secret_id = target.find_secret("SigningSecret", "SIGNING_SECRET_ARN")
    client.put_secret_value(SecretId=secret_id, SecretString=secret.model_dump_json(exclude_none=True))
    return Ring(secret, clock.now())
