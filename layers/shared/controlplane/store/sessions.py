"""Sessions: what a person who signed in on the pages holds. A session's secret is also a bearer, of every scope."""

from contextlib import suppress

from controlplane import tokens
from controlplane.scopes import SCOPES
from controlplane.settings import settings
from controlplane.store import keys, users
from controlplane.store.table import ConditionFailed, Delete, Put, table

# A working day: the secret can do whatever the person can.
LIFE_SECONDS = 12 * 3600


def create(user_id: str) -> str:
    """The secret of a new session, for a cookie or an Authorization header; only its hash is stored.

    It authenticates as any bearer does (`access.authenticate`), as a principal of type `session`.
    """
    secret = tokens.mint(settings.service_brand + tokens.SESSION)
    table.put(Put(users.token_item(secret, user_id, "session", list(SCOPES), LIFE_SECONDS)))
    return secret


def revoke(secret: str) -> None:
    """Ends the session from the next request on. One that is over or never was is no error."""
    with suppress(ConditionFailed):  # nothing there, or no session
        table.delete(Delete(keys.user_token(tokens.digest(secret)), "#kind = :session", {"session": "session"}))
