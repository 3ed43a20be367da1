"""Callers with an API key or a user token: authorization, declared as the type of an endpoint parameter.

An endpoint declares one alias, `Annotated[Access, Requires(...)]`. The route class checks the credential, rate, plan,
and scope before the body is parsed, and the organization, resource, and role after FastAPI's validation, so that errors
come in the documented order.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from fastapi import Path, Query

from controlplane.access.authentication import (
    Principal,
    authenticate,
    check_organization_of_person,
    check_rate,
    key_organization,
)
from controlplane.organizations import store as organizations
from controlplane.platform.core import ids
from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import (
    Forbidden,
    InsufficientScope,
    InvalidPayload,
    NotFound,
    PlanRequired,
    RoleRequired,
    known,
)
from controlplane.platform.core.ids import OwnedId, ProjectId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.callers import Caller, CallerRequirements
from controlplane.platform.http.client_address import is_within
from controlplane.platform.http.reader import RequestReader
from controlplane.platform.table import parallel, refusals
from controlplane.platform.table.keys import Key
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.refusals import Refusal
from controlplane.platform.table.table import table


class AddressNotAllowed(Forbidden):
    """The request didn't come from one of the networks that the API key is limited to."""

    message = (
        "This API key doesn't accept requests from your address. Its allowedIps lists the networks that it accepts."
    )


class UserTokenRequired(Forbidden):
    """The operation is one that a person is responsible for, and the credential is an API key."""

    message = "This operation needs a user token: an API key doesn't act for a person."


class NotForLimitedKeys(Forbidden):
    """The operation concerns all projects of the organization, and the API key is limited to some."""

    message = (
        "This API key is limited to some projects, and this operation isn't. Use a key without projectIds, or a user "
        "token."
    )


class Resource(NamedTuple):
    """A kind of item that a route identifies by id: the path parameter, the id's type, and the item's key.

    `read` converts the stored attributes to the value that the endpoint gets as `access.resource`. With `companion`,
    which returns the key of a second item by the id, `read` also gets that item's attributes, or None.
    `project_of` returns the ID of the project that the value belongs to, or None. API keys that are limited to some
    projects need it.
    """

    parameter: str
    id_type: type[OwnedId]
    key: Callable[[str, str], Key]
    read: Callable[..., Any]
    companion: Callable[[str], Key] | None = None
    project_of: Callable[[Any], str | None] | None = None


