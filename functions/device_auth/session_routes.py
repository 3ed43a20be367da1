"""Routes for a user's own sessions, devices, and tokens: list and revoke.

They belong to `device_auth` because that API function already has permission to revoke token families and tokens.
"""

from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.people import credential_index, revocations
from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import InsufficientScope
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table.table import QueryPage
from device_auth.schemas import RevokedSession, Session

router = ControlRouter(tags=["Sessions"])

# A credential can always list and revoke itself. The scope extends that to all credentials of the person.
Person = Annotated[Access[None], Requires(user_token=True)]
_ALL = "sessions.write"
SessionId = Annotated[str, Path(alias="sessionId")]


@router.get("/v1/me/sessions", summary="List your sessions and devices")
async def list_sessions(access: Person, limit: Limit = 50, cursor: Cursor = None) -> Page[Session]:
    """Lists the user's dashboard sessions, devices, and tokens created by the operator, newest first.

    A credential without the scope `sessions.write` lists only itself. A page can have fewer entries than `limit`,
    because expired entries are omitted. API keys get 403, because they don't belong to a user.
    """
    codec = CursorCodec(cursor, "listSessions", access.user_id)
    current = _own_local(access)
    if _ALL in access.principal.scopes:
        page = credential_index.list_credentials(access.user_id, limit, codec.after)
    else:
        own = credential_index.find_credential(access.user_id, ids.session_id(current))
        page = QueryPage([own] if own else [], None)
    items = [
        Session.showing(
            credential,
            id=credential.session_id,
            ip_address=credential.address,
            expires_at=clock.timestamp(credential.expires_at),
            current=credential.local == current,
        )
        for credential in page.items
        if credential.is_live
    ]
    return Page(items, codec.cursor(page.next_sk))


@router.delete("/v1/me/sessions/{sessionId}", summary="Revoke a session or device")
@refuses(InsufficientScope, revocations.UnknownSession)
async def revoke_session(access: Person, session_id: SessionId) -> RevokedSession:
    """Revokes a session or device immediately: requests with its tokens, refresh tokens included, get 401.

    A credential can revoke itself. To revoke another one, it needs the scope `sessions.write`. Without that, the
    response is the same 403 for every other ID, known or not.
    """
    if _ALL not in access.principal.scopes and session_id != ids.session_id(_own_local(access)):
        raise InsufficientScope(_ALL)
    revocations.revoke_session(access.user_id, session_id)
    return RevokedSession(deleted=True)


def _own_local(access: Access[None]) -> str:
    """Returns the local ID of the calling credential's entry. Raises LookupError for an API key."""
    if access.principal.token is None:
        raise LookupError("an API key has no entry")
    return access.principal.token.listed_as
