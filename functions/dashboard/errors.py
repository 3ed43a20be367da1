"""Renders errors as pages (`controlplane.platform.http.callers.Dialect`)."""

from typing import Any
from urllib.parse import quote

from fastapi import Response

from controlplane.access.web_session import SignedOut, WebSession
from controlplane.platform.core import acting
from controlplane.platform.core.errors import ApiError, MethodNotAllowed, NotFound, RouteNotFound
from controlplane.platform.http.callers import Caller
from dashboard.navigation import own_page
from dashboard.pages import address, page, redirect

_TITLES = {
    400: "This request can't be used",
    401: "Your session has ended",
    403: "Your role doesn't allow this",
    404: "There is no such page",
    405: "This address can't be used like that",
    409: "Something has changed in the meantime",
    413: "This is too large",
    415: "This could not be read",
    429: "Too many requests",
    500: "Something failed on our side",
    503: "The service is not available",
}


class NoPage(NotFound):
    """The page doesn't exist, or its subject was deleted or belongs to another organization."""

    message = "The link may be mistyped, or the page was moved or deleted."


class OnlyTakesForms(RouteNotFound):
    """The path has no page. It only accepts the form of the page one level up."""


class PageLook:
    """Renders an error as a page, or as a redirect: to the sign-in, or from the address of a form to its page."""

    def read(self, body: bytes) -> dict[str, Any]:
        raise NotImplementedError("pages declare no body")

    def success(self, content: Any) -> Response:
        raise NotImplementedError("pages build their own responses")

    def failure(self, error: ApiError, caller: Caller) -> Response:
        session = caller if isinstance(caller, WebSession) else None
        if isinstance(error, OnlyTakesForms) and session is not None:
            return redirect(session.path.rpartition("/")[0] or "/")
        target, leads_on = None, False
        if isinstance(error, SignedOut):
            leads_on = error.method == "GET"
            if leads_on and not error.may_follow_form:
                return redirect(_sign_in(error.target))
            target = error.target if leads_on else error.target.partition("?")[0]
        elif session is not None and session.path.startswith("/sign-in") and not isinstance(error, NotFound):
            target = "/"
        if _speaks_of_the_api(error):
            error = NoPage()
        elif isinstance(error, MethodNotAllowed):
            error.public = "Open the page that you came from, and use its links and buttons."
        sign_in = address(_sign_in(target)) if target else None
        return page(
            "refused",
            session,
            error,
            organization=None,
            account=session.known_account if session else None,
            title=error.title or _TITLES.get(error.status, _TITLES[500]),
            sign_in=sign_in,
            leads_on_to=sign_in if leads_on else None,
            request_id=acting.request_id(),
        )


def _speaks_of_the_api(error: ApiError) -> bool:
    """Returns whether the error only has the API's general text, which fits any path or resource."""
    return next(kind for kind in type(error).__mro__ if "message" in vars(kind)) in {NotFound, RouteNotFound}


def _sign_in(target: str) -> str:
    """Returns the path of the sign-in that leads back to the target."""
    return f"/sign-in?return_to={quote(own_page(target), safe='')}"
