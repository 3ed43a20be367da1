"""Authorization as a parameter's type.

An endpoint declares one alias, `Annotated[Access, Requires(...)]`. The route class (`controlplane.app`) then runs two
stages around FastAPI's validation, so that refusals come in the documented order: `admit` before the body is parsed
(401 credential, 429 rate, 402 plan, 403 scope), `resolve` after validation (404 or 403 for organization, resource and
role). Nothing of it is cached from request to request: a change of membership, role, key or plan binds the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from controlplane import clock, ids, owner_limits, rejections, tokens
from controlplane.errors import (
    Forbidden,
    InsufficientScope,
    InvalidPayload,
    NotFound,
    PlanRequired,
    RateLimited,
    Unauthorized,
)
from controlplane.plans import PLANS
from controlplane.scopes import API_KEY_SCOPES
from controlplane.settings import settings
from controlplane.store import credentials, organizations
from controlplane.store.credentials import Counted
from controlplane.store.keys import Key
from controlplane.store.organizations import Role
from controlplane.store.table import Throttled, table

RANK: dict[str, int] = {"member": 0, "admin": 1, "owner": 2}
# A key is the organization's own credential and no person: it does what an admin does within its scopes.
API_KEY_ROLE: Role = "admin"

_PERSONAL = {settings.service_brand + tokens.ACCESS, settings.service_brand + tokens.SESSION}


class Resource(NamedTuple):
    """A kind of item that a route names by id: the path parameter, the id's prefix, and where the item stands.

    `read` makes the stored attributes into what the endpoint gets as `access.resource`.
    """

    parameter: str
    prefix: str
    key: Callable[[str, str], Key]
    read: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Requires:
    """What a route asks of its caller.

    scope: the scope the credential must hold; None where any valid credential will do.
    or_scope: another scope that will do as well. A refusal names `scope`.
    role: the least membership role.
    organization: where the organization comes from. `query`: the parameter organizationId, else the credential's own
        default; `path`: the path parameter organizationId; None: the route stands above organizations.
    late: the endpoint resolves organization and resource itself, by `Access.enter`, and has neither until then:
        where the body may name the organization too, or has something in it that only the endpoint can check.
    resource: the item named in the path, which brings its own organization.
    user_token: only a person's credential; an API key lacks every scope that such routes ask for.

    Raises, in this order: Unauthorized 401, RateLimited 429, PlanRequired 402, InsufficientScope 403, then after the
    request's own validation NotFound 404 (resource or path organization outside the caller's memberships, as for an
    unknown one) or Forbidden 403 (an explicit organizationId outside them, or the role).
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
    """Who calls. `user_id` is None for an API key, `key_id` and `organization_id` are None for a person."""

    kind: Literal["session", "api_key", "oauth"]
    scopes: tuple[str, ...]
    user_id: str | None = None
    key_id: str | None = None
    organization_id: str | None = None
    created_by: str | None = None
    token: dict[str, Any] | None = None


@dataclass(slots=True)
class Access[T]:
    """A caller that was admitted, and once resolved: its organization, its role there, and the resource it named."""

    principal: Principal
    counted: Counted
    organization: organizations.Membership | None = None
    resource: T = None  # type: ignore[assignment]  # set by resolve where the route names a resource
    pending: tuple[Requires, str | None] | None = None

    @property
    def membership(self) -> organizations.Membership:
        """The organization acted in, as the caller sees it. Only routes that declare one may ask."""
        if self.organization is None:
            raise LookupError("this route declares no organization, or has not entered it")
        return self.organization

    @property
    def organization_id(self) -> str:
        return self.membership.organization_id

    def enter(self, named_in_body: str | None = None) -> None:
        """Resolves what a `late` route left open; the organization may be named by the query or by the body.

        Raises InvalidPayload where the two disagree, else what `resolve` raises.
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
        """The acting person. Only routes with `user_token` may ask."""
        if self.principal.user_id is None:
            raise LookupError("an API key has no acting user")
        return self.principal.user_id

    @property
    def caller_id(self) -> str:
        """Who is accountable for a request: the person, or for a key its organization."""
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
    """The caller behind an Authorization header, counted: one write. Raises Unauthorized, RateLimited.

    A secret whose form or checksum is wrong is refused without touching the table. A credential that is rejected counts
    against the client's address, and is answered with TooManyRejected past that limit.
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
    """Raises UnknownSecret, also for a token that has expired, and Throttled."""
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
    """Raises RateLimited for a request past the limit of the credential, of its person, or of a key's organization.

    Refused requests count too. Those past the credential's own limit count for the credential alone.
    """
    counted, token = access.counted, access.principal.token or {}
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
    if access.principal.user_id is not None:
        owner_limits.check_person(token, counted)
    else:
        owner_limits.check_organization_of_key(token, counted)


def check_plan_and_scope(access: Access[Any], requires: Requires) -> None:
    """Raises PlanRequired for a key whose organization's plan has no API access, then InsufficientScope."""
    principal = access.principal
    if principal.kind == "api_key" and principal.token and not PLANS[principal.token["plan"]].api_access:
        raise PlanRequired
    if requires.scope is not None and not {requires.scope, requires.or_scope} & {*principal.scopes}:
        raise InsufficientScope(requires.scope)
    if requires.user_token and principal.user_id is None:
        raise Forbidden


def resolve(access: Access[Any], requires: Requires, named: str | None) -> None:
    """Fills in organization and resource, and checks the role and the organization's limit.

    `named` is the id that the path or the query gives.
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
    """The organization of an API key, from what authentication read."""
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
        # Neither read depends on the other: one round trip for both.
        item, membership = organizations.get_beside_membership(key, principal.user_id, located.organization_id)
        access.organization = membership
    if item is None or access.organization is None:
        raise NotFound
    access.resource = resource.read(item)
