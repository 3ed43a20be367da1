"""Renders the templates to HTML responses, with the headers that every page has. Contains no business rules.

The content security policy allows scripts, styles, and requests only from this host, and no inline code.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, ModuleLoader, StrictUndefined

from controlplane.access.sign_in import AddressNotAccepted, AddressNotVerified, AnotherIdentity
from controlplane.access.web_session import FORM_TOKEN, SignedOut, WebSession, form_token
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import acting
from controlplane.platform.core.errors import ApiError, PlanLimitReached, PlanRequired, RouteNotFound
from controlplane.platform.core.plans import REGIONS
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import consent_runtime_url, dashboard_base_url, public_base_url
from controlplane.platform.http.callers import Caller
from dashboard.errors import NoPage, ProviderUnavailable, SignInRejected
from dashboard.navigation import list_account_links, list_account_tabs, list_areas
from dashboard.sign_in import SignInCanceled, SignInLost, own_page

_HERE = Path(__file__).parent
# The styles that those of single screens build on.
_FIRST = "style.css"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_KEPT_FOR_EVER = "public, max-age=31536000, immutable"
_TITLES = {
    400: "This request can't be used",
    401: "Your session has ended",
    403: "Your role doesn't allow this",
    404: "There is no such page",
    409: "Something has changed in the meantime",
    413: "This is too large",
    415: "This could not be read",
    429: "Too many requests",
    500: "Something failed on our side",
    503: "The service is not available",
}

# The build replaces the templates by modules (scripts/template_code.py).
_SOURCES = _HERE / "templates"
_templates = Environment(
    loader=FileSystemLoader(_SOURCES) if _SOURCES.is_dir() else ModuleLoader(_HERE.with_name("dashboard_templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def address(path: str) -> str:
    """Returns the path of a dashboard page, including the stage if the API has one."""
    return urlsplit(dashboard_base_url()).path + path


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file. Its name contains a hash of its content, so browsers can cache it forever."""

    name: str
    media_type: str
    content: bytes


@cache
def asset(kind: Literal["css", "js"]) -> Asset:
    """Returns the pages' style sheet or script: all files of that kind in `static`, by name, after `style.css`."""
    paths = sorted((_HERE / "static").glob(f"*.{kind}"), key=lambda path: (path.name != _FIRST, path.name))
    content = b"\n".join(path.read_bytes() for path in paths)
    media_type = {"css": "text/css", "js": "text/javascript"}[kind]
    return Asset(f"pages.{hashlib.sha256(content).hexdigest()[:16]}.{kind}", f"{media_type}; charset=utf-8", content)


def asset_response(name: str) -> Response:
    """Returns the static file with this name. Raises RouteNotFound, also if the name is that of an older version."""
    found = next((it for it in (asset("css"), asset("js")) if it.name == name), None)
    if found is None:
        raise RouteNotFound
    headers = {"content-type": found.media_type, "cache-control": _KEPT_FOR_EVER}
    return Response(found.content, headers={**headers, "x-content-type-options": "nosniff"})


def icon_response() -> Response:
    headers = {"content-type": "image/svg+xml", "cache-control": "public, max-age=86400"}
    return Response(
        (_HERE / "static" / "icon.svg").read_bytes(), headers={**headers, "x-content-type-options": "nosniff"}
    )


def _date(seconds: int) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%B} {moment.day}, {moment.year}"


def _day(timestamp: str) -> str:
    return _date(int(datetime.fromisoformat(timestamp).timestamp()))


def _minute(timestamp: str) -> str:
    return f"{_day(timestamp)}, {datetime.fromisoformat(timestamp):%H:%M} UTC"


def _hour(timestamp: str) -> str:
    """Formats a timestamp that is accurate to the hour, such as a credential's last use."""
    return f"{_day(timestamp)}, between {timestamp[11:13]}:00 and {timestamp[11:13]}:59 UTC"


def _counted(number: int, nouns: str) -> str:
    """Formats a number with its noun: `12 files` or, if it is one, `1 file`."""
    return f"{number} {nouns.removesuffix('s') if number == 1 else nouns}"


def _upgrade_contact() -> str | None:
    """Returns the email address or the page of those who change plans, or None."""
    return settings.upgrade_contact or settings.contact_email


