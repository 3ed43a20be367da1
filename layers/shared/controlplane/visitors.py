"""What a page asks of its visitor: a session, by cookie, and that its forms were filled in on a page of ours.

An endpoint declares one alias, `Annotated[Visitor, Visits(...)]`. The route class (`controlplane.app`) then admits the
visitor before the endpoint runs, and answers refusals in the look that the alias names. Cookies are made here alone.
"""

from dataclasses import dataclass, field
from typing import Any

from fastapi import Request

from controlplane import access as gate
from controlplane import anonymous as door
from controlplane import keyring, tokens
from controlplane.access import Access
from controlplane.addresses import dashboard_base_url
from controlplane.anonymous import Anonymous, Dialect, Stranger
from controlplane.errors import Forbidden, InvalidPayload, Unauthorized, UnsupportedMediaType
from controlplane.forms import parse_pairs
from controlplane.rejections import TooManyRejected
from controlplane.settings import settings

_FORM_TYPE = "application/x-www-form-urlencoded"
_MAX_FIELDS = 32
# The name of the field that proves where a form was filled in.
FORM_TOKEN = "form_token"  # nosec B105  # noqa: S105 (a field's name)
# The purpose of the form's token among the digests of the key ring.
_FORM = "form"


class SignedOut(Unauthorized):
    """The page is for who is signed in. `target` is what was asked for, with its query; `method` how."""

    message = "Your session has ended. Sign in again."

    def __init__(self, method: str, target: str) -> None:
        super().__init__()
        self.method = method
        self.target = target


class ForeignForm(Forbidden):
    """The form does not carry this session's token: another site may have sent it."""

    message = "This form has expired. Go back, reload the page, and try again."


class UnreadableForm(InvalidPayload):
    message = "This form could not be read. Go back and try again."


@dataclass(frozen=True, slots=True)
class Visits:
    """What a page asks.

    look: how its refusals look.
    signed_in: whether it is only for who is signed in. Elsewhere a session that is over counts as none.
    form: whether it takes a form, which then has to carry the session's token.
    counted: a limit by the visitor's address, for what no session counts.
    """

    look: Dialect
    signed_in: bool = True
    form: bool = False
    counted: Anonymous | None = None


@dataclass(slots=True)
class Visitor:
    """Who looks at a page. `access` and `secret` are there once they are signed in."""

    address: str
    cookies: dict[str, str] = field(default_factory=dict, repr=False)
    access: Access[Any] | None = None
    secret: str = field(default="", repr=False)
    form: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def user_id(self) -> str:
        """Only pages that ask for a session may ask."""
        if self.access is None:
            raise LookupError("this page asks for no session")
        return self.access.user_id

    @property
    def form_token(self) -> str:
        """What a form of this session carries."""
        return form_token(self.secret)


def form_token(secret: str) -> str:
    return tokens.keyed_digest(_FORM, secret)


def cookie_name(purpose: str) -> str:
    """The cookie's name. Over TLS its prefix keeps other hosts, neighbours among them, from setting it."""
    return f"{'__Host-' if _is_secure() else ''}{settings.service_brand}-{purpose}"


def cookie(purpose: str, value: str, lifetime_seconds: int) -> str:
    """A Set-Cookie header: no script reads it, and no other site's form or image sends it. Lifetime 0 removes it."""
    secure = "; Secure" if _is_secure() else ""
    name = cookie_name(purpose)
    return f"{name}={value}; Path=/; Max-Age={lifetime_seconds}; HttpOnly; SameSite=Lax{secure}"


def _is_secure() -> bool:
    return dashboard_base_url().startswith("https://")


def admit(request: Request, asks: Visits, body: bytes) -> Visitor:
    """The visitor, counted. Raises SignedOut, RateLimited, UnsupportedMediaType, UnreadableForm, ForeignForm."""
    visitor = Visitor(door.address_of(request), _read_cookies(request))
    if asks.counted is not None:
        door.admit(Stranger(visitor.address), asks.counted)
    _recognize(visitor, asks)
    if visitor.access is None and asks.signed_in:
        raise SignedOut(request.method, _target(request))
    if visitor.access is not None:
        gate.check_rate(visitor.access)
    if asks.form:
        visitor.form = _read_form(request, body)
        if keyring.signer_of(_FORM, visitor.secret, visitor.form.get(FORM_TOKEN, "")) is None:
            raise ForeignForm
    return visitor


def _recognize(visitor: Visitor, asks: Visits) -> None:
    """Fills in the session of the cookie, if it is a live one. Any other credential is ignored.

    Raises TooManyRejected, but not for a page that needs no session: people can always sign in again.
    """
    secret = visitor.cookies.get(cookie_name("session"), "")
    if tokens.prefix_of(secret) != settings.service_brand + tokens.SESSION:
        return
    try:
        visitor.access = gate.authenticate(f"Bearer {secret}", visitor.address)
    except Unauthorized:
        return
    except TooManyRejected:
        if asks.signed_in:
            raise
        return
    visitor.secret = secret


def _read_cookies(request: Request) -> dict[str, str]:
    # HTTP/2 sends one cookie per header, and the gateway joins several headers with commas.
    parts = request.headers.get("cookie", "").replace(",", ";").split(";")
    pairs = [part.strip().partition("=") for part in parts]
    return {name: value for name, _, value in pairs}


def _target(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["path"]
    return f"{path}?{query}" if query else path


def _read_form(request: Request, body: bytes) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        raise UnsupportedMediaType
    try:
        pairs = parse_pairs(body, _MAX_FIELDS)
    except ValueError:
        raise UnreadableForm from None
    form = dict(pairs)
    if len(form) != len(pairs) or any("\0" in value for value in form.values()):
        raise UnreadableForm
    return form
