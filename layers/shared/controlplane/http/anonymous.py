"""Requirements for unauthenticated routes: a rate limit per client address.

An endpoint declares one alias, `Annotated[AnonymousCaller, Anonymous(...)]`. The route class (`controlplane.http.app`)
counts the request before its body is parsed, and supports dialects other than the envelope if the route declares them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response

from controlplane.core import clock
from controlplane.core.errors import ApiError, RateLimited
from controlplane.http.client_address import client_address, network_of
from controlplane.store import rate


class Dialect(Protocol):
    """An alternative format of requests and responses, selected by the request's media type."""

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the body's fields under the names of the endpoint's model, in snake_case. Raises InvalidPayload."""

    def success(self, content: Any) -> Response:
        """Returns the response for the endpoint's return value."""

    def failure(self, error: ApiError) -> Response:
        """Returns the response for an error. Used for every error of the route, starting with the rate limit."""


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Requirements for an unauthenticated route.

    counter: the name under which an address's requests are counted. Routes with the same counter share the limit.
    per_minute: the requests per minute allowed for one address.
    offered: whether the route is enabled. If not, it responds like an unknown path.
    dialects: formats supported in addition to JSON in the envelope, by media type.
    """

    counter: str
    per_minute: int
    offered: Callable[[], bool] = lambda: True
    dialects: Mapping[str, Dialect] = field(default_factory=dict)


class AnonymousCaller(NamedTuple):
    """An anonymous caller, identified only by its address, which it can't choose (`client_address`)."""

    address: str


def address_of(request: Request) -> str:
    """Returns the address of the client that sent the request."""
    return client_address(request.client.host if request.client else "", request.headers.getlist)


def admit(stranger: AnonymousCaller, asks: Anonymous) -> None:
    """Counts the request. Raises RateLimited beyond the limit, and Throttled if it can't be counted."""
    counted = rate.count_address(asks.counter, network_of(stranger.address), asks.per_minute)
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
