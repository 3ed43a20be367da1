"""Formats of requests and responses other than JSON in the envelope: OAuth's forms, and pages."""

from typing import TYPE_CHECKING, Any, Protocol

from starlette.responses import Response

from controlplane.core.errors import ApiError

if TYPE_CHECKING:
    from controlplane.http.callers import Caller


class Dialect(Protocol):
    """An alternative format of requests and responses."""

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the body's fields under the names of the endpoint's model, in snake_case. Raises InvalidPayload."""

    def success(self, content: Any) -> Response:
        """Returns the response for the endpoint's return value."""

    def failure(self, error: ApiError, caller: "Caller") -> Response:
        """Returns the response for an error. Used for every error of the route, starting with its first check.

        caller: a `Caller` of the base class until the caller is identified.
        """
