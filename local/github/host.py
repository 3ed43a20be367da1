"""Calls of the stand-in's endpoints: the permissions of a request, and the responses to refusals."""

from email.utils import formatdate
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from controlplane.platform.core import clock
from local import pages
from local.github import shapes
from local.github.records import Denied
from local.github.repositories import GitRepository, stable_id
from local.github.stand_in import StandIn, Token

API = "/api/v3"


# These are asynchronous because FastAPI uses a thread for others.
async def _stand_in(request: Request) -> StandIn:
    found: StandIn = request.app.state.stand_in
    return found


async def _base(request: Request) -> str:
    return pages.base_url(request)


Host = Annotated[StandIn, Depends(_stand_in)]
Base = Annotated[str, Depends(_base)]


async def check_app(host: Host, authorization: Annotated[str, Header()] = "") -> None:
    host.check_app(authorization)


async def check_person(host: Host, authorization: Annotated[str, Header()] = "") -> None:
    host.accounts.check(authorization)


async def _token(host: Host, authorization: Annotated[str, Header()] = "") -> Token:
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
    """A route of the REST API. Its refusals have GitHub's shape, and its responses GitHub's headers."""

    def get_route_handler(self) -> Any:
        respond = super().get_route_handler()
        path = self.path_format.removeprefix(API)

        async def handle(request: Request) -> Response:
            try:
                response = await (await _stand_in(request)).respond(request, f"{request.method} {path}", respond)
            except Denied as denied:
                response = JSONResponse(shapes.problem(denied.message, denied.status), denied.status)
            except RequestValidationError as invalid:
                is_path = invalid.errors()[0]["loc"][0] == "path"
                status, message = (404, "Not Found") if is_path else (422, "Validation Failed")
                response = JSONResponse(shapes.problem(message, status), status)
            if "Date" not in response.headers:
                response.headers["Date"] = formatdate(clock.now(), usegmt=True)
                response.headers["X-GitHub-Request-Id"] = f"LOCAL:{stable_id(request.url.path):X}"
            return response

        return handle
