"""Routes of `organizations`: list, create, get."""

from typing import Annotated

from controlplane.access.access import Access, Requires
from controlplane.access.authentication import key_organization
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.organizations import rules
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership, OwnsTooMany, SlugTaken
from controlplane.platform.core import ids
from controlplane.platform.core.errors import Forbidden
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from organizations.schemas import (
    ActiveOrganization,
    ActiveOrganizationSave,
    Organization,
    OrganizationCreate,
    OrganizationListItem,
)


class NotOwnOrganization(Forbidden):
    message = "You aren't a member of this organization. Choose one from GET /v1/organizations."


router = ControlRouter(tags=["Organizations"])

ListsOrganizations = Annotated[Access[None], Requires("organizations.read", projects="untouched")]
ReadsOrganization = Annotated[Access[None], Requires("organizations.read", organization="path", projects="untouched")]
WritesOrganizations = Annotated[Access[None], Requires("organizations.write", user_token=True)]
# The default decides where every credential of the person acts, so the scopes of organizations don't include it.
SavesDefault = Annotated[Access[None], Requires("sessions.write", user_token=True)]


def _organization(membership: Membership) -> Organization:
    return Organization.showing(membership, id=membership.organization_id)


@router.get("/v1/organizations", summary="List organizations")
async def list_organizations(
    access: ListsOrganizations, limit: Limit = 50, cursor: Cursor = None
) -> Page[OrganizationListItem]:
    """Lists the caller's organizations, sorted by slug.

    An API key gets only the organization it belongs to, with the role `admin`.
    """
    principal = access.principal
    codec = CursorCodec(cursor, "listOrganizations", access.caller_id)
    memberships = (
        [key_organization(principal)]
        if principal.user_id is None
        else organizations.get_account(principal.user_id).memberships
    )
    page, following = codec.cut(memberships, limit, lambda it: it.slug)
    listed = [
        OrganizationListItem(
            organization_id=membership.organization_id,
            organization_slug=membership.slug,
            organization_name=membership.name,
            role=membership.role,
        )
        for membership in page
    ]
    return Page(listed, following)


@router.post("/v1/organizations", summary="Create an organization", status_code=201)
@refuses(SlugTaken, OwnsTooMany)
async def create_organization(
    access: WritesOrganizations, body: OrganizationCreate, idempotency_key: IdempotencyKey = None
) -> Answer[Organization]:
    """Creates an organization on the free plan, with the caller as its owner.

    If the slug is taken, whether given or derived from the name, `details.suggestions` contains three available slugs.
    """
    return idempotent(
        access,
        "createOrganization",
        idempotency_key,
        body,
        lambda legs: _organization(rules.create_organization(access.user_id, body.name, body.slug, legs)),
    )


@router.get("/v1/organizations/{organizationId}", summary="Get an organization")
async def get_organization(access: ReadsOrganization) -> Organization:
    """Returns one of the caller's organizations."""
    return _organization(access.membership)


@router.put("/v1/me/active-organization", summary="Save your default organization")
@refuses(NotOwnOrganization)
async def save_active_organization(access: SavesDefault, body: ActiveOrganizationSave) -> ActiveOrganization:
    """Saves the organization in which requests without `organizationId` act.

    The change applies to all of the person's user tokens and sessions, from their next request. API keys get 403: they
    always act in their own organization. If the caller isn't a member of the organization, the response is 403.
    """
    if not ids.is_root(ids.ORGANIZATION, body.organization_id):
        raise NotOwnOrganization
    try:
        organizations.save_default(access.user_id, body.organization_id)
    except organizations.NotMember:
        raise NotOwnOrganization from None
    return ActiveOrganization(active_organization_id=body.organization_id)
