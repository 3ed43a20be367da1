"""Projects and their vendors."""

from collections.abc import Sequence

from openassent._async._pages import AsyncPages
from openassent._async._resource import AsyncResource
from openassent._calls import OMIT, Omit, change, create, get, given, nullable, path
from openassent.models import (
    CreatedProject,
    DeletedProject,
    DeletedWebsite,
    ListedConsent,
    ListedProject,
    Project,
    ProjectVendor,
    VendorDecision,
)
from openassent.values import Branding, Decision, RegionId


class AsyncProjects(AsyncResource):
    """Projects, with their websites and consent instance."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, organization_id: str | None = None
    ) -> AsyncPages[ListedProject]:
        """Lists the organization's projects, newest first.

        limit: the size of a page, 1 to 100; 50 by default. It doesn't limit the iteration.
        """
        query = {"limit": limit, "organizationId": self._organization(organization_id)}
        return AsyncPages(self._core, "/v1/projects", ListedProject, cursor, query)

    async def create(
        self,
        *,
        name: str,
        region: RegionId,
        websites: Sequence[str] | None = None,
        branding: Branding | None = None,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CreatedProject:
        """Creates a project with its consent instance and its first websites.

        region: an `id` of `client.regions.list()`.
        websites: addresses such as `shop.example.com`, `*.example.com`, or `localhost:3000`.
        branding: of the banner. `none` raises PlanRequired unless the plan includes it.
        """
        consent = None if branding is None else {"branding": branding}
        body = given(name=name, region=region, websites=websites, consent=consent)
        organization_id = self._organization(organization_id)
        call = create("/v1/projects", body, idempotency_key, dry_run=dry_run, organizationId=organization_id)
        return await self._core.result(call, CreatedProject)

    async def get(self, project_id: str) -> Project:
        """Returns a project."""
        return await self._core.result(get(path("/v1/projects/{}", project_id)), Project)

    async def update(
        self,
        project_id: str,
        *,
        name: str | None = None,
        description: str | Omit | None = OMIT,
        websites: Sequence[str] | None = None,
        branding: Branding | None = None,
        dry_run: bool = False,
    ) -> ListedProject:
        """Changes a project. Omitted fields stay as they are.

        name: a new name also changes the slug.
        description: None removes it.
        websites: the complete new list. Audited websites that it omits stay; use `delete_website` for these.
        """
        consent = None if branding is None else {"branding": branding}
        body = given(projectName=name, websites=websites, consent=consent) | nullable(description=description)
        call = change("PATCH", path("/v1/projects/{}", project_id), body, dry_run=dry_run)
        return await self._core.result(call, ListedProject)

    async def delete(self, project_id: str, *, dry_run: bool = False) -> DeletedProject:
        """Deletes a project, with its consent instance, its websites and their audits, and its vendors."""
        call = change("DELETE", path("/v1/projects/{}", project_id), dry_run=dry_run)
        return await self._core.result(call, DeletedProject)

    async def consent(self, project_id: str) -> ListedConsent:
        """Returns the project's consent instance."""
        return await self._core.result(get(path("/v1/projects/{}/consent", project_id)), ListedConsent)

    async def delete_website(self, project_id: str, website_id: str, *, dry_run: bool = False) -> DeletedWebsite:
        """Deletes a website and its audits. Raises Conflict if it is the last one that consent trusts."""
        url = path("/v1/projects/{}/websites/{}", project_id, website_id)
        return await self._core.result(change("DELETE", url, dry_run=dry_run), DeletedWebsite)


class AsyncVendors(AsyncResource):
    """Vendors that were detected on a project."""

    def list(
        self, project_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[ProjectVendor]:
        """Lists the vendors that were detected on the project or decided on, by `vendor_id`."""
        return AsyncPages(
            self._core, path("/v1/projects/{}/vendors", project_id), ProjectVendor, cursor, {"limit": limit}
        )

    async def decide(
        self, project_id: str, vendor_id: str, *, decision: Decision, dry_run: bool = False
    ) -> VendorDecision:
        """Approves or ignores a vendor, and resolves its finding in the inbox. Later scans keep the decision."""
        url = path("/v1/projects/{}/vendors/{}/decision", project_id, vendor_id)
        return await self._core.result(change("POST", url, {"decision": decision}, dry_run=dry_run), VendorDecision)
