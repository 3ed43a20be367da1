"""Renders the templates to HTML responses, with the headers that every page has. Contains no business rules.

The content security policy allows scripts, styles, and requests only from this host, and no inline code.
"""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, ModuleLoader, StrictUndefined

from controlplane.access.web_session import FORM_TOKEN, WebSession
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError, PlanLimitReached, PlanRequired
from controlplane.platform.core.regions import aws_region
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import consent_backend_url, dashboard_base_url, public_base_url
from controlplane.scans.rules import rule_page
from dashboard.assets import asset
from dashboard.forms import ONCE, StillRunning
from dashboard.navigation import list_account_links, list_account_tabs, list_areas

_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
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

# The build replaces the templates by modules (scripts/precompile.py).
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


def _date(seconds: int) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%B} {moment.day}, {moment.year}"


def _day(timestamp: str) -> str:
    return _date(int(datetime.fromisoformat(timestamp).timestamp()))


def _minute(timestamp: str) -> str:
    return f"{_day(timestamp)}, {datetime.fromisoformat(timestamp):%H:%M} UTC"


def _hour(timestamp: str) -> str:
    """Formats a timestamp that is accurate to the hour, such as a credential's last use, in words."""
    hours = int(clock.now() - datetime.fromisoformat(timestamp).timestamp()) // 3600
    if hours < 1:
        return "In the last hour"
    return f"About {_counted(hours, 'hours')} ago" if hours < 24 else _day(timestamp)


def _counted(number: int, nouns: str) -> str:
    """Formats a number with its noun: `12 files` or, if it is one, `1 file`."""
    return f"{number} {nouns.removesuffix('s') if number == 1 else nouns}"


def _link(contact: str) -> str:
    """Returns the target of a link to a page or an email address."""
    return contact if "://" in contact else f"mailto:{contact}"


_templates.globals.update(
    address=address,
    brand=settings.service_brand.capitalize(),
    aws_region=aws_region,
    contact=lambda: settings.contact,
    consent_backend_url=consent_backend_url,
    once_field=ONCE,
    prices=lambda: settings.plan_prices,
    rule_page=rule_page,
    regions=lambda: {region.id: region.label for region in settings.regions},
    token_field=FORM_TOKEN,
)
_templates.filters.update(counted=_counted, date=_date, day=_day, hour=_hour, link=_link, minute=_minute)


def compile_templates(folder: Path) -> None:
    """Writes every template as a module of the folder, for the build."""
    _templates.compile_templates(folder, zip=None, ignore_errors=False)


def page(
    template: str,
    session: WebSession | None = None,
    failure: ApiError | None = None,
    *,
    done: str | Mapping[str, str] | None = None,
    **content: Any,
) -> Response:
    """Renders the template to a response. All content is escaped.

    failure: the error that the page shows as `problem`. It sets the response's status and adds its headers. The page
    also gets what was `entered` in the form.
    done: the change that the page confirms, or these texts by the value of the query's `done`.
    content: what the template shows. `organization` and `account`, by default the session's, also determine the header.
    `leads_on_to` is an address that the browser opens at once.
    """
    signed_in = session is not None and session.access is not None
    if session is not None:
        content = {"organization": session.membership, "is_admin": session.is_admin, **content}
        if signed_in and "account" not in content:
            content["account"] = session.account
        if isinstance(done, Mapping):
            done = done.get(session.parameters.get("done", ""))
    text = _templates.get_template(f"{template}.html").render(
        style=address(f"/assets/{asset('css').name}"),
        script=address(f"/assets/{asset('js').name}"),
        signed_in=signed_in,
        form_token=session.form_token if session is not None else "",
        reference=f"{public_base_url()}/docs",
        sign_up_offered=settings.self_sign_up,
        devices_offered=settings.device_authorization_enabled,
        problem=failure.public if failure else None,
        refused_by_plan=isinstance(failure, (PlanRequired, PlanLimitReached)),
        done=done,
        entered=session.form if session is not None and failure else {},
        once=_once(session, failure),
        **(_menus(content) if signed_in else {"tabs": []}),
        **content,
    )
    if failure is None:
        return Response(text, 200, _HEADERS)
    return Response(text, failure.status, {**_HEADERS, **failure.headers})


def _once(session: WebSession | None, failure: ApiError | None) -> str:
    """Returns the value with which a form takes effect once. A form that may be sent again keeps its value."""
    kept = session.form.get(ONCE) if session is not None and isinstance(failure, StillRunning) else None
    return kept or secrets.token_urlsafe(24)


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
    headers = {**_HEADERS, "content-type": media_type, "content-disposition": f'attachment; filename="{safe}"'}
    return Response(text, 200, headers)


def redirect(target: str, cookies: list[str] | None = None, status: int = 303) -> Response:
    """Redirects to a page's path, or to a URL. The browser follows a 303 with GET, and a 307 with the same method.

    A form can't lead to another origin, even by several redirects: Chromium applies `form-action` to each of them. A
    page that follows a form leads there with `leads_on_to` instead, which is a navigation of its own.
    """
    location = address(target) if target.startswith("/") else target
    response = Response(b"", status, {**_HEADERS, "location": location})
    for cookie in cookies or []:
        response.headers.append("set-cookie", cookie)
    return response


def redirect_within(organization: Membership, path: str) -> Response:
    """Redirects to a page of the organization. path: `/keys`, for example."""
    return redirect(f"/organizations/{organization.slug}{path}")
