"""Authentication and authorization, declared as the type of an endpoint parameter.

An endpoint declares one alias, `Annotated[Access, Requires(...)]`. The route class (`controlplane.http.app`) runs two
stages around FastAPI's validation, so that errors come in the documented order: `authenticate`, `check_rate`, and
`check_plan_and_scope` before the body is parsed (401 credential, 429 rate, 402 plan, 403 scope), and `resolve` after
validation (404 or 403 for organization, resource, and role). Nothing is cached between requests, so a change of
membership, role, key, or plan applies to the next request.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids, tokens
from controlplane.core.errors import (
    Forbidden,
    InsufficientScope,
    InvalidPayload,
    NotFound,
    PlanRequired,
    RateLimited,
    Unauthorized,
)
from controlplane.core.plans import PLANS
from controlplane.core.scopes import API_KEY_SCOPES
from controlplane.core.settings import settings
from controlplane.http import owner_limits, rejections
from controlplane.store import credentials, organizations
from controlplane.store.credentials import Counted
from controlplane.store.keys import Key
from controlplane.store.organizations import Role
from controlplane.store.table import Throttled, table

RANK: dict[str, int] = {"member": 0, "admin": 1, "owner": 2}
# An API key belongs to the organization, not to a person. Within its scopes it has the permissions of an admin.
API_KEY_ROLE: Role = "admin"

_PERSONAL = {settings.service_brand + tokens.ACCESS, settings.service_brand + tokens.SESSION}


class Resource(NamedTuple):
    """A kind of item that a route identifies by id: the path parameter, the id's prefix, and the item's key.

    `read` converts the stored attributes to the value that the endpoint gets as `access.resource`.
    """

    parameter: str
    prefix: str
    key: Callable[[str, str], Key]
    read: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Requires:
    """Requirements of a route on its caller.

    scope: the scope the credential must have, or None if any valid credential is accepted.
    or_scope: an alternative scope. The error names `scope`.
    role: the minimum membership role.
    organization: the source of the organization. `query`: the query parameter organizationId, or the credential's
        default; `path`: the path parameter organizationId; None: the route doesn't belong to an organization.
    late: the endpoint resolves organization and resource itself by calling `Access.enter`, and has neither until then.
        For endpoints whose body may also name the organization or must be checked by the endpoint first.
    resource: the item identified by the path. Its organization is the one acted in.
    user_token: accept only a person's credential. API keys lack every scope that such routes require.

    Raises, in this order: Unauthorized 401, RateLimited 429, PlanRequired 402, InsufficientScope 403. After the
    request is validated: NotFound 404 (the resource or path organization is unknown or outside the caller's
    memberships) or Forbidden 403 (an explicit organizationId outside them, or an insufficient role).
    """

    scope: str | None = None
    role: Role = "member"
    organization: Literal["query", "path"] | None = None
    late: bool = False
    resource: Resource | None = None
    user_token: bool = False
    or_scope: str | None = None


@dataclass(slots=True)
class Principal:
    """The authenticated caller. `user_id` is None for an API key; the other ids are None for a person."""

    kind: Literal["session", "api_key", "oauth"]
    scopes: tuple[str, ...]
    user_id: str | None = None
    key_id: str | None = None
    organization_id: str | None = None
    created_by: str | None = None
    token: dict[str, Any] | None = None


@dataclass(slots=True)
class Access[T]:
    """An authenticated caller and, after resolution, its organization, its role there, and the requested resource."""

    principal: Principal
    counted: Counted
    organization: organizations.Membership | None = None
    resource: T = None  # type: ignore[assignment]  # set by resolve if the route declares a resource
    pending: tuple[Requires, str | None] | None = None

    @property
    def membership(self) -> organizations.Membership:
        """The caller's membership in the organization acted in. Raises LookupError if none is resolved."""
        if self.organization is None:
            raise LookupError("this route declares no organization, or has not entered it")
        return self.organization

    @property
    def organization_id(self) -> str:
        return self.membership.organization_id

    def enter(self, named_in_body: str | None = None) -> None:
        """Resolves organization and resource of a `late` route. Query and body may both name the organization.

        Raises InvalidPayload if they differ, and the errors of `resolve`.
        """
        if self.pending is None:
            raise LookupError("this route is not resolved late")
        requires, named = self.pending
        if named is not None and named_in_body is not None and named != named_in_body:
            raise InvalidPayload.at(
                ["organizationId"], "The body and the query name different organizations.", "contradiction"
            )
        resolve(self, replace(requires, late=False), named or named_in_body)

    @property
    def user_id(self) -> str:
        """The id of the acting person. For routes with `user_token`; raises LookupError for an API key."""
        if self.principal.user_id is None:
            raise LookupError("an API key has no acting user")
        return self.principal.user_id

    @property
    def caller_id(self) -> str:
        """The id that the request is attributed to: the person's, or for an API key the organization's."""
        return self.principal.user_id or self.principal.organization_id or ""


def rate_headers(counted: Counted) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(counted.limit),
        "X-RateLimit-Remaining": str(max(0, counted.limit - counted.hits)),
        "X-RateLimit-Reset": str(counted.resets_at),
    }


