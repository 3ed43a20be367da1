"""Sessions: what a person who signed in on the pages holds. A session's secret is also a bearer, of every scope."""

from controlplane import tokens
from controlplane.scopes import SCOPES
from controlplane.settings import settings
from controlplane.store import credential_index, keys, users
from controlplane.store.table import table

# A working day: the secret can do whatever the person can.
LIFE_SECONDS = 12 * 3600


def create(user_id: str, address: str | None = None) -> str:
    """The secret of a new session, for a cookie or an Authorization header; only its hash is stored.

    It authenticates as any bearer does (`access.authenticate`), as a principal of type `session`. `address` is the
    IP address that the person sees in the list of their sessions. Raises UnknownUser.
    """
    secret = tokens.mint(settings.service_brand + tokens.SESSION)
    shown = {"client": credential_index.PAGES, "address": address}
    users.put_token(secret, user_id, "session", list(SCOPES), LIFE_SECONDS, **shown)
    return secret


def revoke(secret: str) -> None:
    """Ends the session from the next request on. Does nothing if it has ended or the secret is no session's."""
    item = table.get(keys.user_token(tokens.digest(secret)))
    if item is not None and item["kind"] == "session":
        users.revoke_token(item)
