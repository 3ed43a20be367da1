"""Renders the templates to HTML responses, with the headers that every page has. Contains no business rules.

The content security policy of the pages forbids scripts and resources of other hosts.
"""

import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from controlplane.core.errors import ApiError
from controlplane.core.regions import REGIONS
from controlplane.core.settings import settings
from controlplane.core.urls import consent_runtime_url, dashboard_base_url, public_base_url
from controlplane.http.web_session import FORM_TOKEN, SignedOut, WebSession, form_token
from controlplane.store.sign_in import AddressNotAccepted, AddressNotVerified, AnotherIdentity
from dashboard.errors import ProviderUnavailable, SignInRejected
from dashboard.sign_in import SignInCanceled, SignInLost, own_page

_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
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
# The file name contains a content hash, so browsers can cache the file forever.
_KEPT_FOR_EVER = "public, max-age=31536000, immutable"
_TITLES = {
    400: "This did not work",
    401: "Your session has ended",
    403: "This is not allowed",
    404: "There is no such page",
    409: "This did not work",
    413: "This is too large",
    415: "This could not be read",
    429: "Too many requests",
    500: "Something failed on our side",
    503: "The service is not available",
}

_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def address(path: str) -> str:
    """Returns the path of a dashboard page, including the stage if the API has one."""
    return urlsplit(dashboard_base_url()).path + path


@cache
def style() -> tuple[str, bytes]:
    """Returns the style sheet's name, which contains its hash, and its bytes."""
    content = (_HERE / "static" / "style.css").read_bytes()
    return f"style.{hashlib.sha256(content).hexdigest()[:16]}.css", content


def style_sheet() -> Response:
    headers = {"content-type": "text/css; charset=utf-8", "cache-control": _KEPT_FOR_EVER}
    return Response(style()[1], headers={**headers, "x-content-type-options": "nosniff"})


def _date(seconds: int) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y}"


def _day(timestamp: str) -> str:
    return _date(int(datetime.fromisoformat(timestamp).timestamp()))


def _minute(timestamp: str) -> str:
    return f"{_day(timestamp)}, {datetime.fromisoformat(timestamp):%H:%M} UTC"


def _hour(timestamp: str) -> str:
    """Formats a timestamp that is accurate to the hour, such as a credential's last use."""
    return f"{_day(timestamp)}, between {timestamp[11:13]}:00 and {timestamp[11:13]}:59 UTC"


def _counted(number: int, nouns: str) -> str:
    """Formats a number with what it counts: `12 files` or, if it is one, `1 file`."""
    return f"{number} {nouns.removesuffix('s') if number == 1 else nouns}"


_templates.globals.update(
    address=address,
    brand=settings.service_brand.capitalize(),
    consent_runtime_url=consent_runtime_url,
    consent_runtime_version=settings.consent_runtime_version,
    regions=REGIONS,
    token_field=FORM_TOKEN,
)
_templates.filters.update(counted=_counted, date=_date, day=_day, hour=_hour, minute=_minute)


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
    """
    signed_in = session is not None and session.access is not None
    text = _templates.get_template(f"{template}.html").render(
        style=address(f"/assets/{style()[0]}"),
        signed_in=signed_in,
        form_token=form_token(session.secret) if session is not None and signed_in else "",
        reference=f"{public_base_url()}/docs",
        devices_offered=settings.device_authorization_enabled,
        problem=failure.public if failure else None,
        done=done,
        **content,
    )
    if failure is None:
        return Response(text, 200, HEADERS)
    return Response(text, failure.status, {**HEADERS, **failure.headers})


def redirect(location: str, cookies: list[str] | None = None, status: int = 303) -> Response:
    """Returns a redirect. The browser follows a 303 with GET, and a 307 with the same method."""
    response = Response(b"", status, {**HEADERS, "location": location})
    for cookie in cookies or []:
        response.headers.append("set-cookie", cookie)
    return response


def sign_in_address(target: str) -> str:
    return f"{address('/sign-in')}?return_to={quote(own_page(target), safe='')}"


class PageLook:
    """Renders errors as a page, or as a redirect to the sign-in (`controlplane.http.dialect.Dialect`)."""

    def read(self, body: bytes) -> dict[str, Any]:
        raise NotImplementedError("pages declare no body")

    def success(self, content: Any) -> Response:
        raise NotImplementedError("pages build their own responses")

    def failure(self, error: ApiError) -> Response:
        if isinstance(error, SignedOut) and error.method == "GET":
            return redirect(sign_in_address(error.target))
        again = sign_in_address(error.target.partition("?")[0]) if isinstance(error, SignedOut) else None
        return page(
            "refused",
            failure=error,
            title=_TITLES.get(error.status, _TITLES[500]),
            sign_in=again or sign_in_address("/") if isinstance(error, _OF_SIGN_IN) else again,
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
