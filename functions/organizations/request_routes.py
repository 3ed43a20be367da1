"""Explains what was decided about a request."""

from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.organizations import audit_log
from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import request_began_at
from controlplane.platform.core.roles import RANK
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import refuses
from controlplane.platform.table import refusals
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.refusals import EXPLAINED_SECONDS
from organizations.request_schemas import DecidedRequest

router = ControlRouter(tags=["Requests"])

# Any credential: the one that lacked a scope can ask why.
Asks = Annotated[Access[None], Requires(organization="query")]


class NothingRecorded(NotFound):
    """The request is unknown, older than a day, another caller's, or was answered and changed nothing."""

    message = (
        "Nothing is recorded about this request: it was answered and changed nothing, is more than 24 hours old, or "
        "you may not ask about it."
    )


@router.get("/v1/requests/{requestId}", summary="Explain a request")
@refuses(NothingRecorded)
async def get_request(
    access: Asks,
    request_id: Annotated[
        str,
        Path(
            alias="requestId",
            description="The request's `X-Request-Id`.",
            examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-01kb2m3n4p"],
        ),
    ],
) -> DecidedRequest:
    """Returns the decision on a request of the organization in the last 24 hours, with its reason.

    A refused request (4xx) has the rule that refused it, and the limits that applied to it. A request that changed
    something has the entries that it wrote in the audit log. Any credential can ask about the requests of its own
    person or API key, and admins and owners with the scope `audit-log.read` about all of the organization. Only the
    person can ask about requests that were refused before the organization was known.

    A request that was answered and changed nothing leaves no record, like one that failed with a 5xx, so the response
    is 404 for these. It is the same for requests of other organizations. Of an organization, or a caller, with many
    refusals in one minute, only the first ones are recorded.
    """
    began = request_began_at(request_id)
    if began is None or not clock.now() - EXPLAINED_SECONDS <= began <= clock.now():
        raise NothingRecorded
    caller = access.principal.key_id or access.user_id
    sees_all = RANK[access.membership.role] >= RANK["admin"] and "audit-log.read" in access.principal.scopes
    owners = [access.organization_id, *filter(None, [access.principal.user_id])]
    found, entries = read_both(
        lambda: read_each(lambda owner: refusals.find(owner, request_id, began), owners),
        lambda: audit_log.list_of_request(access.organization_id, request_id, began),
    )
    refused = next((it for it in found if it and (sees_all or refusals.is_of(it, caller))), None)
    visible = [it for it in entries if sees_all or it.actor_id == caller]
    if refused is None and not visible:
        raise NothingRecorded
    return DecidedRequest.of(request_id, clock.timestamp(began), refused, visible)
