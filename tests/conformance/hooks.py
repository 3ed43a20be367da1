"""Settings of schemathesis beyond the document. They run in their own environment (requirements/conformance.in).

No check is disabled. A 400 response to a request that fits the document is a failure, except for the errors below, each
of which has a cause that no schema can express.
"""

import json
from typing import Any
from uuid import uuid4

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

# By the code in `details`.
_NOT_SAID_BY_A_SCHEMA = {
    "invalid_cursor": "only a list gives out its cursors",
    "invalid_region": "which regions there are is a setting",
    "unknown_field": "it is named next to other problems, and is one itself only if nothing else would change",
    "invalid_origin": "which names people can own is a list of its own (public suffixes), and changes",
    "invalid_url": "which host names are public is decided by their form and a list",
    "invalid_time": "years and leap seconds that fit the format aren't all times of the server's clock",
    "contradiction": "the query and the body, or two names of a field, say different things",
    "invalid_branch": "the name of a branch has a limit in bytes",
    "duplicate": "no two items of a list may have the same id",
    "empty": "of a change at least one field is known",
    "invalid_client": "which clients there are is a setting",
    "invalid_scope": "which scopes there are changes with the service",
    "unknown_project": "only the list of projects gives out their ids",
    "invalid_network": "which texts are networks is decided by two address families",
    "host_bits": "the bits of an address after its network's prefix are zero",
    "in_the_past": "the clock decides which times are in the future",
    "not_a_person": "whether the caller is a person is decided by the credential",
    "until": "only a dismissal can have an end, and the document can't say that of two fields",
    "widens": "what a key is limited to is decided by its earlier requests",
}
# OAuth returns 400 for everything that a JSON request gets 401, 403, or 409 for (RFC 6749 section 5.2, RFC 8628 section
# 3.5), including an unknown code or token.
_REFUSED_GRANTS = {
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "expired_token",
    "authorization_pending",
    "slow_down",
}


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Makes a request independent of earlier ones, and in a sequence, makes later ones depend on it.

    An Idempotency-Key is unique: with another body, a used one correctly returns 400, and with the same body, it
    returns what may have been deleted since. A sequence has no dry runs: a later request can't find what they return.
    """
    if case.meta is None:
        return
    if "Idempotency-Key" in (case.headers or {}) and not case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers["Idempotency-Key"] = str(uuid4())
    dry_run = (case.query or {}).get("dryRun")
    if case.meta.phase.name is TestPhase.STATEFUL and (dry_run is True or dry_run == "true"):
        del case.query["dryRun"]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Exception, case: Case, response: Response) -> bool:
    """Returns whether the failure is real."""
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 400:
        return True
    error = json.loads(response.content)["error"]
    if isinstance(error, str):
        return error not in _REFUSED_GRANTS
    return not {problem["code"] for problem in error["details"]} <= _NOT_SAID_BY_A_SCHEMA.keys()
