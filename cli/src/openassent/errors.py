"""The errors that the client raises. None of them contains a credential."""

from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from openassent._bodies import json_of, seconds_of
from openassent.models import Problem

M = TypeVar("M", bound=BaseModel)


class AssentError(Exception):
    """The base of every error of this package."""


class InvalidArgument(AssentError, ValueError):
    """An argument can't be used, such as a key with a line break in it. Nothing was sent.

    The message doesn't quote the argument.
    """


class ConnectionFailed(AssentError):
    """The service couldn't be reached, or the connection was lost.

    outcome_unknown: whether the request may have taken effect. False if it was never sent.
    """

    def __init__(self, message: str, *, outcome_unknown: bool = True) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class TimedOut(ConnectionFailed):
    """The service didn't respond within the client's timeout."""


class WaitTimedOut(AssentError):
    """`wait` or `poll` reached its own limit. The operation continues."""


class ScanStartFailed(AssentError):
    """The requested scan couldn't be started.

    code: the reason, such as `REPOSITORY_UNAVAILABLE`, for programs. Expect values that you don't know.
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class MalformedResponse(AssentError):
    """The response isn't from this API: a wrong base URL, or a proxy that responds itself."""

    def __init__(self, message: str, *, status: int = 0, request_id: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id


class ApiError(AssentError):
    """The service refused the request, or failed. Subclasses tell which; branch on them, or on `code`.

    status: the HTTP status.
    code: the error's code, such as `NOT_FOUND`, or None if a gateway or proxy responded in place of the service.
    message: what is wrong and what to do, for people. It may change.
    details: the error's details as the service sent them: a list of problems if the request is invalid, else an object.
    hint: what to do next.
    docs_url: the documentation of the code.
    request_id: quote it when you report a problem. `client.requests.get(request_id)` explains a refusal.
    retry_after: the seconds to wait before the next attempt, if the service said so.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str | None = None,
        details: Any = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.details = {} if details is None else details
        self.request_id = request_id
        self.retry_after = retry_after
        first = self._first_details()
        self.hint = _text(first.get("hint"))
        self.docs_url = _text(first.get("docsUrl"))

    @property
    def problems(self) -> list[Problem]:
        """The problems of an invalid request, each with the `path` of its field. Empty for other errors."""
        listed = self.details if isinstance(self.details, list) else []
        return [problem for it in listed if (problem := _valid(Problem, it)) is not None]

    def _first_details(self) -> Mapping[str, Any]:
        first = self.details[0] if isinstance(self.details, list) and self.details else self.details
        return first if isinstance(first, dict) else {}

    def __str__(self) -> str:
        request = "" if self.request_id is None else f" (request {self.request_id})"
        return f"{self.code or self.status}: {self.message}{request}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(status={self.status}, code={self.code!r}, request_id={self.request_id!r})"


class InvalidRequest(ApiError):
    """400: the request is invalid. `problems` lists the fields."""


class InvalidRegion(InvalidRequest):
    """400: the region doesn't exist."""


class InvalidOrigin(InvalidRequest):
    """400: a website or trusted origin isn't a valid address."""


class PayloadTooLarge(InvalidRequest):
    """413: the body is larger than 1 MiB."""


class Unauthorized(ApiError):
    """401: the credential is missing, invalid, expired, or revoked."""


class DeviceCodeExpired(Unauthorized):
    """401: the device code is unknown or has expired. Start again."""


class PaymentRequired(ApiError):
    """402: the organization's plan or credits don't cover the request."""


class PlanRequired(PaymentRequired):
    """402: the plan doesn't include API access or the feature."""


class PlanLimitReached(PaymentRequired):
    """402: a limit of the plan is reached. `details` has `limit`, `current`, and `plan`."""


class InsufficientCredits(PaymentRequired):
    """402: too few credits. `details` has `remainingCredits` and `requiredCredits`."""


class UnlockRequired(PaymentRequired):
    """402: the scan's report is locked. `details` has `scanId`, `unlockCredits`, and `lockedCount`."""


class Forbidden(ApiError):
    """403: the caller's role, or the address of an API key, doesn't allow the operation."""


class InsufficientScope(Forbidden):
    """403: the credential lacks a scope. `details["requiredScope"]` names it."""


class AccessDenied(Forbidden):
    """403: the person denied the device's request."""


class NotFound(ApiError):
    """404: there is no such resource, or it belongs to an organization of which the caller isn't a member."""


class Conflict(ApiError):
    """409: the current state doesn't allow the change. Read it, then decide."""


class AuthorizationPending(Conflict):
    """409: the person hasn't decided about the device's request yet."""


class SlowDown(AuthorizationPending):
    """409: as `AuthorizationPending`, and the device polls too often."""


class KeyLimitReached(Conflict):
    """409: the organization has the maximum number of API keys."""


class ScanInProgress(Conflict):
    """409: the repository is being scanned. `details` has `scanId` or `preparationId`."""


class RepositoryNotLinked(Conflict):
    """409: the repository isn't connected, or no project is linked to it."""


class RateLimited(ApiError):
    """429: too many requests. `retry_after` has the seconds to wait."""


class ServerError(ApiError):
    """500 and above: the service failed. A change may have taken effect."""


class ServiceUnavailable(ServerError):
    """503: the service, or what it depends on, is overloaded or paused. A change may have taken effect."""


_BY_CODE: dict[str, type[ApiError]] = {
    "INVALID_PAYLOAD": InvalidRequest,
    "INVALID_REGION": InvalidRegion,
    "INVALID_ORIGIN": InvalidOrigin,
    "UNAUTHORIZED": Unauthorized,
    "PLAN_REQUIRED": PlanRequired,
    "PLAN_LIMIT_REACHED": PlanLimitReached,
    "INSTANCE_LIMIT_REACHED": PlanLimitReached,
    "INSUFFICIENT_CREDITS": InsufficientCredits,
    "UNLOCK_REQUIRED": UnlockRequired,
    "INSUFFICIENT_SCOPE": InsufficientScope,
    "FORBIDDEN": Forbidden,
    "NOT_FOUND": NotFound,
    "CONFLICT": Conflict,
    "KEY_LIMIT_REACHED": KeyLimitReached,
    "SCAN_IN_PROGRESS": ScanInProgress,
    "REPOSITORY_NOT_LINKED": RepositoryNotLinked,
    "PAYLOAD_TOO_LARGE": PayloadTooLarge,
    "RATE_LIMITED": RateLimited,
    "INTERNAL_ERROR": ServerError,
    "SERVICE_UNAVAILABLE": ServiceUnavailable,
}
# `details.status` of the device grant, which has no codes of its own.
_BY_DEVICE_STATUS: dict[tuple[str, str], type[ApiError]] = {
    ("CONFLICT", "authorization_pending"): AuthorizationPending,
    ("CONFLICT", "slow_down"): SlowDown,
    ("FORBIDDEN", "access_denied"): AccessDenied,
    ("UNAUTHORIZED", "expired"): DeviceCodeExpired,
}
# For codes that this version doesn't know, and for gateways and proxies, which have none.
_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: PayloadTooLarge,
    429: RateLimited,
    503: ServiceUnavailable,
}


