"""Business rules of the page that lists a user's sessions, devices, and tokens."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.core.errors import NotFound
from controlplane.store import credential_index, revocations
from controlplane.store.credential_index import Credential

PER_PAGE = 50
# The maximum per request. Each needs a read and a transaction; the total stays far below the function's timeout.
_ENDED_AT_ONCE = 100
_KINDS = {"session": "Web session", "device": "Device", "token": "Token made by the operator"}  # nosec B105


class UnknownSession(NotFound):
    """Also raised for another user's session."""

    message = "This entry is no longer there: it has expired or was revoked."


class Shown(NamedTuple):
    """An entry of the page."""

    session_id: str
    kind: str
    client: str
    device_name: str | None
    address: str | None
    created_at: str | None
    last_used_at: str | None
    current: bool


class ShownPage(NamedTuple):
    sessions: list[Shown]
    next_sk: str | None


def list_sessions(user_id: str, current: str | None, after: str | None) -> ShownPage:
    """Returns a page of the user's unexpired credentials, newest first. `current` is the local ID of this session."""
    page = credential_index.list_credentials(user_id, PER_PAGE, after)
    live = [credential for credential in page.credentials if credential.is_live]
    return ShownPage([_shown(credential, credential.local == current) for credential in live], page.next_sk)


def current_session(token: Mapping[str, Any] | None) -> str | None:
    """Returns the local ID of the session that the token belongs to."""
    return credential_index.local_of(token) if token else None


def revoke_session(session_id: str, user_id: str) -> str:
    """Revokes a credential of the user and returns its local ID. Raises UnknownSession."""
    credential = credential_index.find_credential(user_id, session_id)
    if credential is None:
        raise UnknownSession
    revocations.revoke_credential(credential, "revoked by the person")
    return credential.local


def revoke_others(user_id: str, current: str | None) -> tuple[int, bool]:
    """Revokes all credentials but this session. Returns the number revoked, and True if there are more."""
    return revocations.revoke_others(user_id, current, _ENDED_AT_ONCE)


def _shown(credential: Credential, current: bool) -> Shown:
    return Shown(
        session_id=credential.session_id,
        kind=_KINDS[credential.kind],
        client=credential.client,
        device_name=credential.device_name,
        address=credential.address,
        created_at=credential.created_at,
        last_used_at=credential.last_used_at,
        current=current,
    )
