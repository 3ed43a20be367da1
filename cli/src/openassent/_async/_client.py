"""The client."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from openassent._async import _operations
from openassent._async._core import AsyncCore
from openassent._async.audits import AsyncAudits
from openassent._async.device import AsyncDevice
from openassent._async.inbox import AsyncInbox
from openassent._async.scans import AsyncScans
from openassent._calls import Call
from openassent._settings import base_address, bearer_token, header_value
from openassent._version import __version__
from openassent.errors import InvalidArgument


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = self._header
        yield request


def _connections(**options: Any) -> httpx.AsyncClient:
    with contextlib.suppress(httpx.InvalidURL, ImportError, ValueError):
        return httpx.AsyncClient(**options)
    # Raised here, because the error's own text can have the proxy's password.
    raise InvalidArgument("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, or NO_PROXY has an address that can't be used.")


class AsyncAssent:
    """A client of the API. Close it after use, or use it as a context manager; it keeps connections open.

    A request that failed is sent again if that is safe: reads, deletions, and everything with an idempotency key, which
    every creation has by default. The pauses are random and grow, and they honor `Retry-After`. Other changes are
    repeated only if the first request had no effect. If the response to a deletion was lost, its repetition can raise
    NotFound.

    api_key: an API key or a user token. Without it, only operations that need no credential succeed.
    base_url: the address of the service.
    organization: the ID of the organization to act in, for operations that aren't given another one.
    max_retries: how often a failed request is sent again at most. Zero never retries.
    timeout: the seconds to wait for a connection, and for each part of a response.
    transport: replaces the network, for tests.
    auth: authenticates requests, in place of `api_key`: an `httpx.Auth` that refreshes tokens, for example.
    user_agent: identifies your program in front of this package, such as `shop/1.2`.

    White space around `api_key` and `base_url` is removed. Raises InvalidArgument for those that can't be used.
    Every operation can raise ApiError, ConnectionFailed, and MalformedResponse; all of them are AssentErrors.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        organization: str | None = None,
        max_retries: int = 3,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        auth: httpx.Auth | None = None,
        user_agent: str | None = None,
    ) -> None:
        if api_key is not None and auth is not None:
            raise ValueError("give either api_key or auth, not both")
        address = base_address(base_url)
        if api_key is not None:
            auth = _Bearer(bearer_token(api_key, "The API key"))
        agents = [] if user_agent is None else [header_value(user_agent, "The user agent")]
        headers = {"Accept": "application/json", "User-Agent": " ".join([*agents, f"assent-python/{__version__}"])}
        http = _connections(base_url=address, auth=auth, headers=headers, timeout=timeout, transport=transport)
        core = AsyncCore(http, organization=organization, max_retries=max_retries)
        self._core = core
        self.api_keys = _operations.AsyncApiKeys(core)
        self.audit_log = _operations.AsyncAuditLog(core)
        self.audits = AsyncAudits(core)
        self.billing = _operations.AsyncBilling(core)
        self.consent_instances = _operations.AsyncConsentInstances(core)
        self.device = AsyncDevice(core)
        self.feedback = _operations.AsyncFeedback(core)
        self.health = _operations.AsyncHealth(core)
        self.inbox = AsyncInbox(core)
        self.invitations = _operations.AsyncInvitations(core)
        self.links = _operations.AsyncLinks(core)
        self.me = _operations.AsyncMe(core)
        self.members = _operations.AsyncMembers(core)
        self.openapi = _operations.AsyncOpenapi(core)
        self.organizations = _operations.AsyncOrganizations(core)
        self.projects = _operations.AsyncProjects(core)
        self.regions = _operations.AsyncRegions(core)
        self.repositories = _operations.AsyncRepositories(core)
        self.requests = _operations.AsyncRequests(core)
        self.scans = AsyncScans(core)
        self.sessions = _operations.AsyncSessions(core)
        self.vendors = _operations.AsyncVendors(core)
        self.webhook_endpoints = _operations.AsyncWebhookEndpoints(core)

    async def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Sends a request that has no method here, and returns the JSON object of its response.

        path: below the base URL, without a query: `/v1/projects`. query: its `organizationId` replaces the client's
        organization. Reads, PUT, and DELETE are repeated if they fail.
        """
        if not re.match(r"/(?!/)", path):
            raise InvalidArgument("The path must begin with one slash, such as /v1/projects.")
        chosen = {"organizationId": self._core.organization} if self._core.organization else {}
        call = Call(method, path, {**chosen, **(query or {})}, body, repeatable=method in {"GET", "PUT", "DELETE"})
        return await self._core.document(call)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._core.http.aclose()

    async def __aenter__(self) -> "AsyncAssent":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={str(self._core.http.base_url)!r})"
