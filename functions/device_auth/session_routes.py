"""Routes for a user's own sessions, devices, and tokens: list and revoke.

They belong to `device_auth` because that API function already has permission to revoke token families and tokens.
"""

from typing import Annotated

from fastapi import Path

from controlplane.core import clock
from controlplane.http.access import Access, Requires
from controlplane.http.app import ControlRouter
from controlplane.http.envelope import Page
from controlplane.http.pagination import Cursor, CursorCodec, Limit
from controlplane.http.responses import refuses
from controlplane.store import credential_index, revocations
from device_auth.schemas import RevokedSession, Session

router = ControlRouter(tags=["Sessions"])

# A user can always list and revoke their own access, regardless of the token's scopes.
Person = Annotated[Access[None], Requires(user_token=True)]
SessionId = Annotated[str, Path(alias="sessionId")]


@router.get("/v1/me/sessions", operation_id="listSessions", summary="List your sessions and devices")
async def list_sessions(access: Person, limit: Limit = 50, cursor: Cursor = None) -> Page[Session]:
    """Lists the user's dashboard sessions, devices, and tokens created by the operator, newest first.

    A page can have fewer entries than `limit`, because expired entries are omitted. Any user token can list its own
    user's sessions; no scope is needed. API keys get 403, because they don't belong to a user.
    """
    codec = CursorCodec(cursor, "listSessions", access.user_id)
    page = credential_index.list_credentials(access.user_id, limit, codec.after)
    token = access.principal.token
    current = token.entry_local if token else None
    items = [
        Session(
            id=credential.session_id,
            kind=credential.kind,
            client=credential.client,
            device_name=credential.device_name,
            ip_address=credential.address,
            created_at=credential.created_at,
            last_used_at=credential.last_used_at,
            expires_at=clock.timestamp(credential.expires_at),
            current=credential.local == current,
            scopes=credential.scopes,
        )
        for credential in page.live
    ]
    return Page(items, codec.cursor(page.next_sk))


@router.delete("/v1/me/sessions/{sessionId}", operation_id="revokeSession", summary="Revoke a session or device")
@refuses(revocations.UnknownSession)
async def revoke_session(access: Person, session_id: SessionId) -> RevokedSession:
    """Revokes a session or device immediately: requests with its tokens, refresh tokens included, get 401.

    The session that makes the request can revoke itself. Any user token can revoke its own user's sessions; no scope
    is needed.
    """
    revocations.revoke_session(access.user_id, session_id)
    return RevokedSession(deleted=True)
