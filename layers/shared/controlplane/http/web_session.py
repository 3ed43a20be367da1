"""Callers with a browser: pages with a session cookie, whose forms are protected against cross-site request forgery.

An endpoint declares one alias, `Annotated[WebSession, RequiresSession(...)]`. Errors are rendered in the dialect that
the alias sets. This is the only module that creates cookies.
"""

from dataclasses import dataclass, field
from typing import Any

from controlplane.core import keyring, tokens
from controlplane.core.errors import Forbidden, InvalidPayload, Unauthorized, UnsupportedMediaType
from controlplane.core.settings import settings
from controlplane.core.urls import dashboard_base_url
from controlplane.http.access import Access
from controlplane.http.anonymous import Anonymous, AnonymousCaller
from controlplane.http.authentication import authenticate, check_rate
from controlplane.http.callers import Caller, CallerRequirements
from controlplane.http.dialect import Dialect
from controlplane.http.forms import parse_pairs
from controlplane.http.reader import RequestReader
from controlplane.http.rejections import TooManyRejected

_FORM_TYPE = "application/x-www-form-urlencoded"
_MAX_FIELDS = 32
# The form field that contains the CSRF token.
FORM_TOKEN = "form_token"  # nosec B105  # noqa: S105 (a field's name)
# The purpose under which the key ring signs CSRF tokens.
_FORM = "form"


class SignedOut(Unauthorized):
    """The page requires a signed-in session. `target` is the requested path with its query, `method` the method."""

    message = "Your session has ended. Sign in again."

    def __init__(self, method: str, target: str) -> None:
        super().__init__()
        self.method = method
        self.target = target


class ForeignForm(Forbidden):
    """The form doesn't contain this session's CSRF token, so another site may have sent it."""

    message = "This form has expired. Go back, reload the page, and try again."


class UnreadableForm(InvalidPayload):
    message = "This form could not be read. Go back and try again."


@dataclass(slots=True)
class WebSession(Caller):
    """The session of a page, and the request's raw query. `access` and `secret` are set if it is signed in."""

    address: str
    cookies: dict[str, str] = field(default_factory=dict, repr=False)
    query: str = ""
    access: Access[Any] | None = None
    secret: str = field(default="", repr=False)
    form: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def user_id(self) -> str:
        """The session's user id. Raises LookupError if the session isn't signed in."""
        if self.access is None:
            raise LookupError("this page requires no session")
        return self.access.user_id

    @property
    def form_token(self) -> str:
        """The CSRF token for this session's forms."""
        return form_token(self.secret)

    @property
    def log_fields(self) -> dict[str, Any]:
        return self.access.log_fields if self.access is not None else {}

    @property
    def rate_group(self) -> str:
        return self.access.rate_group if self.access is not None else "anonymous"


@dataclass(frozen=True, slots=True)
class RequiresSession(CallerRequirements[WebSession]):
    """Requirements of a page.

    dialect: renders the page's errors.
    signed_in: whether the page requires a session. If not, an expired session is ignored.
    form: whether the page accepts a form, which must then contain the session's CSRF token.
    counted: a rate limit per client address, for requests that no session counts.
    """

    dialect: Dialect
    signed_in: bool = True
    form: bool = False
    counted: Anonymous | None = None

    def select_dialect(self, request: RequestReader) -> Dialect:  # noqa: ARG002
        return self.dialect

    def identify(self, request: RequestReader) -> WebSession:
        """Authenticates and rate limits the session, and reads the form.

        Raises SignedOut, RateLimited, UnsupportedMediaType, UnreadableForm, ForeignForm.
        """
        session = WebSession(request.address, _read_cookies(request.headers.get("cookie", "")), request.url.query)
        if self.counted is not None:
            self.counted.check(AnonymousCaller(session.address))
        self._authenticate(session)
        if session.access is not None:
            check_rate(session.access.principal, session.access.counted)
        elif self.signed_in:
            raise SignedOut(request.method, request.target)
        if self.form:
            session.form = _read_form(request.media_type, request.raw_body)
            if keyring.signer_of(_FORM, session.secret, session.form.get(FORM_TOKEN, "")) is None:
                raise ForeignForm
        return session

    def _authenticate(self, session: WebSession) -> None:
        """Sets the session's access and secret if its cookie is valid. A credential of any other kind is ignored.

        Raises TooManyRejected only if the page requires a session, so that people can always sign in again.
        """
        secret = session.cookies.get(cookie_name("session"), "")
        if tokens.prefix_of(secret) != settings.service_brand + tokens.SESSION:
            return
        try:
            session.access = Access(*authenticate(f"Bearer {secret}", session.address))
        except Unauthorized:
            return
        except TooManyRejected:
            if self.signed_in:
                raise
            return
        session.secret = secret


def form_token(secret: str) -> str:
    return tokens.keyed_digest(_FORM, secret)


def cookie_name(purpose: str) -> str:
    """Returns the cookie's name. Over TLS its prefix prevents other hosts, including siblings, from setting it."""
    return f"{'__Host-' if _is_secure() else ''}{settings.service_brand}-{purpose}"


def cookie(purpose: str, value: str, lifetime_seconds: int) -> str:
    """Returns a Set-Cookie header. Scripts can't read the cookie, and other sites' forms and images don't send it.

    A lifetime of 0 deletes the cookie.
    """
    secure = "; Secure" if _is_secure() else ""
    name = cookie_name(purpose)
    return f"{name}={value}; Path=/; Max-Age={lifetime_seconds}; HttpOnly; SameSite=Lax{secure}"


def _is_secure() -> bool:
    return dashboard_base_url().startswith("https://")


def _read_cookies(header: str) -> dict[str, str]:
    # HTTP/2 clients may send one header per cookie, and the gateway joins repeated headers with commas.
    parts = header.replace(",", ";").split(";")
    pairs = [part.strip().partition("=") for part in parts]
    return {name: value for name, _, value in pairs}


def _read_form(media_type: str, body: bytes) -> dict[str, str]:
    """Returns the form's fields. Raises UnsupportedMediaType, UnreadableForm."""
    if media_type != _FORM_TYPE:
        raise UnsupportedMediaType
    try:
        pairs = parse_pairs(body, _MAX_FIELDS)
    except ValueError:
        raise UnreadableForm from None
    form = dict(pairs)
    if len(form) != len(pairs) or any("\0" in value for value in form.values()):
        raise UnreadableForm
    return form
