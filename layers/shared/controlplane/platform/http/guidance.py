"""Adds to an error response where its code is documented and what to do next."""

from typing import Any

from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.urls import error_page

# The next step, by code. The gateway's own responses in template.yaml have the same texts.
HINTS: dict[str, str] = {
    "INVALID_PAYLOAD": "Correct each problem, then send the request again.",
    "INVALID_REGION": "Use the id of a region that GET /v1/regions lists.",
    "INVALID_ORIGIN": "Correct each address, then send the request again.",
    "UNAUTHORIZED": "Sign in again, or send a valid API key as a bearer token.",
    "PLAN_REQUIRED": "Ask the operator of the service to change the plan of the organization.",
    "PLAN_LIMIT_REACHED": "Remove something that counts toward the limit, or ask the operator to change the plan.",
    "INSTANCE_LIMIT_REACHED": "Remove an instance, or ask the operator to change the plan.",
    "INSUFFICIENT_CREDITS": "Ask the operator of the service for credits.",
    "UNLOCK_REQUIRED": "Ask an owner of the organization to unlock the report.",
    "INSUFFICIENT_SCOPE": "Use a credential that has the scope in details.requiredScope.",
    "FORBIDDEN": "Use a credential that is allowed to do this, or ask an admin or owner of the organization.",
    "NOT_FOUND": "Check the path against /openapi.json, and each ID against the list that it is from.",
    "CONFLICT": "Read the current state, then decide whether to send a changed request.",
    "KEY_LIMIT_REACHED": "Delete an API key or revoke an old secret that is no longer used.",
    "SCAN_IN_PROGRESS": "Wait until the scan has ended, then send the request again.",
    "REPOSITORY_NOT_LINKED": "Connect the repository, and link a project to it.",
    "PAYLOAD_TOO_LARGE": "Send a smaller body.",
    "RATE_LIMITED": "Wait for the number of seconds in Retry-After, then send the request again.",
    "INTERNAL_ERROR": "Try again later, and report the X-Request-Id if it fails again.",
    "SERVICE_UNAVAILABLE": "Try again shortly. Check first whether a creation has taken effect.",
}


def public_details(error: ApiError) -> Any:
    """Returns the details of the response: those of the error, with `docsUrl` and `hint`.

    If the details are a list of problems, the first one has them.
    """
    guidance = {"docsUrl": error_page(error.code), "hint": HINTS[error.code]}
    if isinstance(error.details, list):
        first, *others = error.details
        return [{**first, **guidance}, *others]
    return {**(error.details or {}), **guidance}
