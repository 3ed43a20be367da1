"""The error catalog: every error code that clients can receive, its HTTP status, and the exceptions that carry them.

Each class represents one distinguishable outcome and is named after the fact. Its `message` is public and says what to
do next. Details for operators go into `context`, which is logged and never sent.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from controlplane.platform.core.roles import Role
from controlplane.platform.core.settings import settings

# The problems of a request, each with its code, message, and path.
type Problems = list[dict[str, Any]]

CATALOG: dict[str, int] = {
    "INVALID_PAYLOAD": 400,
    "INVALID_REGION": 400,
    "INVALID_ORIGIN": 400,
    "UNAUTHORIZED": 401,
    "PLAN_REQUIRED": 402,
    "PLAN_LIMIT_REACHED": 402,
    "INSTANCE_LIMIT_REACHED": 402,
    "INSUFFICIENT_CREDITS": 402,
    "UNLOCK_REQUIRED": 402,
    "INSUFFICIENT_SCOPE": 403,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "KEY_LIMIT_REACHED": 409,
    "SCAN_IN_PROGRESS": 409,
    "REPOSITORY_NOT_LINKED": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "SERVICE_UNAVAILABLE": 503,
}


# Upper bounds for a list of problems, more than any legitimate request needs.
MAX_DETAILS = 100
MAX_DETAIL_LENGTH = 300
MAX_PATH_PARTS = 70
# The similarity of two words that are written almost alike, such as `project` and `projects`.
_ENOUGH = 0.75
# Longer than most names. Comparing two words takes the product of their lengths.
_LONGEST_WORD = 40
_NO_LETTER = re.compile(r"[^a-z0-9]")


class ApiError(Exception):
    """An error that is returned to the client.

    `{operator}` in the message becomes the operator, with the contact of this deployment.
    `details` is the structured part of the response body, `headers` are response headers, `context` is only logged.
    `title` is the heading of a page that shows the error, if its status doesn't say enough.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"
    message: ClassVar[str] = "Something went wrong on our side. Try again, and quote the request id if it persists."
    title: ClassVar[str | None] = None
    # The details of a class whose errors all have the same.
    fixed_details: ClassVar[Mapping[str, Any] | None] = None

    def __init__(
        self,
        message: str | None = None,
        *,
        details: Any = None,
        headers: dict[str, str] | None = None,
        status: int | None = None,
        **context: Any,
    ) -> None:
        self.public = settings.name_operator(message or self.message)
        self.details: Any = self.fixed_details if details is None else details
        self.headers = headers or {}
        self.status = status or CATALOG[self.code]
        self.context = context
        super().__init__(self.code)


class InvalidPayload(ApiError):
    """The request's body, query, headers, or method are invalid for the operation. `details` always lists the problems.

    The message is the one given, or else the first problem and how many more there are.
    """

    code = "INVALID_PAYLOAD"
    message = "The request is invalid."
    # The code and the path of the only problem, if there are no details.
    problem: ClassVar[str] = "invalid"
    path: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str | None = None, *, details: Problems | None = None, **options: Any) -> None:
        if not details:
            details, message = [problem([*self.path], message or self.message, self.problem)], None
        super().__init__(message or summarize(details), details=limit_problems(details), **options)

    @classmethod
    def at(cls, path: list[str], message: str, code: str = "invalid", **options: Any) -> "InvalidPayload":
        """Returns an error with one problem. `path` lists the field names from the outermost in."""
        return cls(details=[problem(path, message, code)], **options)


class InvalidRegion(InvalidPayload):
    code = "INVALID_REGION"


class InvalidOrigin(InvalidPayload):
    code = "INVALID_ORIGIN"


# The error of a request whose problems, apart from unknown fields, all have one of these codes: that of the first one.
_OWN_ERRORS: dict[str, type[InvalidPayload]] = {"invalid_region": InvalidRegion, "invalid_origin": InvalidOrigin}


def problem(path: list[str], message: str, code: str) -> dict[str, Any]:
    """Returns a problem of a request. `path` lists the field names from the outermost in."""
    return {"code": code, "message": message, "path": path}


def invalid(problems: Problems) -> InvalidPayload:
    """Returns the error with these problems. Unknown fields don't change its code."""
    codes = {it["code"] for it in problems} - {"unknown_field"}
    kinds = [kind for code, kind in _OWN_ERRORS.items() if code in codes]
    return (kinds[0] if kinds and codes <= _OWN_ERRORS.keys() else InvalidPayload)(details=problems)


def summarize(problems: Problems, spell: Callable[[list[str]], str] = ".".join) -> str:
    """Returns the first problem, and how many more there are: `codeChallenge: field required (and 2 more)`.

    `spell` converts a path to the field's name.
    """
    first, *others = problems
    text: str = first["message"]
    if first["path"]:
        # Keeps acronyms: "JSON", "GET".
        start = text[:1].lower() if text[1:2].islower() or text[1:2] == " " else text[:1]
        text = f"{_truncate(spell(first['path']))}: {start}{text[1:]}"
    return f"{text.rstrip('.')} (and {len(others):,} more)" if others else text


def limit_problems(details: Problems) -> Problems:
    """Returns the first problems with truncated texts: a hostile body chooses field names and may have thousands."""
    listed = [
        {
            **problem,
            "message": _truncate(problem["message"]),
            "path": [_truncate(part) for part in problem["path"][:MAX_PATH_PARTS]],
        }
        for problem in details[:MAX_DETAILS]
    ]
    if left_out := len(details) - len(listed):
        listed.append({"code": "more", "message": f"{left_out:,} more problems are not listed.", "path": []})
    return listed


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_DETAIL_LENGTH else text[: MAX_DETAIL_LENGTH - 1] + "…"


