"""The service itself: its health, its regions, its documents, and what it decided."""

from typing import Any

from openassent._async._pages import AsyncPages
from openassent._async._resource import AsyncResource
from openassent._calls import create, get, given, path
from openassent.models import DecidedRequest, FeedbackDiscovery, FeedbackReceipt, Health, Region
from openassent.values import FeedbackCategory, FeedbackSurface


class AsyncHealthCheck(AsyncResource):
    """The health of the service."""

    async def get(self) -> Health:
        """Checks that the service and its database respond. Raises ServiceUnavailable if they don't."""
        return await self._core.result(get("/health", public=True), Health)


class AsyncRegions(AsyncResource):
    """The regions of projects."""

    def list(self) -> AsyncPages[Region]:
        """Lists the regions in which a project can be created."""
        return AsyncPages(self._core, "/v1/regions", Region, public=True)


class AsyncOpenapi(AsyncResource):
    """The OpenAPI document."""

    async def get(self) -> dict[str, Any]:
        """Returns the OpenAPI document of the service's version."""
        return await self._core.document(get("/openapi.json", public=True))


class AsyncRequests(AsyncResource):
    """Requests of the last 24 hours."""

    async def get(self, request_id: str, *, organization_id: str | None = None) -> DecidedRequest:
        """Returns the decision about a request, and its reasons. Requests that changed nothing leave no record.

        request_id: of an error, or of the header `X-Request-Id`.
        """
        call = get(path("/v1/requests/{}", request_id), organizationId=self._organization(organization_id))
        return await self._core.result(call, DecidedRequest)


class AsyncFeedback(AsyncResource):
    """Feedback on the service."""

    async def create(
        self,
        *,
        category: FeedbackCategory,
        message: str,
        surface: FeedbackSurface | None = None,
        expected: str | None = None,
        actual: str | None = None,
        reproduction: str | None = None,
        request_id: str | None = None,
        operation: str | None = None,
        client_name: str | None = None,
        client_version: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> FeedbackReceipt:
        """Reports an unexpected failure, misleading documentation, a missing capability, or a workaround.

        Don't include credentials, personal data, or customers' data. A report that is repeated on the same UTC day
        returns the first one's reference.
        """
        body = given(
            category=category,
            surface=surface,
            message=message,
            expected=expected,
            actual=actual,
            reproduction=reproduction,
            requestId=request_id,
            operation=operation,
            clientName=client_name,
            clientVersion=client_version,
        )
        call = create("/v1/feedback", body, idempotency_key, dry_run=dry_run)
        return await self._core.result(call, FeedbackReceipt)

    async def discovery(self) -> FeedbackDiscovery:
        """Returns the document that tells agents how to send feedback."""
        return await self._core.parsed(get("/.well-known/agent-feedback.json", public=True), FeedbackDiscovery)
