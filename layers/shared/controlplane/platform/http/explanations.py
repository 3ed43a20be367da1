"""Records why a request with a known caller was refused, so that `GET /v1/requests/{requestId}` can say it later.

A record has facts only: codes, names of declared fields, ids, numbers, and the limits at that time. It has no text that
was sent, no address, no person's name or id, and only the id of an API key.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError
from controlplane.platform.table import refusals

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


class Refusal(NamedTuple):
    """A refused request. declared: the names of the operation's fields, parameters, and headers."""

    error: ApiError
    operation: str
    request_id: str
    declared: Collection[str]


def record(refusal: Refusal, owner_id: str, caller_id: str, key_id: str | None, limits: Mapping[str, Any]) -> None:
    """Records the refusal for its owner, an organization or a person. At most one write.

    limits: those of the caller at that time, with None for one that the request didn't get to know.
    """
    error, details = refusal.error, refusal.error.details
    facts: dict[str, Any] = {
        "at": clock.timestamp(),
        "status": error.status,
        "code": error.code,
        "rule": _WORD_START.sub("_", type(error).__name__).lower(),
        "operation": refusal.operation,
        "keyId": key_id,
        "limits": _present(limits),
    }
    if isinstance(details, list):
        facts["problems"] = [_problem(problem, refusal.declared) for problem in details[:_PROBLEMS]]
    elif isinstance(details, dict):
        facts["details"] = {name: details[name] for name in _DETAILS if name in details}
    refusals.record(owner_id, key_id or caller_id, refusal.request_id, _present(facts))


def _problem(problem: dict[str, Any], declared: Collection[str]) -> dict[str, Any]:
    """Returns the code of the problem, and its field or parameter if the operation declares that."""
    return {"code": problem["code"], "field": next((name for name in problem["path"][:1] if name in declared), None)}


def _present(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
