"""Routes of `projects`: projects, their consent instances and websites."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.api_keys import rules as key_rules
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.errors import Forbidden
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table.table import Leg
from controlplane.projects import changes, rules
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from projects.fields import PROJECT
from projects.schemas import (
    CreatedProject,
    DeletedProject,
    DeletedWebsite,
    ListedConsent,
    ListedProject,
    Project,
    ProjectCreate,
    ProjectUpdate,
)

router = ControlRouter(tags=["Projects"])

ListsProjects = Annotated[Access[None], Requires("projects.read", organization="query", projects="filtered")]
CreatesProject = Annotated[Access[None], Requires("projects.write", organization="query", late=True)]
ReadsProject = Annotated[Access[ProjectItem], Requires("projects.read", resource=PROJECT, plan=True)]
ChangesProject = Annotated[Access[ProjectItem], Requires("projects.write", resource=PROJECT, plan=True, late=True)]
DeletesOfProject = Annotated[Access[ProjectItem], Requires("projects.write", role="admin", resource=PROJECT)]

WebsiteId = Annotated[str, Path(alias="websiteId", description="The `id` of one of the project's websites.")]


@router.get("/v1/projects", summary="List projects")
async def list_projects(access: ListsProjects, limit: Limit = 50, cursor: Cursor = None) -> Page[ListedProject]:
    """Lists the organization's projects, newest first. An API key with `projectIds` gets only those."""
    codec = CursorCodec(cursor, "listProjects", access.organization_id)
    only = access.project_ids
    page, plan = access.read_with_plan(
        lambda: (
            projects.list_projects(access.organization_id, limit, codec.after)
            if only is None
            else key_rules.list_projects(only, limit, codec.after)
        )
    )
    organization = access.membership
    listed = [ListedProject.row(organization, project.served_on(plan)) for project in page.items]
    return Page(listed, codec.cursor(page.next_sk))


@router.post("/v1/projects", summary="Create a project", status_code=201)
@refuses(rules.UnsupportedRegion, rules.UnusableOrigin, projects.BrandingNotIncluded, projects.ProjectLimitReached)
async def create_project(
    access: CreatesProject, body: ProjectCreate, idempotency_key: IdempotencyKey = None
) -> Answer[CreatedProject | ListedProject]:
    """Creates a project with its consent instance and its first websites.

    The slug is derived from the name. If another project has it, a short suffix is added.

    The older body shape has `organizationId`, and `trustedOrigins` instead of `websites`. It returns the older project
    shape. A body that mixes both shapes is rejected with 400.
    """
    access.enter(body.organization_id or None)
    shape = ListedProject if body.is_older_shape else CreatedProject

    def create(legs: Mapping[str, Leg]) -> CreatedProject | ListedProject:
        try:
            project = projects.create_project(
                access.organization_id,
                body.name,
                region=body.region,
                addresses=body.addresses,
                branding=body.consent.branding,
                extra_legs=legs,
            )
        except UnknownOrganization:
            raise Forbidden from None  # it was deleted after the caller's membership was read
        return shape.of(access.membership, project)

    return idempotent(access, "createProject", idempotency_key, body, create)


@router.get("/v1/projects/{projectId}", summary="Get a project")
async def get_project(access: ReadsProject) -> Project:
    """Returns a project, under the field names of both API generations."""
    return Project.of(access.membership, access.resource.served_on(access.plan))


@router.patch("/v1/projects/{projectId}", summary="Change a project")
@refuses(rules.UnusableOrigin, projects.BrandingNotIncluded, changes.WebsiteRemovalNeedsAdmin, rules.NoConsent)
async def update_project(access: ChangesProject, body: ProjectUpdate) -> ListedProject:
    """Changes the name, description, websites, or consent settings. Omitted fields keep their values.

    A website is a consent entry, or audited, or both. `websites` is the complete new list of all websites, and
    `consent.trustedOrigins` that of the consent entries. A website that the list omits is removed, which needs the role
    `admin` or `owner`. API keys may remove websites.

    An audited website that the list omits stays in `websites`, so consent still loads on it, but it is no longer a
    consent entry. Delete it with `DELETE /v1/projects/{projectId}/websites/{websiteId}`, which deletes its audits.
    """
    change = _read_change(body)
    access.enter()
    if "consent" in body.model_fields_set:
        rules.get_consent(access.resource)
    may_remove = access.membership.role != "member"
    project = changes.update_project(access.resource, change, may_remove_websites=may_remove)
    return ListedProject.of(access.membership, project.served_on(access.plan))


@router.delete("/v1/projects/{projectId}", summary="Delete a project")
async def delete_project(access: DeletesOfProject) -> DeletedProject:
    """Deletes a project, with its consent instance, its websites and their audits, and its vendors."""
    project = projects.delete_project(access.resource, access.principal.user_id)
    return DeletedProject(
        deleted=True,
        project_id=project.project_id,
        deleted_websites=len(project.websites),
        deleted_audits=project.audit_count,
    )


@router.get("/v1/projects/{projectId}/consent", summary="Get a project's consent instance")
@refuses(rules.NoConsent)
async def get_project_consent(access: ReadsProject) -> ListedConsent:
    """Returns the project's consent instance in the older shape."""
    project = access.resource.served_on(access.plan)
    return ListedConsent.of(access.membership, project, rules.get_consent(project))


@router.delete("/v1/projects/{projectId}/websites/{websiteId}", summary="Delete a website of a project")
@refuses(changes.LastTrustedWebsite)
async def delete_website(access: DeletesOfProject, website_id: WebsiteId) -> DeletedWebsite:
    """Deletes a website of a project. The consent runtime stops allowing its origin.

    The audits that use the website are deleted along with their schedules. Their past runs are kept, and their open
    findings are resolved. The last consent entry can't be deleted, even if there are audited websites that aren't
    consent entries.
    """
    deleted_audits = changes.delete_website(access.resource, website_id, access.principal.user_id)
    return DeletedWebsite(website_id=website_id, deleted_audits=deleted_audits)


def _read_change(body: ProjectUpdate) -> changes.ProjectChange:
    given, consent = body.model_fields_set, body.consent
    change = changes.ProjectChange()
    if name := body.project_name or body.name:
        change["name"] = name
    if "description" in given:
        change["description"] = body.description
    if "branding" in consent.model_fields_set:
        change["branding"] = consent.branding
    if "websites" in given:
        change["websites"] = [*dict.fromkeys(body.websites)]
    elif "trusted_origins" in consent.model_fields_set:
        change["trusted_origins"] = [*dict.fromkeys(consent.trusted_origins)]
    return change
