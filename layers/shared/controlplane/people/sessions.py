"""Web sessions of signed-in users. A session's secret is also a bearer token with every scope."""

from controlplane.people import credential_index
from controlplane.people import tokens as user_tokens
from controlplane.platform.core import tokens
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings

# A working day: the secret can do whatever the user can.
LIFE_SECONDS = 12 * 3600


def create(user_id: str, address: str | None = None, browser: str | None = None) -> str:
    """Creates a session. Returns its secret, for a cookie or an Authorization header; only its hash is stored.

    The secret authenticates like any bearer token (`access.authentication`), as a principal of type `session`.
    The user's list of sessions shows the IP address, and the browser as the device's name. Raises UnknownUser.
    """
    secret = tokens.mint(settings.service_brand + tokens.SESSION)
    user_tokens.put_token(
        secret,
        user_id,
        "session",
        list(SCOPES),
        LIFE_SECONDS,
        client=credential_index.PAGES,
        device_name=browser,
        address=address,
    )
    return secret


def revoke(secret: str) -> None:
    """Revokes the session, effective with the next request. Does nothing if the secret isn't of an active session."""
    token = user_tokens.find_token(secret)
    if token is not None and token.kind == "session":
        user_tokens.revoke_token(token)