class UnknownCursor(InvalidPayload):
    message = "This list didn't issue this cursor with these filters. Begin again without a cursor."
    problem = "invalid_cursor"
    path = ("cursor",)


class MethodNotAllowed(InvalidPayload):
    message = "This path doesn't support that method. The Allow header lists the supported methods."
    problem = "method_not_allowed"

    def __init__(self, allowed: list[str]) -> None:
        super().__init__(status=405, headers={"Allow": ", ".join(sorted({*allowed}))})


class UnsupportedMediaType(InvalidPayload):
    message = "The body isn't declared as JSON. Send it with the header Content-Type: application/json."
    problem = "unsupported_media_type"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, status=415)


class Unauthorized(ApiError):
    """The credential was rejected.

    Every reason that depends on what is stored gives the same response, so that callers can't tell them apart.
    """

    code = "UNAUTHORIZED"
    message = "The credential is missing, invalid, or expired. Send a valid bearer token."
    challenge: ClassVar[str] = "Bearer"

    def __init__(self, **context: Any) -> None:
        super().__init__(headers={"WWW-Authenticate": self.challenge}, **context)


class InvalidToken(Unauthorized):
    """A bearer token was sent and rejected. Only the challenge says so (RFC 6750, section 3.1)."""

    challenge = 'Bearer error="invalid_token"'


class IncompleteCredential(InvalidToken):
    """The credential's checksum is wrong. Anyone can compute that, so it reveals nothing about stored credentials."""

    message = "This key or token is incomplete or mistyped: its checksum is wrong. Copy all of it again."

    def __init__(self) -> None:
        super().__init__(details={"reason": "incomplete_credential"})


class PlanRequired(ApiError):
    code = "PLAN_REQUIRED"
    message = "This requires a paid plan. API access starts with the Starter plan. Ask {operator} to change the plan."


class PlanLimitReached(ApiError):
    code = "PLAN_LIMIT_REACHED"
    message = "The plan's limit has been reached. Remove something first, or ask {operator} to change the plan."


class InsufficientScope(ApiError):
    code = "INSUFFICIENT_SCOPE"

    def __init__(self, required_scope: str) -> None:
        super().__init__(
            f"This credential lacks the scope {required_scope}.",
            details={"requiredScope": required_scope},
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{required_scope}"'},
        )


class Forbidden(ApiError):
    code = "FORBIDDEN"
    message = "This credential can't act in that organization. GET /v1/organizations lists those that it can act in."


class RoleRequired(Forbidden):
    """The caller's role in the organization is too low.

    role: the caller's. None if the role was lost while the request ran, so that the new one isn't known.
    """

    def __init__(
        self, required: Role = "admin", role: Role | None = None, message: str | None = None, **details: Any
    ) -> None:
        allowed, one = ("admins and owners", "an admin or owner") if required == "admin" else ("owners", "an owner")
        yours = f" Your role is {role}." if role else ""
        super().__init__(
            message or f"Only {allowed} can do this.{yours} Ask {one} of the organization.",
            details={"requiredRole": required, "role": role, **details},
        )


class NotFound(ApiError):
    """The resource doesn't exist or is outside the caller's memberships. Both cases give the same response."""

    code = "NOT_FOUND"
    message = "There is no such resource."


class RouteNotFound(NotFound):
    message = "This path doesn't exist, or it doesn't support this method. See /openapi.json for the API."


class Conflict(ApiError):
    code = "CONFLICT"
    message = "The request conflicts with the current state."


class PayloadTooLarge(ApiError):
    code = "PAYLOAD_TOO_LARGE"
    message = "The request body is larger than 1,048,576 bytes."


class RateLimited(ApiError):
    code = "RATE_LIMITED"
    message = "Too many requests. Wait as long as the Retry-After header says."

    def __init__(self, retry_after_seconds: int, **context: Any) -> None:
        super().__init__(headers={"Retry-After": str(max(1, retry_after_seconds))}, **context)


class InternalError(ApiError):
    pass


class ServiceUnavailable(ApiError):
    code = "SERVICE_UNAVAILABLE"
    message = "The service is temporarily unavailable. Try again shortly."


class DatabaseUnavailable(ServiceUnavailable):
    """The table didn't respond in time. A write may have been applied."""

    message = (
        "The database is unavailable. Try again shortly. A creation may have taken effect: look for it first, or "
        "repeat it with the same Idempotency-Key."
    )

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


def known[Found](found: Found | None, unknown: Exception | type[Exception]) -> Found:
    """Returns the found object. Raises `unknown` if it is None."""
    if found is None:
        raise unknown
    return found


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Returns ` Did you mean NAME?` with the most similar name, or an empty text. Ignores case and punctuation."""
    plain = _NO_LETTER.sub("", word.lower())
    best = max(names, key=lambda name: _similarity(plain, name.lower()), default="")
    return f" Did you mean {best}?" if _similarity(plain, best.lower()) >= _ENOUGH else ""


def _similarity(word: str, name: str) -> float:
    from difflib import SequenceMatcher  # noqa: PLC0415 (only requests with a mistake need it)

    return SequenceMatcher(None, word, name).ratio() if max(len(word), len(name)) <= _LONGEST_WORD else 0.0
