"""HTTP of a person's sessions, devices, and tokens: list and revoke, with the person's own user token.

They belong to `device_auth` because it is the API function that may end token families and tokens anyway.
"""

from typing import Annotated

from fastapi import Path

from controlplane import clock
from controlplane.access import Access, Requires
from controlplane.app import ControlRouter
from controlplane.described import refuses
from controlplane.envelope import Page
from controlplane.pagination import Cursor, Limit, Walk
from device_auth import session_service
from device_auth.schemas import RevokedSession, Session

router = ControlRouter(tags=["Sessions"])

# A person may always see and end their own access, whatever scopes the token in hand has.
Person = Annotated[Access[None], Requires(user_token=True)]
SessionId = Annotated[str, Path(alias="sessionId")]


@router.get("/v1/me/sessions", operation_id="listSessions", summary="List your sessions and devices")
async def list_sessions(access: Person, limit: Limit = 50, cursor: Cursor = None) -> Page[Session]:
    """Lists everything that can act as the person: sessions of the pages, devices, and tokens made by the operator.

    Newest first. A page can hold fewer entries than `limit`, because expired ones are left out. Any user token may
    list its own person's sessions; no scope is needed. API keys belong to no person and get 403.
    """
    walk = Walk(cursor, "listSessions", access.user_id)
    page = session_service.list_sessions(access.user_id, limit, walk.after)
    current = session_service.current_session(access.principal.token)
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
        for credential in page.credentials
    ]
    return Page(items, walk.cursor(page.next_sk))


@router.delete("/v1/me/sessions/{sessionId}", operation_id="revokeSession", summary="Revoke a session or device")
@refuses(session_service.UnknownSession)
async def revoke_session(access: Person, session_id: SessionId) -> RevokedSession:
    """Ends a session or a device at once: the next request with any of its tokens gets 401, refresh tokens included.

    The session of the request itself can be revoked as well. Any user token may revoke its own person's sessions; no
    scope is needed.
    """
    session_service.revoke_session(access.user_id, session_id)
    return RevokedSession(deleted=True)