def error_of(response: httpx.Response) -> ApiError:
    """Returns the error of a response with a status of 400 or above, from the service or from a gateway."""
    error = _error_object(response)
    code, details = error.get("code"), error.get("details")
    code = code if isinstance(code, str) else None
    message = error.get("message")
    if not isinstance(message, str):
        message = f"The response has the status {response.status_code}, and not the format of this API."
    return _class_of(response.status_code, code, details)(
        message,
        status=response.status_code,
        code=code,
        details=details,
        request_id=response.headers.get("X-Request-Id"),
        retry_after=seconds_of(response.headers.get("Retry-After")),
    )


def _class_of(status: int, code: str | None, details: Any) -> type[ApiError]:
    state = details.get("status") if isinstance(details, dict) else None
    if code is not None and isinstance(state, str) and (code, state) in _BY_DEVICE_STATUS:
        return _BY_DEVICE_STATUS[code, state]
    fallback = _BY_STATUS.get(status, ServerError if status >= 500 else InvalidRequest)
    return _BY_CODE.get(code or "", fallback)


def _error_object(response: httpx.Response) -> Mapping[str, Any]:
    # The service never repeats a credential, but something between it and the client could.
    credential = response.request.headers.get("Authorization", "").rpartition(" ")[2]
    envelope = json_of(response.content, without=credential)
    error = envelope.get("error") if isinstance(envelope, dict) else None
    return error if isinstance(error, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _valid(model: type[M], value: Any) -> M | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
