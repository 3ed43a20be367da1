"""How the stand-in's endpoints are called: what a request may do, and the responses to refusals and faults."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from email.utils import formatdate
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute

from controlplane.platform.core import clock
from local import pages
from local.github import shapes
from local.github.faults import Fault, Quota
from local.github.records import Denied
from local.github.repositories import GitRepository, stable_id
from local.github.stand_in import Recorded, StandIn, Token

API = "/api/v3"

type _Respond = Callable[[Request], Awaitable[Response]]


def _stand_in(request: Request) -> StandIn:
    found: StandIn = request.app.state.stand_in
    return found


Host = Annotated[StandIn, Depends(_stand_in)]
Base = Annotated[str, Depends(pages.base_url)]


def check_app(host: Host, authorization: Annotated[str, Header()] = "") -> None:
    host.check_app(authorization)


def check_person(host: Host, authorization: Annotated[str, Header()] = "") -> None:
    host.accounts.check(authorization)


def _token(host: Host, authorization: Annotated[str, Header()] = "") -> Token:
    return host.check_token(authorization)


Installed = Annotated[Token, Depends(_token)]


def repository(permission: str, level: str = "read") -> Any:
    """Returns the parameter's default: the repository in the path, if the token has that permission."""

    def find(host: Host, token: Installed, owner: str, repo: str) -> GitRepository:
        return host.get_repository(token, owner, repo, permission, level)

    return Depends(find)


class _Page:
    """A page of a list."""

    def __init__(self, per_page: Annotated[int, Query(ge=1)] = 30, page: Annotated[int, Query(ge=1)] = 1) -> None:
        self.number = page
        self.end = page * min(100, per_page)
        self.start = self.end - min(100, per_page)

    def of[T](self, entries: list[T]) -> list[T]:
        return entries[self.start : self.end]


Page = Annotated[_Page, Depends()]


class HostRoute(APIRoute):
    """A route of the REST API. It records each request, and applies the faults that tests add to its operation."""

    def get_route_handler(self) -> Any:
        respond = super().get_route_handler()
        path = self.path_format.removeprefix(API)

        async def handle(request: Request) -> Response:
            host, operation = _stand_in(request), f"{request.method} {path}"
            body, headers = await request.body(), dict(request.headers)
            sent = json.loads(body) if body else None
            host.requests.append(
                Recorded(operation, request.method, request.url.path, dict(request.query_params), headers, sent)
            )
            fault = host.faults.take(operation)
            return await (_respond(request, respond) if fault is None else _fail(request, respond, fault))

        return handle


async def _respond(request: Request, respond: _Respond) -> Response:
    host = _stand_in(request)
    owner, repo = request.path_params.get("owner"), request.path_params.get("repo")
    renamed, quota = host.faults.renamed.get(f"{owner}/{repo}"), _find_quota(request, host)
    try:
        _spend(quota)
        response = _redirect(request, f"/repos/{owner}/{repo}", renamed) if renamed else await respond(request)
    except Denied as denied:
        response = JSONResponse(shapes.problem(denied.message, denied.status), denied.status)
    except RequestValidationError as invalid:
        status, message = (404, "Not Found") if invalid.errors()[0]["loc"][0] == "path" else (422, "Validation Failed")
        response = JSONResponse(shapes.problem(message, status), status)
    if quota is not None:
        response.headers["X-RateLimit-Remaining"] = str(quota.left)
        response.headers["X-RateLimit-Reset"] = str(quota.resets_at)
    response.headers["Date"] = formatdate(clock.now(), usegmt=True)
    response.headers["X-GitHub-Request-Id"] = f"LOCAL:{stable_id(request.url.path):X}"
    return response


def _find_quota(request: Request, host: StandIn) -> Quota | None:
    """Returns the installation's remaining quota if the request has its token and is counted."""
    token = host.find_token(request.headers.get("Authorization", ""))
    quota = host.faults.quotas.get(token.installation_id) if token else None
    return quota if quota is not None and quota.resets_at > clock.now() else None


def _spend(quota: Quota | None) -> None:
    if quota is not None and quota.left == 0:
        raise Denied(403, "API rate limit exceeded")
    if quota is not None:
        quota.left -= 1


def _redirect(request: Request, former: str, renamed: str) -> Response:
    """Returns the redirect of a renamed repository: permanent for reads, with the same method for writes."""
    url = str(request.url).replace(former, f"/repos/{renamed}", 1)
    status = 301 if request.method == "GET" else 307
    return JSONResponse(shapes.problem("Moved Permanently", status) | {"url": url}, status, {"Location": url})


async def _fail(request: Request, respond: _Respond, fault: Fault) -> Response:
    if fault.takes_effect or fault.cut_after_bytes is not None:
        response = await _respond(request, respond)
        if fault.cut_after_bytes is not None:
            return StreamingResponse(_cut(response, fault.cut_after_bytes), headers={"Content-Length": "1000000000"})
    await asyncio.sleep(fault.hang_seconds)
    headers = {"Date": formatdate(clock.now(), usegmt=True), **fault.headers}
    return JSONResponse(fault.content or shapes.problem("Server Error", fault.status), fault.status, headers)


async def _cut(response: Response, length: int) -> AsyncIterator[bytes]:
    """Returns the first bytes of a body whose Content-Length is longer. The server ends the connection."""
    body = response.body
    if isinstance(response, StreamingResponse):
        body = b"".join([bytes(chunk) async for chunk in response.body_iterator if not isinstance(chunk, str)])
    yield bytes(body)[:length]
