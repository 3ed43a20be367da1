"""Records why a request with a known caller was refused, so that `GET /v1/requests/{requestId}` can say it later.

A record has facts only: codes, names of declared fields, ids, numbers, and the limits at that time. It has no text that
was sent, no address, no person's name or id, and only the id of an API key.
"""

import re
from typing import Any

from controlplane.core import clock
from controlplane.core.errors import ApiError, InsufficientScope, Problems
from controlplane.http.access import Access
from controlplane.http.fixes import operations
from controlplane.store import refusals

# Details that are numbers, ids, or values of enumerations.
_DETAILS = (
    "current",
    "currentStatus",
    "field",
    "limit",
    "lockedCount",
    "number",
    "plan",
    "preparationId",
    "reason",
    "remainingCredits",
    "requiredCredits",
    "requiredScope",
    "scanId",
    "scope",
    "status",
    "unlockCredits",
)
_PROBLEMS = 10
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def record(error: ApiError, caller: Access[Any], operation: str, request_id: str) -> None:
    """Records the refusal for the organization of the request, or for the person if it has none. At most one write."""
    principal = caller.principal
    organization_id = caller.organization.organization_id if caller.organization else principal.organization_id
    facts: dict[str, Any] = {
        "at": clock.timestamp(),
        "status": error.status,
        "code": error.code,
        "rule": _WORD_START.sub("_", type(error).__name__).lower(),
        "operation": operation,
        "keyId": principal.key_id,
        "problems": _problems(error.details, operation) if isinstance(error.details, list) else None,
        "details": {name: error.details[name] for name in _DETAILS if name in error.details}
        if isinstance(error.details, dict)
        else None,
        "limits": _limits(error, caller),
    }
    kept = {name: value for name, value in facts.items() if value is not None}
    refusals.record(organization_id or caller.caller_id, principal.key_id or caller.caller_id, request_id, kept)


def _problems(problems: Problems, operation: str) -> list[dict[str, Any]]:
    """Returns the code of each problem, and its field or parameter if the operation declares that."""
    declared = operations().get(operation, {})
    names = {*declared.get("query", ()), *declared.get("example", ()), "Idempotency-Key", "Content-Type"}
    return [
        {"code": problem["code"], "field": next((name for name in problem["path"][:1] if name in names), None)}
        for problem in problems[:_PROBLEMS]
    ]


def _limits(error: ApiError, caller: Access[Any]) -> dict[str, Any]:
    """Returns what applied to the caller at that time, as far as the request got to know it."""
    limits: dict[str, Any] = {
        "requestsPerMinute": caller.counted.limit,
        "requests": caller.counted.hits,
        "plan": caller.known_plan,
        "role": caller.organization.role if caller.organization else None,
        "scopes": sorted(caller.principal.scopes) if isinstance(error, InsufficientScope) else None,
    }
    return {name: value for name, value in limits.items() if value is not None}
