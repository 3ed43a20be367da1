"""Routes of a project's vendors: their list, decisions about them, and the table for a privacy page."""

from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.findings import privacy_table, vendors
from controlplane.findings.vendors import VendorItem
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.http.validation import described
from controlplane.platform.table.table import QueryPage
from controlplane.projects.items import ProjectItem
from projects.fields import PROJECT
from projects.vendor_schemas import PrivacyTable, ProjectVendor, VendorDecision, VendorDecisionCreate

router = ControlRouter(tags=["Projects"])

ListsVendors = Annotated[Access[ProjectItem], Requires("inbox.read", resource=PROJECT, late=True)]
DecidesVendor = Annotated[
    Access[ProjectItem], Requires("vendors.write", role="admin", resource=PROJECT, user_token=True)
]

VendorId = Annotated[
    str,
    Path(
        alias="vendorId",
        pattern=described(r"^[a-z0-9._-]{1,100}$", "Must be the ID of a vendor, such as segment"),
        description="The `vendorId` of one of the project's vendors, or an ID of the catalog.",
        examples=["segment"],
    ),
]


@router.get("/v1/projects/{projectId}/vendors", summary="List the vendors of a project")
async def list_vendors(access: ListsVendors, limit: Limit = 50, cursor: Cursor = None) -> Page[ProjectVendor]:
    """Lists the vendors that were seen on a project's websites or in its code, or decided on, ordered by `vendorId`.

    A scan adds those that it found to its project, and to others that are linked to the repository with the same branch
    and root directory: `repositories` says where, and whether they wait for consent. A repository that is unlinked
    disappears in the background. Unknown fields are null.
    """

    def read(project_id: ProjectId) -> tuple[CursorCodec, QueryPage[VendorItem]]:
        codec = CursorCodec(cursor, "listVendors", project_id)
        return codec, vendors.list_vendors(project_id, limit, codec.after)

    codec, page = access.enter_while(read)
    return Page([ProjectVendor.of(vendor) for vendor in page.items], codec.cursor(page.next_sk))


@router.get("/v1/projects/{projectId}/vendors/privacy-table", summary="Get the table for a privacy page")
async def get_privacy_table(access: ListsVendors) -> PrivacyTable:
    """Returns the approved vendors that were found, with what they document about their cookies.

    `html` and `markdown` are tables to paste into a page. They don't have the website's own cookies.
    """
    return PrivacyTable.of(access.enter_while(privacy_table.read_table))


@router.post("/v1/projects/{projectId}/vendors/{vendorId}/decision", summary="Decide about a vendor")
@refuses(vendors.UnknownVendor, vendors.DecisionLimitReached)
async def decide_vendor(access: DecidesVendor, vendor_id: VendorId, body: VendorDecisionCreate) -> VendorDecision:
    """Approves or ignores a vendor for a project, and resolves the vendor's runtime finding.

    Later scans keep the decision.

    Approving isn't a permission to load the vendor before consent. The runtime finding reopens if the vendor is seen
    before consent again, and code findings stay open until the code changes, the vendor is ignored, or someone changes
    their status. If it is ignored, the next scan also resolves open code findings about loading it, unless they
    involve a vendor that isn't ignored.

    A vendor of the catalog can be decided on before it is seen; `inboxItemId` is then null. A project can have
    decisions on up to 400 vendors, all of which are in its public configuration.
    """
    state = vendors.STATES[body.decision]
    return VendorDecision(
        inbox_item_id=vendors.decide_vendor(access.resource, vendor_id, state, access.user_id),
        project_id=access.resource.project_id,
        review_state=vendors.REVIEWS[state],
        state=state,
        vendor_id=vendor_id,
    )
