"""Callers without a credential: a rate limit per client address, counted before the body is parsed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controlplane.platform.core import clock
from controlplane.platform.core.errors import RateLimited, RouteNotFound
from controlplane.platform.http.callers import Caller, CallerRequirements, Dialect
from controlplane.platform.http.client_address import network_of
from controlplane.platform.http.reader import RequestReader
from controlplane.platform.table import rate

# Stands for all addresses in the key of a counter.
_ALL = "all"


@dataclass(frozen=True, slots=True)
class AnonymousCaller(Caller):
    """A caller that is identified only by its address, which it can't choose (`client_address`)."""

    address: str


@dataclass(frozen=True, slots=True)
class Anonymous(CallerRequirements[AnonymousCaller]):
    """Requirements of a route without credentials, `Annotated[AnonymousCaller, Anonymous(...)]`.

    counter: the name under which an address's requests are counted. Routes with the same counter share the limit.
    per_minute: the requests per minute allowed for one address.
    enabled: whether the route is enabled. If not, it responds like an unknown path.
    dialects: formats supported in addition to JSON in the envelope, by media type.
    per_minute_in_all: the requests per minute allowed for all addresses together. None: no such limit.
    """

    counter: str
    per_minute: int
    enabled: Callable[[], bool] = lambda: True
    dialects: Mapping[str, Dialect] = field(default_factory=dict)
    per_minute_in_all: int | None = None

    def select_dialect(self, request: RequestReader) -> Dialect | None:
        if not self.enabled():
            raise RouteNotFound
        return self.dialects.get(request.media_type)

    def identify(self, request: RequestReader) -> AnonymousCaller:
        return AnonymousCaller(request.address)

    def check(self, caller: AnonymousCaller) -> None:
        """Counts the request. Raises RateLimited beyond the limit, and Throttled if it can't be counted."""
        self._count(network_of(caller.address), self.per_minute)
        if self.per_minute_in_all is not None:
            self._count(_ALL, self.per_minute_in_all)

    def _count(self, counted_for: str, limit: int) -> None:
        counted = rate.count_address(self.counter, counted_for, limit)
        if counted.hits > counted.limit:
            raise RateLimited(counted.resets_at - int(clock.now()))
