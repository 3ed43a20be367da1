"""The error responses of an operation: from its access, its parameters, its body, and its route's declarations."""

import json
from types import SimpleNamespace
from typing import Any, NamedTuple

from controlplane.access.access import AddressNotAllowed, NotForLimitedKeys, Requires, UserTokenRequired
from controlplane.access.anonymous import Anonymous
from controlplane.access.idempotency import AnswerLost, KeyOfAnotherRequest, RequestInFlight
from controlplane.platform.core.errors import (
    ApiError,
    DatabaseUnavailable,
    Forbidden,
    IncompleteCredential,
    InsufficientScope,
    InternalError,
    InvalidPayload,
    NotFound,
    PayloadTooLarge,
    PlanRequired,
    RateLimited,
    RouteNotFound,
    Unauthorized,
    UnsupportedMediaType,
)
from controlplane.platform.http.callers import Caller
from controlplane.platform.http.route import ControlRoute, refusals_of

_PREPARATION = "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_SCAN = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_REPOSITORY = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
# Constructor arguments of the errors that describe the state they found, by group and class.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "findings.ScanNotCompleted": (SimpleNamespace(scan_id=_SCAN, status="running"),),
    "findings.ScanWithoutResult": (SimpleNamespace(scan_id=_SCAN, status="failed"),),
    "findings.UnlockRequired": (SimpleNamespace(scan_id=_SCAN, unlock_credits=50, locked_count=14),),
    "RateLimited": (12,),
    "InsufficientScope": ("projects.read",),
    "device_auth.InvalidScope": ("There is no scope named projects.",),
    "failures.NotCancelable": ("completed",),
    "feedback.HourlyQuotaReached": (2_340,),
    "inbox.StaleVersion": (SimpleNamespace(version="7b1e0c94a2d84f6f9d35c1e8b2a6f013", status="accepted"),),
    "invitations.AlreadyInvited": ("inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", 1_773_205_567),
    "invitations.TooManyInvitations": (100, 100),
    "issues.CreationRefused": ("issues-disabled",),
    "issues.FindingsLocked": (_SCAN,),
    "issues.HasAnotherIssue": (42,),
    "issues.LinkRefused": ("issue-not-found",),
    "issues.NotACodeFinding": ("runtime",),
    "issues.RepositoryNotLinked": (_REPOSITORY,),
    "members.OwnsTooMany": (20,),
    "organizations.OwnsTooMany": (20, 20),
    "organizations.SlugTaken": ("acme", ["acme-2", "acme-3", "acme-4"]),
    "projects.ProjectLimitReached": ("pro", 200),
    "projects.UnsupportedRegion": ("eu-centre",),
    "projects.UnusableOrigin": (["websites"], {0: "The scheme looks like a misspelled https. Write https://."}),
    "resends.ResentTooOften": ("invitation", 3),
    "unlocks.InsufficientCredits": (20, 50),
    "unlocks.NothingToUnlock": ("running",),
    "requests.ScanInProgress": (_PREPARATION, _SCAN),
    "projects.WebsiteRemovalNeedsAdmin": (
        [SimpleNamespace(website_id="web_01kb2m3n4p5q6r7s8t", origin="shop.example.com")],
    ),
}
# The same errors with other details, under their own names.
_VARIANTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "requests.ScanInProgress": ("scans.ScanInPreparation", (_PREPARATION, None)),
}
# Details of errors that can't be constructed directly, because the constructor needs the table.
_DETAILS: dict[str, Any] = {
    "KeyOfAnotherRequest": [
        {
            "code": "idempotency_key_reused",
            "message": "This key was used with another request. Use a new one.",
            "path": ["Idempotency-Key"],
        }
    ],
}
# Modules that most rooms have.
_SAME_IN_EACH_ROOM = {"routes", "store", "changes", "rules", "service", "items", "errors"}
_INVALID = InvalidPayload.at(["name"], "Field required", "missing")


