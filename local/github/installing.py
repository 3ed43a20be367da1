"""Pages on which a person installs the App or confirms who they are, and the endpoint that redeems their codes."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Body
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from local import pages
from local.github.host import Base, Host
from local.github.records import Denied
from local.github.setup import APP_SLUG, CLIENT_ID, installation_id
from local.github.stand_in import StandIn

router = APIRouter()
_INSTALLATIONS = f"/github-apps/{APP_SLUG}/installations"


@router.get(_INSTALLATIONS + "/new")
def choose(request: Request, host: Host, base: Base) -> HTMLResponse:
    """Lists the accounts that the App can be installed in."""
    owners = sorted({it.owner for it in host.list_accessible()})
    links = [
        (f"{base}{_INSTALLATIONS}/{installation_id(owner)}?{request.url.query}", f"Install in {owner}")
        for owner in owners
    ]
    return pages.page(request, "github/links.html", f"Install {APP_SLUG}", links=links)


@router.get(_INSTALLATIONS + "/{number}")
def install(request: Request, host: Host, number: int, state: str = "") -> RedirectResponse:
    """Installs the App, and redirects back with a code, as if it requests the person's authorization then."""
    return _go_back(request, host, state, installation_id=str(number), setup_action="install")


@router.get("/login/oauth/authorize")
def authorize(request: Request, host: Host, client_id: str = "", state: str = "") -> RedirectResponse:
    if client_id != CLIENT_ID:
        raise Denied
    return _go_back(request, host, state)


def _go_back(request: Request, host: StandIn, state: str, **query: str) -> RedirectResponse:
    url = host.accounts.callback_url or f"{request.url.scheme}://{request.url.netloc}/github/callback"
    query |= {"code": host.accounts.issue_code()} | ({"state": state} if state else {})
    return RedirectResponse(f"{url}?{urlencode(query)}", 302)


@router.post("/login/oauth/access_token")
def redeem(host: Host, sent: Annotated[dict[str, str], Body()]) -> dict[str, str]:
    """Returns a token for the code. GitHub reports what is wrong with status 200."""
    is_client = host.is_client(sent.get("client_id", ""), sent.get("client_secret", ""))
    token = host.accounts.redeem(sent.get("code", "")) if is_client else None
    if token is None:
        error = "bad_verification_code" if is_client else "incorrect_client_credentials"
        return {"error": error, "error_description": "It is incorrect or expired."}
    return {"access_token": token, "token_type": "bearer", "scope": ""}
