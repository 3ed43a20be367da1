"""Callers with a browser: pages with a session cookie, whose forms are protected against cross-site request forgery.

An endpoint declares one alias, `Annotated[WebSession, RequiresSession(...)]`. Errors are rendered in the dialect that
the alias sets. This is the only module that creates cookies.
"""

from dataclasses import dataclass, field
from inspect import Parameter
from secrets import token_hex
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Path

from controlplane.access.access import Access
from controlplane.access.anonymous import Anonymous, AnonymousCaller
from controlplane.access.authentication import TooManyRejected, authenticate, check_rate
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Account, Membership, NotMember
from controlplane.people.users import UserItem
from controlplane.platform.core import keyring, tokens
from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import (
    Forbidden,
    InvalidPayload,
    RoleRequired,
    Unauthorized,
    UnsupportedMediaType,
)
from controlplane.platform.core.ids import OwnedId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.callers import Caller, CallerRequirements, Dialect
from controlplane.platform.http.reader import MAX_FORM_BYTES, RequestReader, parse_pairs
from controlplane.platform.table.parallel import reading

_FORM_TYPE = "application/x-www-form-urlencoded"
# The form field that contains the CSRF token.
FORM_TOKEN = "form_token"  # nosec B105  # noqa: S105 (a field's name)
# The purpose under which the key ring signs CSRF tokens.
_FORM = "form"
# The purpose under which it signs the note that names a session's user.
_NOTE = "user of a session"
_SALT_LENGTH = 16


class SignedOut(Unauthorized):
    """The page requires a signed-in session. `target` is the requested path with its query, `method` the method.

    may_follow_form: whether a page of this origin sent the request with a query, as a form does, or the redirect after
    one.
    """

    message = "Your session has ended. Sign in again."

    def __init__(self, method: str, target: str, *, may_follow_form: bool) -> None:
        super().__init__()
        self.method = method
        self.target = target
        self.may_follow_form = may_follow_form


class ForeignForm(Forbidden):
    """The form doesn't contain this session's CSRF token, so another site may have sent it."""

    title = "This form has expired"
    message = "It is older than your session, or it comes from another site. Go back, reload the page, and try again."


class UnreadableForm(InvalidPayload):
    title = "This form could not be read"
    message = "Nothing was changed. Go back and try again."


@dataclass(slots=True)
class WebSession(Caller):
    """The session of a page, and the request's path, raw query, and body. `access` and `secret` are set if it is
    signed in, `form` if the page accepts one, and `membership` if the page is an organization's. `known_account` is the
    account if it was already read.
    """

    address: str
    cookies: dict[str, str] = field(default_factory=dict, repr=False)
    path: str = "/"
    query: str = ""
    media_type: str = ""
    body: bytes = field(default=b"", repr=False)
    access: Access[Any] | None = None
    secret: str = field(default="", repr=False)
    form: dict[str, str] = field(default_factory=dict, repr=False)
    known_account: Account | None = field(default=None, repr=False)
    membership: Membership | None = None

    @property
    def account(self) -> Account:
        """The account of the session's user. Most sessions read it while they are authenticated."""
        if self.known_account is None:
            self.known_account = organizations.get_account(self.user_id)
        return self.known_account

    @property
    def profile(self) -> UserItem:
        """The profile of the session's account. Raises LookupError if the account doesn't exist."""
        if self.account.profile is None:
            raise LookupError("the session's account doesn't exist")
        return self.account.profile

    @property
    def user_id(self) -> str:
        """The session's user id. Raises LookupError if the session isn't signed in."""
        if self.access is None:
            raise LookupError("this page requires no session")
        return self.access.user_id

    @property
    def organization(self) -> Membership:
        """The page's organization. Raises LookupError on a page outside of organizations."""
        if self.membership is None:
            raise LookupError("this page isn't an organization's")
        return self.membership

    def own[Id: OwnedId](self, kind: type[Id], text: str, unknown: type[Exception]) -> Id:
        """Returns the id of an item of the page's organization. Raises `unknown` for any other text."""
        return kind.parse_own(self.organization.organization_id, text, unknown)

    def enter(self, membership: Membership | None, role: Role) -> None:
        """Makes the organization the page's. Raises NotMember, RoleRequired."""
        if membership is None:
            raise NotMember
        if RANK[membership.role] < RANK[role]:
            raise RoleRequired(role, membership.role)
        self.membership = membership

    @property
    def is_admin(self) -> bool:
        """True for admins and owners of the page's organization."""
        return self.membership is not None and RANK[self.membership.role] >= RANK["admin"]

    @property
    def parameters(self) -> dict[str, str]:
        """The query's parameters that aren't empty. The route has checked that no name is repeated."""
        return dict(parse_qsl(self.query))

    @property
    def actor(self) -> Actor | None:
        return None if self.access is None else Actor("person", self.access.user_id, "page")

    @property
    def entry_local(self) -> str | None:
        """The local ID of this session's entry in the person's index of credentials."""
        token = self.access.principal.token if self.access is not None else None
        return token.listed_as if token else None

    def authenticate(self, secret: str) -> None:
        """Sets the access and the secret. Raises Unauthorized, TooManyRejected.

        Reads the account at the same time if the browser has a note of whose session this is.
        """
        noted = _read_note(self.cookies.get(cookie_name("user"), ""), secret)
        if noted is None:
            self.access = Access(*authenticate(f"Bearer {secret}", self.address))
        else:
            with reading(lambda: organizations.get_account(noted)) as account:
                self.access = Access(*authenticate(f"Bearer {secret}", self.address))
            known_account = account()
            self.known_account = known_account if noted == self.user_id else None
        self.secret = secret

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

    dialect: renders the page's errors. None: only a request that prefers HTML gets a page.
    signed_in: whether the page requires a session. If not, an expired session is ignored.
    role: the least role in the organization whose slug is in the path. None: the page isn't an organization's.
    form: whether the page accepts a form. If it requires a session, the form must contain the session's CSRF token.
    counted: a rate limit per client address, for requests that no session counts.
    most_fields, most_bytes: the limits of the form.
    """

    dialect: Dialect | None
    signed_in: bool = True
    role: Role | None = None
    form: bool = False
    counted: Anonymous | None = None
    most_fields: int = 32
    most_bytes: int = MAX_FORM_BYTES

    def select_dialect(self, request: RequestReader) -> Dialect | None:  # noqa: ARG002
        return self.dialect

    def identify(self, request: RequestReader) -> WebSession:
        """Authenticates the session, and rate limits an address that needs none. Raises SignedOut, RateLimited."""
        session = WebSession(
            request.address,
            _read_cookies(request.headers.get("cookie", "")),
            request.scope["path"],
            request.scope["query_string"].decode("latin-1"),
            request.media_type,
            request.raw_body if self.form else b"",
        )
        if self.counted is not None:
            self.counted.check(AnonymousCaller(session.address))
        self._authenticate(session)
        if session.access is None and self.signed_in:
            is_own = request.headers.get("sec-fetch-site") == "same-origin"
            raise SignedOut(request.method, request.target, may_follow_form=is_own and bool(session.query))
        return session

    def check(self, session: WebSession) -> None:
        """Rate limits the session, and reads the form.

        Raises RateLimited, UnsupportedMediaType, UnreadableForm, ForeignForm.
        """
        if session.access is not None:
            check_rate(session.access.principal, session.access.counted)
        if self.form:
            session.form = _read_form(session.media_type, session.body, self.most_fields, self.most_bytes)
            if self.signed_in and not _is_form_token(session.form.get(FORM_TOKEN, ""), session.secret):
                raise ForeignForm

    @property
    def id_parameter(self) -> tuple[Any, Any] | None:
        return (Annotated[str, Path(alias="organizationSlug")], Parameter.empty) if self.role else None

    def resolve(self, session: WebSession, named_id: str | None) -> None:
        """Sets the session's organization. Raises NotMember, RoleRequired."""
        if self.role is not None:
            session.enter(next((it for it in session.account.memberships if it.slug == named_id), None), self.role)

    def _authenticate(self, session: WebSession) -> None:
        """Sets the session's access and secret if its cookie is valid. A credential of any other kind is ignored.

        Raises TooManyRejected only if the page requires a session, so that people can always sign in again.
        """
        secret = session.cookies.get(cookie_name("session"), "")
        if tokens.prefix_of(secret) != settings.service_brand + tokens.SESSION:
            return
        try:
            session.authenticate(secret)
        except Unauthorized:
            return
        except TooManyRejected:
            if self.signed_in:
                raise


