"""The error responses of an operation: from its access, its parameters, its body, and its route's declarations."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml

from controlplane.access.access import AddressNotAllowed, NotForLimitedKeys, Requires, UserTokenRequired
from controlplane.access.anonymous import Anonymous
from controlplane.access.idempotency import AnswerLost, KeyOfAnotherRequest, RequestInFlight
from controlplane.platform.core import errors
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.callers import Caller
from controlplane.platform.http.route import ControlRoute, refusals_of

# Arguments and details of the errors that describe the state they found.
_EXAMPLES = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text(encoding="utf-8"))
# Modules that most rooms have.
_SAME_IN_EACH_ROOM = {"routes", "store", "changes", "rules", "service", "items", "errors"}
# Errors of every operation.
_OF_EACH = (errors.RateLimited, errors.InternalError, errors.DatabaseUnavailable)
_INVALID = errors.InvalidPayload.at(["name"], "Field required", "missing")


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
    if name in _EXAMPLES["details"]:
        return kind(details=_EXAMPLES["details"][name])
    return kind(*map(_argument, _EXAMPLES["arguments"].get(name, ())))


def _argument(written: Any) -> Any:
    """Returns a constructor's argument, with an object for each mapping of names."""
    if isinstance(written, list):
        return [_argument(part) for part in written]
    if isinstance(written, dict) and all(isinstance(key, str) for key in written):
        return SimpleNamespace(**written)
    return written


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
        if variant := _EXAMPLES["variants"].get(_name(kind)):
            found.append(_describe(kind(*variant["arguments"]), variant["name"]))
    found += [_describe(_example(kind)) for kind in _OF_EACH]
    by_name = {error.name: error for error in found}
    return sorted(by_name.values(), key=lambda error: error.status)


def in_oauth(route: ControlRoute) -> list[ErrorResponse]:
    """Returns the same errors in OAuth's format, for form-encoded requests, sorted by status."""
    anonymous = route.requirements_as(Anonymous)
    if anonymous is None:
        return []
    (dialect,) = anonymous.dialects.values()
    kinds = [*refusals_of(route.service_endpoint), errors.PayloadTooLarge, *_OF_EACH]
    found = {}
    for error in (errors.InvalidPayload.at(["token"], "This parameter is missing.", "missing"), *map(_example, kinds)):
        answer = dialect.failure(error, Caller())
        body = json.loads(bytes(answer.body))
        headers = ("Retry-After",) if "retry-after" in answer.headers else ()
        name = _name(type(error))
        found[name] = ErrorResponse(name, answer.status_code, body["error"], body["error_description"], body, headers)
    return sorted(found.values(), key=lambda error: error.status)


def _of_access(route: ControlRoute) -> list[ErrorResponse]:
    requires = route.requirements_as(Requires)
    if requires is None:
        return [_describe(errors.RouteNotFound())] if route.requirements_as(Anonymous) is not None else []
    found = [_describe(error()) for error in (errors.Unauthorized, errors.IncompleteCredential, errors.PlanRequired)]
    if requires.accepts_keys:
        found.append(_describe(AddressNotAllowed()))
        if not requires.keeps_to_projects:
            found.append(_describe(NotForLimitedKeys()))
    if requires.scope is not None:
        found.append(_describe(_example(errors.InsufficientScope)))
    if requires.user_token and requires.keys_can_have_scope:
        found.append(_describe(UserTokenRequired()))
    if requires.organization == "query":
        found.append(_describe(errors.Forbidden()))
    if requires.role != "member":
        found.append(_describe(_example(errors.RoleRequired)))
    if requires.organization == "path" or requires.resource is not None:
        found.append(_describe(errors.NotFound()))
    return found


def _of_request(route: ControlRoute, operation: dict[str, Any]) -> list[ErrorResponse]:
    found = []
    if route.body_field is not None:
        found += [_describe(errors.PayloadTooLarge()), _describe(errors.UnsupportedMediaType())]
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        found += [_describe(_example(kind)) for kind in (KeyOfAnotherRequest, RequestInFlight, AnswerLost)]
    return found