def _bearer(authorization: str) -> str | None:
    scheme, _, secret = authorization.partition(" ")
    return secret.strip(" ") if scheme.lower() == "bearer" else None


def authenticate(authorization: str | None, address: str) -> Access[Any]:
    """Authenticates an Authorization header and counts the request, in one write. Raises Unauthorized, RateLimited.

    A secret with the wrong format or checksum is rejected without accessing the table. Rejected credentials count
    against the client's address; beyond its limit, raises TooManyRejected.
    """
    if not authorization:
        raise Unauthorized
    secret = _bearer(authorization)
    prefix = tokens.prefix_of(secret) if secret else None
    if secret is None or prefix not in {settings.service_brand, *_PERSONAL}:
        rejections.count_malformed(address)
        raise Unauthorized
    try:
        return _count(prefix, tokens.digest(secret))
    except credentials.UnknownSecret:
        rejections.count_unknown(address)
        raise Unauthorized from None
    except Throttled as error:
        raise RateLimited(1, reason=str(error)) from error


def _count(prefix: str | None, digest: str) -> Access[Any]:
    """Reads the credential and counts the request. Raises UnknownSecret (also if the token has expired), Throttled."""
    if prefix == settings.service_brand:
        item, counted = credentials.count_key(digest)
        principal = Principal(
            "api_key",
            API_KEY_SCOPES,
            key_id=item["keyId"],
            organization_id=item["organizationId"],
            created_by=item["createdBy"],
            token=item,
        )
    else:
        item, counted = credentials.count_user_token(digest)
        if item["expiresAt"] <= clock.now():
            raise credentials.UnknownSecret
        principal = Principal(item["kind"], tuple(item["scopes"]), user_id=item["userId"], token=item)
    return Access(principal, counted)


def check_rate(access: Access[Any]) -> None:
    """Raises RateLimited if the credential, its person, or an API key's organization has exceeded its limit.

    Rejected requests count too. Those beyond the credential's own limit count only against the credential.
    """
    counted, token = access.counted, access.principal.token or {}
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
    if access.principal.user_id is not None:
        owner_limits.check_person(token, counted)
    else:
        owner_limits.check_organization_of_key(token, counted)


def check_plan_and_scope(access: Access[Any], requires: Requires) -> None:
    """Raises PlanRequired for an API key on a plan without API access, then InsufficientScope.

    Raises Forbidden for an API key on a route with `user_token`.
    """
    principal = access.principal
    if principal.kind == "api_key" and principal.token and not PLANS[principal.token["plan"]].api_access:
        raise PlanRequired
    if requires.scope is not None and not {requires.scope, requires.or_scope} & {*principal.scopes}:
        raise InsufficientScope(requires.scope)
    if requires.user_token and principal.user_id is None:
        raise Forbidden


def resolve(access: Access[Any], requires: Requires, named: str | None) -> None:
    """Sets organization and resource, and checks the role and the organization's rate limit.

    `named` is the id from the path or the query.
    """
    if requires.late:
        access.pending = requires, named
        return
    if requires.resource is not None:
        _resolve_resource(access, requires.resource, named or "")
    elif requires.organization is not None:
        access.organization = _organization(access.principal, requires.organization, named)
    else:
        return
    if RANK[access.membership.role] < RANK[requires.role]:
        raise Forbidden
    if access.principal.user_id is not None:
        token = access.principal.token or {}
        owner_limits.check_organization_of_person(token, access.counted, access.organization_id)


def key_organization(principal: Principal) -> organizations.Membership:
    """Returns an API key's organization from the item that authentication read."""
    item = principal.token or {}
    return organizations.Membership(item["organizationId"], item["slug"], item["name"], API_KEY_ROLE)


def _organization(principal: Principal, place: str, named: str | None) -> organizations.Membership:
    refusal = NotFound if place == "path" else Forbidden
    if principal.user_id is None:
        if named is not None and named != principal.organization_id:
            raise refusal()
        return key_organization(principal)
    if named is not None:
        found = ids.is_root(ids.ORGANIZATION, named) and organizations.find_membership(principal.user_id, named)
        if not found:
            raise refusal()
        return found
    account = organizations.get_account(principal.user_id)
    if (active := account.active) is not None:
        return active
    if not account.memberships:
        raise Forbidden("This account belongs to no organization. Create one, or accept an invitation.")
    raise InvalidPayload.at(
        ["organizationId"], "This account has several organizations: say which with organizationId.", "missing"
    )


def _resolve_resource(access: Access[Any], resource: Resource, named: str) -> None:
    located = ids.locate(resource.prefix, named)
    if located is None:
        raise NotFound
    key = resource.key(*located)
    principal = access.principal
    if principal.user_id is None:
        if located.organization_id != principal.organization_id:
            raise NotFound
        item, access.organization = table.get(key), key_organization(principal)
    else:
        # The two reads are independent and share one round trip.
        item, membership = organizations.get_beside_membership(key, principal.user_id, located.organization_id)
        access.organization = membership
    if item is None or access.organization is None:
        raise NotFound
    access.resource = resource.read(item)
