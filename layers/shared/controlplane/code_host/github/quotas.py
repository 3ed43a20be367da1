"""The requests that installations have left, by the responses that this process has seen.

https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: each response has the number of requests
that are left, and the time at which the number is reset. `code_host.requests` tells other processes.
"""

from controlplane.code_host.github.errors import RateLimitedByHost
from controlplane.code_host.github.transport import Response
from controlplane.platform.core import clock


class Quotas:
    """The installations that have no request left, and until when, in Unix seconds."""

    def __init__(self) -> None:
        self._until: dict[int, int] = {}

    def note(self, installation_id: int, response: Response) -> None:
        """Remembers that the response was to the last request that the installation had."""
        reset = response.headers.get("X-RateLimit-Reset", "")
        if response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
            now = int(clock.now())
            seconds = int(reset) - int(response.date_seconds or now)
            if seconds > 0:
                self._until[installation_id] = now + seconds

    def seconds_left(self, installation_id: int) -> int:
        """Returns the seconds until the rate limit resets, or 0 if no limit is known to be reached."""
        seconds = self._until.get(installation_id, 0) - int(clock.now())
        if seconds <= 0:
            self._until.pop(installation_id, None)
        return max(0, seconds)

    def require(self, installation_id: int) -> None:
        """Raises RateLimitedByHost if the installation is known to have no request left."""
        if seconds := self.seconds_left(installation_id):
            raise RateLimitedByHost(seconds, reason="no request left")
