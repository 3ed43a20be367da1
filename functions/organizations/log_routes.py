"""The audit log of an organization."""

from typing import Annotated

from fastapi import Query

from controlplane.access.access import Access, Requires
from controlplane.organizations import audit_log
from controlplane.organizations.audit_log import Filters
from controlplane.platform.core.actions import Action
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Page
from controlplane.platform.http.fields import Time, to_seconds
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from organizations.log_schemas import AuditLogEntry

router = ControlRouter(tags=["Organizations"])

ReadsLog = Annotated[Access[None], Requires("audit-log.read", role="admin", organization="query")]
_ID = {"min_length": 1, "max_length": 100}
ActorFilter = Annotated[
    str | None,
    Query(alias="actorId", description="Returns only entries of this actor.", examples=["usr_5w1n8q2k7m3r9t4v"], **_ID),
]
ResourceFilter = Annotated[
    str | None,
    Query(
        alias="resourceId",
        description="Returns only entries about this resource.",
        examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
        **_ID,
    ),
]
ActionFilter = Annotated[
    Action | None, Query(description="Returns only entries of this action.", examples=["project.update"])
]
Since = Annotated[
    Time | None,
    Query(description="Returns only entries from this time on.", examples=["2026-03-01T00:00:00Z"]),
]
Until = Annotated[
    Time | None, Query(description="Returns only entries up to this time.", examples=["2026-03-31T23:59:59Z"])
]


@router.get("/v1/audit-log", summary="List the audit log")
async def list_audit_log(  # noqa: PLR0917 (FastAPI passes them by name)
    access: ReadsLog,
    actor_id: ActorFilter = None,
    action: ActionFilter = None,
    resource_id: ResourceFilter = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditLogEntry]:
    """Lists what changed in the organization, newest first: who did what, to which resource, and from where.

    Every change is in the log, whether a person, an API key, the operator, or the service itself made it. An entry is
    written together with its change and never modified. It has no secrets, and no personal data except the actor's ID.
    Entries are kept for a number of days that the operator sets.

    With filters, a page can have fewer entries than `limit`, or none, while `hasMore` is true.
    """
    filters = Filters(actor_id, action, resource_id, to_seconds(since), to_seconds(until))
    codec = CursorCodec(cursor, "listAuditLog", access.organization_id, *filters.binding)
    page = audit_log.list_entries(access.organization_id, limit, codec.after, filters)
    return Page([AuditLogEntry.of(entry) for entry in page.entries], codec.cursor(page.next_position))