@dataclass(slots=True)
class Access[T](Caller):
    """An authenticated caller and, after resolution, its organization, its role there, and the requested resource."""

    principal: Principal
    counted: Counted
    address: str = ""
    organization: organizations.Membership | None = None
    resource: T = None  # type: ignore[assignment]  # set by `Requires.resolve` if the route declares a resource
    # The organization's plan, set for API keys and by `Requires.plan`.
    known_plan: str | None = None
    # The requirements of a `late` route and the id in its query, until `enter`.
    pending: "tuple[Requires, str | None] | None" = None

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

        Raises InvalidPayload if they differ, and the errors of `Requires.resolve`.
        """
        if self.pending is None:
            raise LookupError("this route is not resolved late")
        requires, named = self.pending
        if named is not None and named_in_body is not None and named != named_in_body:
            raise InvalidPayload.at(
                ["organizationId"], "The body and the query name different organizations. Send one.", "contradiction"
            )
        replace(requires, late=False).resolve(self, named or named_in_body)

    def enter_while[R](self, read: Callable[[Any], R]) -> R:
        """Resolves the resource of a `late` route while `read` runs, and returns the result of `read`.

        read: gets the parsed id from the path. It runs before it is known whether the caller may read that, so what it
        returns or raises is discarded if the caller is refused. For an API key, it runs only for its organization.
        Raises the errors of `enter` first, then those of `read`.
        """
        requires, named = self.pending or (None, None)
        resource_id = requires.resource.id_type.parse(named or "") if requires and requires.resource else None
        if resource_id is None or self.principal.organization_id not in {None, resource_id.organization_id}:
            self.enter()
            raise LookupError("this route names no resource")
        with parallel.reading(lambda: read(resource_id)) as found:
            self.enter()
        return found()

    @property
    def plan(self) -> str:
        """The plan of the organization acted in. For routes with `plan`."""
        if self.known_plan is None:
            raise LookupError("this route doesn't read the plan")
        return self.known_plan

    def read_with_plan[R](self, read: Callable[[], R]) -> tuple[R, str]:
        """Returns the result of `read` and the organization's plan, read at the same time unless it is known."""
        if self.known_plan is not None:
            return read(), self.known_plan
        with parallel.reading(lambda: organizations.get_organization(self.organization_id)) as organization:
            found = read()
        return found, organization().plan

    @property
    def user_id(self) -> str:
        """The id of the acting person. For routes with `user_token`; raises LookupError for an API key."""
        if self.principal.user_id is None:
            raise LookupError("an API key has no acting user")
        return self.principal.user_id

    @property
    def project_ids(self) -> tuple[ProjectId, ...] | None:
        """The projects that an API key is limited to. None: the caller isn't limited to projects."""
        return self.principal.key.restrictions.project_ids if self.principal.key else None

    @property
    def caller_id(self) -> str:
        """The id that the request is attributed to: the person's, or for an API key the organization's."""
        return self.principal.user_id or self.principal.organization_id or ""

    @property
    def actor(self) -> Actor:
        if self.principal.user_id is not None:
            return Actor("person", self.principal.user_id, "api")
        return Actor("api_key", self.principal.key_id or "", "api")

    @property
    def log_fields(self) -> dict[str, Any]:
        principal = self.principal
        fields = {"principal": principal.kind, "caller": principal.key_id or principal.user_id}
        # An API key's organization is known even if the request was rejected before an organization was resolved.
        if self.organization is not None:
            fields["organizationId"] = self.organization.organization_id
        elif principal.organization_id is not None:
            fields["organizationId"] = principal.organization_id
        return fields

    @property
    def headers(self) -> dict[str, str]:
        counted, key = self.counted, self.principal.key
        headers = {
            "X-RateLimit-Limit": str(counted.limit),
            "X-RateLimit-Remaining": str(max(0, counted.limit - counted.hits)),
            "X-RateLimit-Reset": str(counted.resets_at),
        }
        if key is not None and (expires_at := key.restrictions.expires_at_text) is not None:
            headers["X-Key-Expires-At"] = expires_at
        if key is not None and key.successor is not None:
            headers["X-Key-Replaced-By"] = key.successor
        return headers

    @property
    def rate_group(self) -> str:
        """The plan of an API key, or `person`."""
        return self.principal.key.plan if self.principal.key else "person"

    def note_refusal(self, refusal: Refusal) -> None:
        """Records the refusal for the organization of the request, or for the person if it has none."""
        principal, organization = self.principal, self.organization
        owner_id = organization.organization_id if organization else principal.organization_id
        limits = {
            "requestsPerMinute": self.counted.limit,
            "requests": self.counted.hits,
            "plan": self.known_plan,
            "role": organization.role if organization else None,
            "scopes": sorted(principal.scopes) if isinstance(refusal.error, InsufficientScope) else None,
        }
        refusals.record(refusal, owner_id or self.caller_id, self.caller_id, principal.key_id, limits)


