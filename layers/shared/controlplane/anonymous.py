"""What a route asks of a caller without a credential: that its address stays within a limit.

An endpoint declares one alias, `Annotated[Stranger, Anonymous(...)]`. The route class (`controlplane.app`) then counts
the request before its body is parsed, and lets it speak another dialect than the envelope where the route knows one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response

from controlplane import clock
from controlplane.client_address import client_address, network_of
from controlplane.errors import ApiError, RateLimited
from controlplane.store import rate


class Dialect(Protocol):
    """Another language of an operation, told by the media type of its requests: how bodies read and answers look."""

    def read(self, body: bytes) -> dict[str, Any]:
        """The body's fields by the names of the endpoint's model, snake_case. Raises InvalidPayload."""

    def success(self, content: Any) -> Response:
        """The answer that holds what the endpoint returned."""

    def failure(self, error: ApiError) -> Response:
        """The answer that refuses; every refusal of the route takes this form, from the limits on."""


@dataclass(frozen=True, slots=True)
class Anonymous:
    """What a route asks of a caller that shows no credential.

    counter: the name under which an address's requests are counted; routes that share it share the limit.
    per_minute: how many of them one address may make.
    offered: whether the route is there at all; where it is not, it answers as an unknown path does.
    dialects: what it speaks besides JSON in the envelope, by media type.
    """

    counter: str
    per_minute: int
    offered: Callable[[], bool] = lambda: True
    dialects: Mapping[str, Dialect] = field(default_factory=dict)


class Stranger(NamedTuple):
    """A caller of which only the address is known: nothing the caller can choose (`client_address`)."""

    address: str


def address_of(request: Request) -> str:
    """The address of the client that sent the request."""
    return client_address(request.client.host if request.client else "", request.headers.getlist)


def admit(stranger: Stranger, asks: Anonymous) -> None:
    """Counts the request. Raises RateLimited past the limit, and Throttled where it cannot be counted."""
    counted = rate.count_address(asks.counter, network_of(stranger.address), asks.per_minute)
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
