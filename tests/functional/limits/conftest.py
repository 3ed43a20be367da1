"""Settings that a test overrides, and the counters of persons and organizations."""

from ipaddress import ip_network
from itertools import cycle, islice

import pytest

from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.calls import is_update_of, refused
from tests.support.table import PREPARED

MINUTE = 1_772_600_760  # 05:06:00, the minute in which the clock starts
THROTTLED = "ProvisionedThroughputExceededException"


def send(api, secrets, count, path="/v1/me"):
    """Sends requests with the secrets in turn. Returns the statuses."""
    listed = [secrets] if isinstance(secrets, str) else secrets
    return [api.get(path, secret).status for secret in islice(cycle(listed), count)]


def reserved(owner_id):
    """Returns the value of the owner's counter."""
    item = table.get(keys.owner_count(owner_id, MINUTE // 60))
    return item["hits"] if item else 0


def fill(owner_id, hits):
    """Sets the owner's counter."""
    table.update(Update(keys.owner_count(owner_id, MINUTE // 60), "SET #hits = :hits", None, {"hits": hits}), PREPARED)


def throttled(prefix):
    """Makes DynamoDB throttle every update of items in partitions with this prefix."""
    return refused(table.client, is_update_of(prefix), THROTTLED)


@pytest.fixture
def limit(monkeypatch):
    def change(**numbers):
        for name, number in numbers.items():
            monkeypatch.setitem(settings.__dict__, name, number)

    return change


@pytest.fixture
def proxy(monkeypatch):
    """Sets a trusted proxy at these addresses, which sends the client's address in X-Forwarded-For."""

    def trust(*networks):
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_header", "X-Forwarded-For")
        monkeypatch.setitem(settings.__dict__, "trusted_proxy_addresses", tuple(map(ip_network, networks)))

    return trust
