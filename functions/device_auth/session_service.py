"""Business rules of a user's sessions: users can list and revoke only their own."""

from collections.abc import Mapping
from typing import Any

from controlplane.core.errors import NotFound
from controlplane.store import credential_index, revocations
from controlplane.store.credential_index import CredentialPage


class UnknownSession(NotFound):
    """Also raised for another user's session."""

    message = "You have no such session."


def list_sessions(user_id: str, limit: int, after: str | None) -> CredentialPage:
    """Returns a page of the user's unexpired credentials, newest first."""
    page = credential_index.list_credentials(user_id, limit, after)
    return page._replace(credentials=[credential for credential in page.credentials if credential.is_live])


def current_session(token: Mapping[str, Any] | None) -> str | None:
    """Returns the local ID of the session that the token belongs to."""
    return credential_index.local_of(token) if token else None


def revoke_session(user_id: str, session_id: str) -> None:
    """Revokes the user's session or device. Raises UnknownSession."""
    credential = credential_index.find_credential(user_id, session_id)
    if credential is None:
        raise UnknownSession
    revocations.revoke_credential(credential, "revoked by the person")