class ErrorResponse(NamedTuple):
    """One error response: the name of its example, and its contents."""

    name: str
    status: int
    code: str
    message: str
    body: dict[str, Any]
    headers: tuple[str, ...]


def _name(kind: type[ApiError]) -> str:
    """Returns the class with its module, as in `invitations.AlreadyInvited`, or alone if it is no subject's."""
    room, *_, module = kind.__module__.removeprefix("controlplane.").split(".")
    if room in {"platform", "access"}:
        return kind.__name__
    return f"{room if module in _SAME_IN_EACH_ROOM else module}.{kind.__name__}"


def _example(kind: type[ApiError]) -> ApiError:
    """Returns an error of the class, as an operation raises it."""
    name = _name(kind)
    if name not in _DETAILS:
        return kind(*_ARGUMENTS.get(name, ()))
    return kind(details=_DETAILS[name])


def _describe(error: ApiError, name: str | None = None) -> ErrorResponse:
    public = {"code": error.code, "message": error.public, "details": error.details or {}}
    name = name or _name(type(error))
    return ErrorResponse(
        name, error.status, error.code, error.public, {"success": False, "error": public}, tuple(error.headers)
    )


def enveloped(route: ControlRoute, operation: dict[str, Any]) -> list[ErrorResponse]:
    """Returns every error response in the envelope, sorted by status."""
    found = [_describe(_INVALID), *_of_access(route), *_of_request(route, operation)]
    for kind in refusals_of(route.service_endpoint):
        found.append(_describe(_example(kind)))
        if variant := _VARIANTS.get(_name(kind)):
            name, arguments = variant
            found.append(_describe(kind(*arguments), name))
    found += [_describe(_example(RateLimited)), _describe(InternalError()), _describe(DatabaseUnavailable())]
    by_name = {error.name: error for error in found}
    return sorted(by_name.values(), key=lambda error: error.status)


def in_oauth(route: ControlRoute) -> list[ErrorResponse]:
    """Returns the same errors in OAuth's format, for form-encoded requests, sorted by status."""
    anonymous = route.requirements_as(Anonymous)
    if anonymous is None:
        return []
    (dialect,) = anonymous.dialects.values()
    kinds = [*refusals_of(route.service_endpoint), PayloadTooLarge, RateLimited, InternalError, DatabaseUnavailable]
    found = {}
    for error in (InvalidPayload.at(["token"], "This parameter is missing.", "missing"), *map(_example, kinds)):
        answer = dialect.failure(error, Caller())
        body = json.loads(bytes(answer.body))
        headers = ("Retry-After",) if "retry-after" in answer.headers else ()
        name = _name(type(error))
        found[name] = ErrorResponse(name, answer.status_code, body["error"], body["error_description"], body, headers)
    return sorted(found.values(), key=lambda error: error.status)


def _of_access(route: ControlRoute) -> list[ErrorResponse]:
    requires = route.requirements_as(Requires)
    if requires is None:
        return [_describe(RouteNotFound())] if route.requirements_as(Anonymous) is not None else []
    found = [_describe(error()) for error in (Unauthorized, IncompleteCredential, PlanRequired)]
    if requires.accepts_keys:
        found.append(_describe(AddressNotAllowed()))
        if not requires.keeps_to_projects:
            found.append(_describe(NotForLimitedKeys()))
    if requires.scope is not None:
        found.append(_describe(_example(InsufficientScope)))
    if requires.user_token and requires.keys_can_have_scope:
        found.append(_describe(UserTokenRequired()))
    if requires.organization == "query" or requires.role != "member":
        found.append(_describe(Forbidden()))
    if requires.organization == "path" or requires.resource is not None:
        found.append(_describe(NotFound()))
    return found


def _of_request(route: ControlRoute, operation: dict[str, Any]) -> list[ErrorResponse]:
    found = []
    if route.body_field is not None:
        found += [_describe(PayloadTooLarge()), _describe(UnsupportedMediaType())]
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        found += [_describe(_example(kind)) for kind in (KeyOfAnotherRequest, RequestInFlight, AnswerLost)]
    return found