def form_token(secret: str) -> str:
    """Returns a CSRF token of the session, another one each time.

    Pages are compressed and show text from their address. If their token were always the same, an attacker who sends
    links and observes the pages' sizes could guess it.
    """
    salt = token_hex(_SALT_LENGTH // 2)
    return salt + tokens.keyed_digest(_FORM, salt + secret)


def _is_form_token(token: str, secret: str) -> bool:
    salt, digest = token[:_SALT_LENGTH], token[_SALT_LENGTH:]
    return keyring.signer_of(_FORM, salt + secret, digest) is not None


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


def session_cookies(secret: str, user_id: str, lifetime_seconds: int) -> list[str]:
    """Returns the Set-Cookie headers of a new session: its secret, and a note of whose it is.

    The note lets a request read the account while it authenticates the session. It is signed, and grants nothing.
    """
    note = f"{user_id}.{keyring.current().digest(_NOTE, f'{user_id} {secret}')}"
    return [cookie("session", secret, lifetime_seconds), cookie("user", note, lifetime_seconds)]


def ended_cookies() -> list[str]:
    """Returns the Set-Cookie headers that delete a session's cookies."""
    return [cookie("session", "", 0), cookie("user", "", 0)]


def _read_note(note: str, secret: str) -> str | None:
    """Returns the ID of the user in a note of this session, or None."""
    user_id, _, seal = note.rpartition(".")
    return user_id if keyring.signer_of(_NOTE, f"{user_id} {secret}", seal) else None


def _is_secure() -> bool:
    return dashboard_base_url().startswith("https://")


def _read_cookies(header: str) -> dict[str, str]:
    # Browsers keep other hosts from setting a cookie with our prefix, so cookies must be read as browsers read them. If
    # they were split at commas or stripped of more white space, another host's cookie could become ours.
    pairs = [part.strip(" \t").partition("=") for part in header.split(";")]
    return {name: value for name, _, value in pairs}


def _read_form(media_type: str, body: bytes, most_fields: int, most_bytes: int) -> dict[str, str]:
    """Returns the form's fields. Raises UnsupportedMediaType, UnreadableForm."""
    if media_type != _FORM_TYPE:
        raise UnsupportedMediaType("This address only accepts the form of its page. Open the page, and send that form.")
    try:
        pairs = parse_pairs(body, most_fields, most_bytes)
    except ValueError:
        raise UnreadableForm from None
    form = dict(pairs)
    if len(form) != len(pairs) or any("\0" in value for value in form.values()):
        raise UnreadableForm
    return form
