"""HTTP of `organizations`."""

from typing import Annotated

from controlplane.access import Access, Requires
from controlplane.app import ControlRouter
from controlplane.described import refuses
from controlplane.envelope import Answer, Page
from controlplane.idempotency import IdempotencyKey, idempotent
from controlplane.store.organizations import Membership
from organizations import service
from organizations.schemas import Organization, OrganizationCreate, OrganizationListItem

router = ControlRouter(tags=["Organizations"])

ListsOrganizations = Annotated[Access[None], Requires("organizations.read")]
ReadsOrganization = Annotated[Access[None], Requires("organizations.read", organization="path")]
CreatesOrganization = Annotated[Access[None], Requires("organizations.write", user_token=True)]


def _organization(membership: Membership) -> Organization:
    return Organization(id=membership.organization_id, slug=membership.slug, name=membership.name, role=membership.role)


@router.get("/v1/organizations", operation_id="listOrganizations", summary="List organizations")
async def list_organizations(access: ListsOrganizations) -> Page[OrganizationListItem]:
    """The organizations the caller belongs to, all on one page, by slug.

    An API key sees the one it belongs to, in the role `admin`.
    """
    return Page(
        [
            OrganizationListItem(
                organization_id=membership.organization_id,
                organization_slug=membership.slug,
                organization_name=membership.name,
                role=membership.role,
            )
            for membership in service.list_organizations(access.principal)
        ]
    )


@router.post("/v1/organizations", operation_id="createOrganization", summary="Create an organization", status_code=201)
@refuses(service.SlugTaken, service.OwnsTooMany)
async def create_organization(
    access: CreatesOrganization, body: OrganizationCreate, idempotency_key: IdempotencyKey = None
) -> Answer[Organization]:
    """Creates an organization on the free plan, with the caller as its owner.

    Where the slug is taken, given or made from the name, `details.suggestions` holds three that are free.
    """
    return idempotent(
        access,
        "createOrganization",
        idempotency_key,
        body,
        lambda legs: _organization(service.create_organization(access.user_id, body.name, body.slug, legs)),
    )


@router.get("/v1/organizations/{organizationId}", operation_id="getOrganization", summary="Get an organization")
async def get_organization(access: ReadsOrganization) -> Organization:
    """One organization of the caller."""
    return _organization(access.membership)
