"""Installing the App, and finding out who installed it: pages for the person, and endpoints for the App."""

import html
import secrets
from collections.abc import Callable
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from local.github import pages, shapes
from local.github.call import Call, base_url, number
from local.github.repositories import GitRepository
from local.github.setup import APP_ID, APP_SLUG, CLIENT_ID, installation_id
from local.github.stand_in import Denied, StandIn


def _get_installation(call: Call) -> Response:
    call.stand_in.check_app(call.authorization)
    found = number(call.parameters["installation_id"])
    owner = call.stand_in.find_owner(found)
    if owner is None:
        raise Denied(404, "Not Found")
    return JSONResponse(_installation(call, owner))


def _installation(call: Call, owner: str) -> dict[str, object]:
    found = installation_id(owner)
    shape = shapes.installation(found, int(APP_ID), owner, call.stand_in.permissions(found), call.address)
    suspended_at = shapes.moment(0) if found in call.stand_in.faults.suspended else None
    return {**shape, "suspended_at": suspended_at}


def _list_installations(call: Call) -> Response:
    _check_person(call)
    owners = sorted({it.owner for it in _accessible(call.stand_in)})
    shown = [_installation(call, owner) for owner in _page_of(call, owners)]
    return JSONResponse({"total_count": len(owners), "installations": shown})


def _list_repositories(call: Call) -> Response:
    _check_person(call)
    found = number(call.parameters["installation_id"])
    accessible = [it for it in _accessible(call.stand_in) if installation_id(it.owner) == found]
    if not accessible:
        raise Denied(404, "Not Found")
    shown = []
    for repository in _page_of(call, accessible):
        writes = repository.full_name not in call.stand_in.accounts.read_only
        permissions = {"admin": writes, "maintain": writes, "push": writes, "triage": writes, "pull": True}
        shown.append({**shapes.repository(repository, call.address), "permissions": permissions})
    return JSONResponse({"total_count": len(accessible), "repositories": shown})


def _check_person(call: Call) -> None:
    """Raises Denied unless the request has the person's token."""
    if not call.stand_in.accounts.is_known(call.authorization):
        raise Denied(401, "Bad credentials")


def _accessible(stand_in: StandIn) -> list[GitRepository]:
    return [it for it in stand_in.repositories.list() if it.owner not in stand_in.accounts.strangers]


def _page_of[T](call: Call, entries: list[T]) -> list[T]:
    size, page = min(100, number(call.query.get("per_page", "30"))), number(call.query.get("page", "1"))
    return entries[(page - 1) * size : page * size]


OPERATIONS: dict[str, Callable[[Call], Response]] = {
    "GET /app/installations/{installation_id}": _get_installation,
    "GET /user/installations": _list_installations,
    "GET /user/installations/{installation_id}/repositories": _list_repositories,
}


def routes(stand_in: StandIn) -> list[Route]:
    """Returns the routes of the pages, and the endpoint that redeems codes, which isn't part of the REST API."""
    accounts = stand_in.accounts

    def callback(request: Request, **query: str) -> Response:
        url = accounts.callback_url or f"{request.url.scheme}://{request.url.netloc}/github/callback"
        state = request.query_params.get("state")
        return RedirectResponse(f"{url}?{urlencode(query | ({'state': state} if state else {}))}", 302)

    def choose(request: Request) -> Response:
        """Lists the accounts that the App can be installed in."""
        base = f"{base_url(request)}/github-apps/{APP_SLUG}/installations"
        query = html.escape(str(request.url.query))
        links = [
            f'<li><a href="{base}/{installation_id(owner)}?{query}">Install in {html.escape(owner)}</a></li>'
            for owner in sorted({it.owner for it in _accessible(stand_in)})
        ]
        return pages.document(f"Install {APP_SLUG}", f"<ul>{''.join(links)}</ul>")

    def install(request: Request) -> Response:
        """Installs the App, and redirects back with a code, as if it requests the person's authorization then."""
        found = str(request.path_params["number"])
        return callback(request, code=accounts.issue_code(), installation_id=found, setup_action="install")

    def authorize(request: Request) -> Response:
        if request.query_params.get("client_id") != CLIENT_ID:
            return Response("Not Found", 404)
        return callback(request, code=accounts.issue_code())

    async def redeem(request: Request) -> Response:
        body = await request.json()
        is_app = body.get("client_id") == CLIENT_ID and secrets.compare_digest(
            str(body.get("client_secret")), stand_in.client_secret()
        )
        token = accounts.redeem(body.get("code")) if is_app else None
        if token is None:  # GitHub reports it with status 200
            error = "bad_verification_code" if is_app else "incorrect_client_credentials"
            return JSONResponse({"error": error, "error_description": "It is incorrect or expired."})
        return JSONResponse({"access_token": token, "token_type": "bearer", "scope": ""})

    return [
        Route(f"/github-apps/{quote(APP_SLUG)}/installations/new", choose),
        Route(f"/github-apps/{quote(APP_SLUG)}/installations/{{number:int}}", install),
        Route("/login/oauth/authorize", authorize),
        Route("/login/oauth/access_token", redeem, methods=["POST"]),
    ]
