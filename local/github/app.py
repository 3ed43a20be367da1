"""The stand-in over HTTP: GitHub's endpoints under /api/v3, and pages for people."""

from fastapi import APIRouter, FastAPI
from fastapi.requests import Request
from fastapi.responses import HTMLResponse

from local import pages
from local.github import api, secret_scanning
from local.github import pages as github_pages
from local.github.host import API, HostRoute
from local.github.records import Denied
from local.github.secret_scanning import SecretScanning
from local.github.stand_in import StandIn
from local.github.webhooks import Webhooks

_unknown = APIRouter(route_class=HostRoute)


@_unknown.api_route(API + "{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def refuse() -> None:
    raise Denied


def create_app(stand_in: StandIn, webhooks: Webhooks | None = None, scanning: SecretScanning | None = None) -> FastAPI:
    """Returns the ASGI app. It can be mounted at any path: the URLs in its responses follow.

    webhooks: sends what changes on the pages. scanning: signs reports of leaked secrets.
    """
    app = FastAPI(openapi_url=None)
    app.state.stand_in = stand_in
    app.state.webhooks = webhooks or Webhooks()
    app.state.scanning = scanning or SecretScanning()

    @app.exception_handler(Denied)
    def show_missing(request: Request, _: Denied) -> HTMLResponse:
        return pages.missing(request)

    for router in (api.router, api.downloads, secret_scanning.keys, _unknown):
        app.include_router(router)
    for router in (secret_scanning.router, github_pages.router):
        app.include_router(router)
    return app
