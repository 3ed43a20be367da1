"""Authentication by bearer credential, and the rate limits of credentials and their owners.

Nothing is cached between requests, so a change of membership, role, key, or plan applies to the next request.
"""

from dataclasses import dataclass
from typing import Literal

from controlplane.access import credentials, owner_limits, rejections
from controlplane.api_keys.items import KeySecretItem
from controlplane.organizations import store as organizations
from controlplane.people.tokens import UserTokenItem
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.errors import IncompleteCredential, InvalidToken, RateLimited, Unauthorized
from controlplane.platform.core.roles import Role
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.table import Throttled

# An API key belongs to the organization, not to a person. Within its scopes it has the permissions of an admin.
_API_KEY_ROLE: Role = "admin"

_USER_TOKEN_PREFIXES = {settings.service_brand + tokens.ACCESS, settings.service_brand + tokens.SESSION}


@dataclass(slots=True)
class Principal:
    """The authenticated caller: a person with a token, or an API key. Fields of the other kind are None."""

    kind: Literal["session", "api_key", "oauth"]
    scopes: tuple[str, ...]
    user_id: str | None = None
    key_id: str | None = None
    organization_id: str | None = None
    created_by: str | None = None
    token: UserTokenItem | None = None
    key: KeySecretItem | None = None


def authenticate(authorization: str | None, address: str) -> tuple[Principal, Counted]:
    """Authenticates an Authorization header and counts the request, in one write. Raises Unauthorized, RateLimited.

    A secret with the wrong format or checksum is rejected without accessing the table: with IncompleteCredential if it
    begins like one of ours. Any other rejected bearer token is an InvalidToken. Rejected credentials count against the
    client's address; beyond its limit, raises TooManyRejected.
    """
    if not authorization:
        raise Unauthorized
    secret = _bearer_secret(authorization)
    prefix = tokens.prefix_of(secret)
    if prefix not in {settings.service_brand, *_USER_TOKEN_PREFIXES}:
        rejections.count_malformed(address)
        # A comma joins the values of repeated headers.
        is_incomplete = "," not in secret and tokens.is_incomplete(secret)
        raise IncompleteCredential if is_incomplete else InvalidToken if secret else Unauthorized
    try:
        return _count(prefix, tokens.digest(secret))
    except credentials.UnknownSecret:
        rejections.count_unknown(address)
        raise InvalidToken from None
    except Throttled as error:
        raise RateLimited(1, reason=str(error)) from error


def _bearer_secret(authorization: str) -> str:
    """Returns an empty text for another scheme."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip(" ") if scheme.lower() == "bearer" else ""


def _count(prefix: str | None, digest: str) -> tuple[Principal, Counted]:
    """Reads the credential and counts the request. Raises UnknownSecret (also if it has expired), Throttled."""
    if prefix == settings.service_brand:
        key, counted = credentials.authenticate_api_key(digest)
        if key.restrictions.has_expired:
            raise credentials.UnknownSecret
        principal = Principal(
            "api_key",
            API_KEY_SCOPES if key.restrictions.scopes is None else key.restrictions.scopes,
            key_id=key.key_id,
            organization_id=key.organization_id,
            created_by=key.created_by,
            key=key,
        )
    else:
        token, counted = credentials.authenticate_user_token(digest)
        if token.expires_at <= clock.now():
            raise credentials.UnknownSecret
        # A session has every scope, also those that came after its sign-in.
        scopes = SCOPES if token.kind == "session" else token.scopes
        principal = Principal(token.kind, tuple(scopes), user_id=token.user_id, token=token)
    return principal, counted


def check_rate(principal: Principal, counted: Counted) -> None:
    """Raises RateLimited if the credential, its person, or an API key's organization has exceeded its limit.

    Rejected requests count too. Those beyond the credential's own limit count only against the credential.
    """
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
    if principal.token is not None:
        owner_limits.check_person(principal.token, counted)
    elif principal.key is not None:
        owner_limits.check_organization_of_key(principal.key, counted)


def key_organization(principal: Principal) -> organizations.Membership:
    """Returns an API key's organization from the item that authentication read. Raises LookupError for a person."""
    key = principal.key
    if key is None:
        raise LookupError("a person's token belongs to no organization")
    return organizations.Membership(
        organization_id=key.organization_id, slug=key.slug, name=key.name, role=_API_KEY_ROLE
    )
