"""The errors that a route declares for docs/openapi.json, because its types and requirements don't imply them.

It has no effect on requests: scripts/openapi reads it when it generates the document.
"""

from collections.abc import Callable

from controlplane.platform.core.errors import ApiError

_REFUSALS = "_refusals"


def refuses[F: Callable[..., object]](*errors: type[ApiError]) -> Callable[[F], F]:
    """Declares the errors that are specific to an operation.

    The errors of its access, parameters, body, and Idempotency-Key are derived from their declarations.
    """

    def declare(endpoint: F) -> F:
        setattr(endpoint, _REFUSALS, errors)
        return endpoint

    return declare


def refusals_of(endpoint: Callable[..., object]) -> tuple[type[ApiError], ...]:
    """Returns the errors that `refuses` declared, or an empty tuple."""
    declared: tuple[type[ApiError], ...] = getattr(endpoint, _REFUSALS, ())
    return declared
