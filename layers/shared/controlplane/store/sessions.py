"""Web sessions of signed-in users. A session's secret is also a bearer token with every scope."""

from controlplane.core import tokens
from controlplane.core.scopes import SCOPES
from controlplane.core.settings import settings
from controlplane.store import credential_index, keys, users
from controlplane.store.table import table

# A working day: the secret can do whatever the person can.
LIFE_SECONDS = 12 * 3600


def create(user_id: str, address: str | None = None) -> str:
    """Creates a session. Returns its secret, for a cookie or an Authorization header; only its hash is stored.

    The secret authenticates like any bearer token (`http.authentication`), as a principal of type `session`. `address`
    is the IP address shown in the user's list of sessions. Raises UnknownUser.
    """
    secret = tokens.mint(settings.service_brand + tokens.SESSION)
    shown = {"client": credential_index.PAGES, "address": address}
    users.put_token(secret, user_id, "session", list(SCOPES), LIFE_SECONDS, **shown)
    return secret


def revoke(secret: str) -> None:
    """Revokes the session, effective with the next request. Does nothing if the secret isn't of an active session."""
    item = table.get(keys.user_token(tokens.digest(secret)))
    if item is not None and item["kind"] == "session":
        users.revoke_token(item)
