# Made from _async/_client.py by `make sdk`: edit that file.
"""The client."""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import httpx

from openassent._settings import base_address, bearer_token, header_value
from openassent._sync._core import Core
from openassent._sync.api_keys import ApiKeys
from openassent._sync.code_audit import Links, Repositories, Scans
from openassent._sync.device import Device
from openassent._sync.inbox import Inbox
from openassent._sync.organizations import (
    AuditLog,
    BillingOverview,
    Invitations,
    Me,
    Members,
    Organizations,
    Sessions,
)
from openassent._sync.projects import Projects, Vendors
from openassent._sync.system import Feedback, HealthCheck, Openapi, Regions, Requests
from openassent._sync.webhook_endpoints import WebhookEndpoints
from openassent._version import __version__
from openassent.errors import InvalidArgument


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = self._header
        yield request


def _connections(**options: Any) -> httpx.Client:
    with contextlib.suppress(httpx.InvalidURL, ImportError, ValueError):
        return httpx.Client(**options)
    # Raised here, because the error's own text can have the proxy's password.
    raise InvalidArgument("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, or NO_PROXY has an address that can't be used.")


class Assent:
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
        transport: httpx.BaseTransport | None = None,
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
        core = Core(http, organization=organization, max_retries=max_retries)
        self._core = core
        self.api_keys = ApiKeys(core)
        self.audit_log = AuditLog(core)
        self.billing = BillingOverview(core)
        self.device = Device(core)
        self.feedback = Feedback(core)
        self.health = HealthCheck(core)
        self.inbox = Inbox(core)
        self.invitations = Invitations(core)
        self.links = Links(core)
        self.me = Me(core)
        self.members = Members(core)
        self.openapi = Openapi(core)
        self.organizations = Organizations(core)
        self.projects = Projects(core)
        self.regions = Regions(core)
        self.repositories = Repositories(core)
        self.requests = Requests(core)
        self.scans = Scans(core)
        self.sessions = Sessions(core)
        self.vendors = Vendors(core)
        self.webhook_endpoints = WebhookEndpoints(core)

    def close(self) -> None:
        """Closes the connections."""
        self._core.http.close()

    def __enter__(self) -> "Assent":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={str(self._core.http.base_url)!r})"
