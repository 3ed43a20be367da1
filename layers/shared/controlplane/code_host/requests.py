"""Requests of workers to the code host, within the limits of each installation, which all workers share.

One of them learns of a limit from a response. The others read it from the table before they send anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.code_host import limits as host_limits
from controlplane.code_host.github import client
from controlplane.code_host.github.errors import RateLimitedByHost

LIMITED = "rate limited by the code host"
NO_KEY = "the App's key isn't accepted"
# An operator has to replace the key.
KEY_SECONDS = 300


@contextmanager
def within_limits(installation_id: int) -> Iterator[None]:
    """Records the installation's limits, from responses in the block, for all workers.

    Raises RateLimitedByHost, before the block, while the installation is known to be limited.
    """
    if seconds := host_limits.seconds_left(installation_id):
        raise RateLimitedByHost(seconds, reason="known")
    try:
        yield
    except RateLimitedByHost as error:
        host_limits.limit(installation_id, error.retry_after_seconds)
        raise
    finally:
        if seconds := client.get_transport()[1].quotas.seconds_left(installation_id):
            host_limits.limit(installation_id, seconds)
