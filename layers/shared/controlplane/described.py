"""What a route says of itself to the readers of docs/openapi.json, beside what its types and its access say already.

Nothing here does anything when a request runs: scripts/openapi reads it when the document is made.
"""

from collections.abc import Callable

from controlplane.errors import ApiError

_REFUSALS = "_refusals"


def refuses[F: Callable[..., object]](*errors: type[ApiError]) -> Callable[[F], F]:
    """Declares the refusals of an operation's own.

    Those of its access, its parameters, its body and its Idempotency-Key follow from these.
    """

    def note(endpoint: F) -> F:
        setattr(endpoint, _REFUSALS, errors)
        return endpoint

    return note


def refusals_of(endpoint: Callable[..., object]) -> tuple[type[ApiError], ...]:
    """What `refuses` declared, or nothing."""
    declared: tuple[type[ApiError], ...] = getattr(endpoint, _REFUSALS, ())
    return declared