@dataclass(frozen=True, slots=True)
class Requires(CallerRequirements[Access[Any]]):
    """Requirements of a route on its caller.

    scope: the scope the credential must have, or None if any valid credential is accepted.
    plan: read the organization's plan too, in the same round trip as the resource.
    or_scope: an alternative scope. The error names `scope`.
    role: the minimum membership role.
    organization: the source of the organization. `query`: the query parameter organizationId, or the credential's
        default; `path`: the path parameter organizationId; None: the route doesn't belong to an organization.
    late: the endpoint resolves organization and resource itself by calling `Access.enter` or `Access.enter_while`, and
        has neither until then. For endpoints whose body may also name the organization or must be checked by the
        endpoint first, and for those that read more at the same time.
    resource: the item identified by the path. Its organization is the one acted in.
    user_token: accept only a person's credential. API keys lack every scope that such routes require.
    projects: what the route does for an API key that is limited to some projects. `refused`: nothing, unless its
        resource belongs to a project (`Resource.project_of`), in which case others don't exist for the key. `filtered`:
        the endpoint keeps to `Access.project_ids`. `untouched`: no project is in the request or the response.

    Raises, in this order: Unauthorized 401, AddressNotAllowed 403, RateLimited 429, PlanRequired 402, InsufficientScope
    403, NotForLimitedKeys 403. After the request is validated: NotFound 404 (the resource or path organization is
    unknown, outside the caller's memberships, or of a project outside the key's) or Forbidden 403 (an explicit
    organizationId outside them) or RoleRequired 403.
    """

    has_dry_runs: ClassVar[bool] = True

    scope: str | None = None
    role: Role = "member"
    organization: Literal["query", "path"] | None = None
    late: bool = False
    resource: Resource | None = None
    user_token: bool = False
    plan: bool = False
    or_scope: str | None = None
    projects: Literal["refused", "filtered", "untouched"] = "refused"

    def identify(self, request: RequestReader) -> Access[Any]:
        """Authenticates the credential and counts the request. Raises Unauthorized, RateLimited."""
        principal, counted = authenticate(request.authorization, request.address)
        return Access(principal, counted, request.address, known_plan=principal.key.plan if principal.key else None)

    def check(self, caller: Access[Any]) -> None:
        """Raises the errors of the class that come before the request's validation, in its order.

        Raises UserTokenRequired for an API key on a route with `user_token`.
        """
        principal = caller.principal
        networks = principal.key.restrictions.allowed_ips if principal.key else None
        # First, so that a stolen key can't use up the limit of its organization.
        if networks is not None and not is_within(caller.address, networks):
            raise AddressNotAllowed
        check_rate(principal, caller.counted)
        if principal.key and not PLANS[principal.key.plan].api_access:
            raise PlanRequired
        if self.scope is not None and not {self.scope, self.or_scope} & {*principal.scopes}:
            raise InsufficientScope(self.scope)
        if self.user_token and principal.user_id is None:
            raise UserTokenRequired
        if caller.project_ids is not None and not self.keeps_to_projects:
            raise NotForLimitedKeys

    @property
    def accepts_keys(self) -> bool:
        """Returns whether an API key can have the route's scope."""
        return not self.user_token and self.keys_can_have_scope

    @property
    def keys_can_have_scope(self) -> bool:
        return self.scope is None or bool({self.scope, self.or_scope} & {*API_KEY_SCOPES})

    @property
    def keeps_to_projects(self) -> bool:
        """Returns whether an API key that is limited to some projects can use the route."""
        return self.projects != "refused" or (self.resource is not None and self.resource.project_of is not None)

    @property
    def id_parameter(self) -> tuple[Any, Any] | None:
        if self.resource is not None:
            return Annotated[str, Path(alias=self.resource.parameter)], Parameter.empty
        if self.organization == "path":
            return Annotated[str, Path(alias="organizationId")], Parameter.empty
        if self.organization == "query":
            description = "The organization to act in. Defaults to the credential's own, or to the saved one."
            return Annotated[str | None, Query(alias="organizationId", min_length=1, description=description)], None
        return None

    def resolve(self, caller: Access[Any], named_id: str | None) -> None:
        """Sets organization and resource, and checks the role and the organization's rate limit.

        `named_id` is the id from the path or the query.
        """
        if self.late:
            caller.pending = self, named_id
            return
        if self.resource is not None:
            _resolve_resource(caller, self.resource, named_id or "", with_plan=self.plan)
        elif self.organization is not None:
            caller.organization = _find_organization(caller.principal, self.organization, named_id)
        else:
            return
        if RANK[caller.membership.role] < RANK[self.role]:
            raise RoleRequired(self.role, caller.membership.role)
        if (token := caller.principal.token) is not None:
            check_organization_of_person(token, caller.counted, caller.organization_id)


def _find_organization(principal: Principal, source: str, named: str | None) -> organizations.Membership:
    """Returns the caller's membership in the named or default organization.

    Raises NotFound for an organization from the path and Forbidden for one from the query if the caller isn't a member.
    """
    error = NotFound if source == "path" else Forbidden
    if principal.user_id is None:
        if named is not None and named != principal.organization_id:
            raise error()
        return key_organization(principal)
    if named is not None:
        membership = ids.is_root(ids.ORGANIZATION, named) and organizations.find_membership(principal.user_id, named)
        if not membership:
            raise error()
        return membership
    account = organizations.get_account(principal.user_id)
    if (active := account.active) is not None:
        return active
    if not account.memberships:
        raise Forbidden(
            f"This account belongs to no organization. Accept an invitation at {dashboard_base_url()}/invitations or "
            "create an organization with POST /v1/organizations."
        )
    raise InvalidPayload.at(
        ["organizationId"],
        "This account has several organizations and no default. Send organizationId, or save a default with "
        "PUT /v1/me/active-organization.",
        "missing",
    )


def _resolve_resource(access: Access[Any], resource: Resource, named: str, *, with_plan: bool) -> None:
    """Reads the resource and the caller's membership in its organization, in one round trip.

    Raises NotFound if either doesn't exist.
    """
    resource_id = known(resource.id_type.parse(named), NotFound)
    keys = [resource.key(*resource_id.location)]
    if resource.companion is not None:
        keys.append(resource.companion(resource_id))
    principal = access.principal
    if principal.user_id is None:
        if resource_id.organization_id != principal.organization_id:
            raise NotFound
        items = table.batch_get(keys) if resource.companion else [table.get(*keys)]
        access.organization = key_organization(principal)
    elif with_plan:
        items, access.organization, access.known_plan = organizations.get_with_membership_and_plan(
            keys, principal.user_id, resource_id.organization_id
        )
    else:
        items, access.organization = organizations.get_with_membership(
            keys, principal.user_id, resource_id.organization_id
        )
    item, *companions = items
    if item is None or access.organization is None:
        raise NotFound
    access.resource = resource.read(item, *companions)
    if access.project_ids is not None:
        project_id = resource.project_of(access.resource) if resource.project_of else None
        if project_id not in access.project_ids:
            raise NotFound