_templates.globals.update(
    address=address,
    brand=settings.service_brand.capitalize(),
    consent_runtime_url=consent_runtime_url,
    consent_runtime_version=settings.consent_runtime_version,
    regions=REGIONS,
    support=settings.contact_email,
    token_field=FORM_TOKEN,
    upgrade_contact=_upgrade_contact,
)
_templates.filters.update(counted=_counted, date=_date, day=_day, hour=_hour, minute=_minute)


def compile_templates(folder: Path) -> None:
    """Writes every template as a module of the folder, for the build."""
    _templates.compile_templates(folder, zip=None, ignore_errors=False)


def page(
    template: str,
    session: WebSession | None = None,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
    **content: Any,
) -> Response:
    """Renders the template to a response. All content is escaped.

    failure: the error that the page shows as `problem`. It sets the response's status and adds its headers.
    done: the change that the page confirms.
    content: what the template shows. `organization`, a membership, and `account`, by default the session's, also
    determine the header.
    """
    signed_in = session is not None and session.access is not None
    if session is not None and signed_in and "account" not in content:
        content["account"] = session.account
    menus = _menus(content) if signed_in else {"tabs": []}
    text = _templates.get_template(f"{template}.html").render(
        style=address(f"/assets/{asset('css').name}"),
        script=address(f"/assets/{asset('js').name}"),
        signed_in=signed_in,
        form_token=form_token(session.secret) if session is not None and signed_in else "",
        reference=f"{public_base_url()}/docs",
        devices_offered=settings.device_authorization_enabled,
        problem=failure.public if failure else None,
        refused_by_plan=isinstance(failure, (PlanRequired, PlanLimitReached)),
        done=done,
        **menus,
        **content,
    )
    if failure is None:
        return Response(text, 200, HEADERS)
    return Response(text, failure.status, {**HEADERS, **failure.headers})


def _menus(content: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of a signed-in person's header. The account is None if it couldn't be read."""
    organization: Membership | None = content.get("organization")
    account: Account | None = content["account"]
    if organization is not None:
        tabs = list_areas(organization)
    else:
        shown = list_account_tabs()
        tabs = shown if content.get("current") in {tab.path for tab in shown} else []
    return {
        "tabs": tabs,
        "memberships": account.memberships if account else [],
        "person": account.profile if account else None,
        "account_links": list_account_links(),
    }


def download(name: str, text: str, media_type: str) -> Response:
    """Returns a file. The name is reduced to characters that need no escaping in the header."""
    safe = _UNSAFE.sub("-", name)
    headers = {**HEADERS, "content-type": media_type, "content-disposition": f'attachment; filename="{safe}"'}
    return Response(text, 200, headers)


def redirect(location: str, cookies: list[str] | None = None, status: int = 303) -> Response:
    """Returns a redirect. The browser follows a 303 with GET, and a 307 with the same method."""
    response = Response(b"", status, {**HEADERS, "location": location})
    for cookie in cookies or []:
        response.headers.append("set-cookie", cookie)
    return response


def sign_in_address(target: str) -> str:
    return f"{address('/sign-in')}?return_to={quote(own_page(target), safe='')}"


class PageLook:
    """Renders errors as a page, or as a redirect to the sign-in (`controlplane.platform.http.callers.Dialect`)."""

    def read(self, body: bytes) -> dict[str, Any]:
        raise NotImplementedError("pages declare no body")

    def success(self, content: Any) -> Response:
        raise NotImplementedError("pages build their own responses")

    def failure(self, error: ApiError, caller: Caller) -> Response:
        if isinstance(error, SignedOut) and error.method == "GET":
            return redirect(sign_in_address(error.target))
        if type(error) is RouteNotFound:
            error = NoPage()
        again = sign_in_address(error.target.partition("?")[0]) if isinstance(error, SignedOut) else None
        session = caller if isinstance(caller, WebSession) else None
        return page(
            "refused",
            session,
            failure=error,
            account=session.known_account if session else None,
            title=error.title or _TITLES.get(error.status, _TITLES[500]),
            sign_in=again or sign_in_address("/") if isinstance(error, _OF_SIGN_IN) else again,
            request_id=acting.request_id(),
        )


_OF_SIGN_IN = (
    SignInLost,
    SignInCanceled,
    SignInRejected,
    AddressNotVerified,
    AddressNotAccepted,
    AnotherIdentity,
    ProviderUnavailable,
)
