"""The GitHub stand-in of `make run`, with faults. Only Python code can switch them on; no request has an effect."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from controlplane.platform.core import clock
from local.github import shapes
from local.github.host import API
from local.github.records import Denied, StoredIssue
from local.github.repositories import GitRepository
from local.github.stand_in import Respond, StandIn, Token


@dataclass(slots=True)
class Exchange:
    """A request to the REST API, by its path there, and the response once there is one."""

    operation: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str] = field(repr=False)
    body: Any = field(repr=False)
    status: int = 0
    answer: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that replaces the response to one request.

    `takes_effect`: the request is carried out first, and only its response is lost. `hang_seconds` delays the
    response. `cut_after_bytes` ends the connection in the middle of the body.
    """

    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Any = None
    takes_effect: bool = False
    hang_seconds: float = 0
    cut_after_bytes: int | None = None


@dataclass(slots=True)
class Quota:
    """The requests that an installation has left, and when their number is reset, in Unix seconds."""

    left: int
    resets_at: int


@dataclass(slots=True)
class Faults:
    """The states of a code host that requests fail in. Repositories are named as owner/name.

    list_lag_seconds: how much later than its creation an issue appears in the list. withheld: permissions, by
    installation, that its owner has not granted. removed: repositories that the installation no longer includes.
    renamed: the current names of repositories. quotas: without one, an installation's requests aren't counted.
    """

    list_lag_seconds: float = 0
    suspended: set[int] = field(default_factory=set)
    withheld: dict[int, set[str]] = field(default_factory=dict)
    without_issues: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    quotas: dict[int, Quota] = field(default_factory=dict)
    # By operation ("POST /repos/{owner}/{repo}/issues"). Each affects one request, in order.
    _waiting: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))

    def add(self, operation: str, *faults: Fault) -> None:
        self._waiting[operation].extend(faults)

    def take(self, operation: str) -> Fault | None:
        waiting = self._waiting[operation]
        return waiting.popleft() if waiting else None


class FaultyStandIn(StandIn):
    """Has faults, and records the latest requests, the oldest first.

    exchanges: those that have a response, except archives, which are too large.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.faults = Faults()
        self.requests: deque[Exchange] = deque(maxlen=200)
        self.exchanges: list[Exchange] = []

    async def respond(self, request: Request, operation: str, respond: Respond) -> Response:
        body, query, headers = await request.body(), dict(request.query_params), dict(request.headers)
        sent = json.loads(body) if body else None
        _, is_api, path = request.scope["raw_path"].decode().partition(API)
        exchange = Exchange(operation, request.method, path, query, headers, sent)
        self.requests.append(exchange)
        response = await self._respond_or_fail(request, operation, respond)
        if is_api:
            exchange.status, exchange.answer = response.status_code, bytes(getattr(response, "body", b""))
            self.exchanges.append(exchange)
        return response

    async def _respond_or_fail(self, request: Request, operation: str, respond: Respond) -> Response:
        fault = self.faults.take(operation)
        if fault is None:
            return await self._respond(request, operation, respond)
        if fault.cut_after_bytes is not None:
            whole = await self._respond(request, operation, respond)
            return StreamingResponse(_cut(whole, fault.cut_after_bytes), headers={"Content-Length": "1000000000"})
        if fault.takes_effect:
            with suppress(Denied):
                await self._respond(request, operation, respond)
        await asyncio.sleep(fault.hang_seconds)
        headers = {"Date": formatdate(clock.now(), usegmt=True), **fault.headers}
        return JSONResponse(fault.content or shapes.problem("Server Error", fault.status), fault.status, headers)

    async def _respond(self, request: Request, operation: str, respond: Respond) -> Response:
        former = f"{request.path_params.get('owner')}/{request.path_params.get('repo')}"
        token = self.find_token(request.headers.get("Authorization", ""))
        quota = self.faults.quotas.get(token.installation_id) if token else None
        if quota is None or quota.resets_at <= clock.now():
            quota = Quota(1, 0)
        try:
            self._spend(quota)
            if former in self.faults.renamed:
                return _redirect(request, former, self.faults.renamed[former])
            if operation == "POST /repos/{owner}/{repo}/issues":
                self._check_issues(former)
            response = await respond(request)
        except Denied as denied:
            response = JSONResponse(shapes.problem(denied.message, denied.status), denied.status)
        if quota.resets_at:
            response.headers["X-RateLimit-Remaining"] = str(quota.left)
            response.headers["X-RateLimit-Reset"] = str(quota.resets_at)
        return response

    @staticmethod
    def _spend(quota: Quota) -> None:
        if quota.left == 0:
            raise Denied(403, "API rate limit exceeded")
        quota.left -= 1

    def _check_issues(self, full_name: str) -> None:
        if full_name in self.faults.without_issues:
            raise Denied(410, "Issues has been disabled in this repository.")

    def is_suspended(self, installation_id: int) -> bool:
        return installation_id in self.faults.suspended

    def permissions(self, installation_id: int) -> dict[str, str]:
        withheld = self.faults.withheld.get(installation_id, set())
        return {name: level for name, level in super().permissions(installation_id).items() if name not in withheld}

    def list_granted(self, token: Token) -> list[GitRepository]:
        return [it for it in super().list_granted(token) if it.full_name not in self.faults.removed]

    def list_issues(self, owner: str, name: str) -> list[StoredIssue]:
        until = clock.now() - self.faults.list_lag_seconds
        return [it for it in super().list_issues(owner, name) if it.created_seconds <= until]


def _redirect(request: Request, former: str, renamed: str) -> Response:
    """Returns the redirect of a renamed repository: permanent for reads, with the same method for writes."""
    url = str(request.url).replace(f"/repos/{former}", f"/repos/{renamed}", 1)
    status = 301 if request.method == "GET" else 307
    return JSONResponse(shapes.problem("Moved Permanently", status) | {"url": url}, status, {"Location": url})


async def _cut(response: Response, length: int) -> AsyncIterator[bytes]:
    """Returns the first bytes of a body whose Content-Length is longer. The server ends the connection."""
    body = bytes(response.body) if not isinstance(response, StreamingResponse) else b""
    if isinstance(response, StreamingResponse):
        body = b"".join([bytes(chunk) async for chunk in response.body_iterator if not isinstance(chunk, str)])
    yield body[:length]
