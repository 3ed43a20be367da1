"""How long the code host limits the requests of an installation of our App, as it told one of our functions."""

from contextlib import suppress

from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.table import ConditionFailed, Put, Unrecorded, table


def limit(installation_id: int, seconds: int) -> None:
    """Records that the installation's requests are limited for that long. A longer limit isn't shortened."""
    until = int(clock.now()) + seconds
    item = {**keys.host_limit(installation_id)._asdict(), "until": until, "expiresAt": until}
    with suppress(ConditionFailed):
        table.put(Put(item, "attribute_not_exists(pk) OR #until < :until", {"until": until}), Unrecorded.COUNTER)


def seconds_left(installation_id: int) -> int:
    """Returns how long the installation's requests are still limited. 0: they aren't."""
    item = table.get(keys.host_limit(installation_id))
    return max(0, item["until"] - int(clock.now())) if item else 0
