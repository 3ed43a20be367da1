"""An API key's requests are counted by day, without a further write."""

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.api_keys import usage as key_usage
from controlplane.platform.core import tokens
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from dashboard.api_keys.pages import usage_chart
from tests.functional.limits import conftest
from tests.support.table import PREPARED

_DAY = 86_400


@pytest.fixture
def secret(world):
    return world.key(world.company())


def send(api, secret, count):
    return conftest.send(api, secret, count, "/v1/projects")


def usage(secret):
    item = table.get(keys.key_secret(tokens.digest(secret)))
    return [(day.requests, day.refused) for day in key_usage.usage_of(item)]


def test_requests_and_refusals_are_counted_by_day_once_their_minute_has_ended(api, secret, now):
    change, values = "SET #rateLimit = :two, #refusedFor = :note", {"two": 2, "note": "1#org_0000000000000000"}
    table.update(Update(keys.key_secret(tokens.digest(secret)), change, values=values), PREPARED)
    assert send(api, secret, 3) == [200, 200, 429]
    item = table.get(keys.key_secret(tokens.digest(secret)))
    assert not [name for name in item if name.startswith(("requests", "refused2"))]
    now.advance(60)
    assert send(api, secret, 1) == [200]
    assert usage(secret)[-2:] == [(0, 0), (4, 1)]
    now.advance(_DAY)
    assert send(api, secret, 2) == [200, 200]
    assert usage(secret)[-3:] == [(0, 0), (4, 1), (2, 0)]


def test_the_last_14_days_are_kept_in_a_small_item(api, secret, now):
    key = keys.key_secret(tokens.digest(secret))
    for _ in range(17):
        table.update(Update(key, "SET #rateLimit = :none", values={"none": 0}), PREPARED)
        send(api, secret, 1)
        now.advance(_DAY)
    send(api, secret, 1)
    assert usage(secret) == [(1, 1)] * 14
    item = table.get(key) or {}
    assert sum(name.startswith("requests") for name in item) == 14
    assert sum(len(name) + len(str(value)) for name, value in item.items()) < 1_024, "it would cost two write units"


def test_usage_is_found_for_listed_keys_and_charted(api, world):
    company = world.company()
    first, second = world.key(company), world.key(company)
    send(api, first, 2)
    listed = api_keys.list_keys(company.organization_id, 50, None).items
    found = key_usage.find_usage(listed)
    by_digest = {key.digest: found[key.key_id][-1].requests for key in listed}
    assert by_digest == {tokens.digest(first): 2, tokens.digest(second): 0}
    chart = usage_chart(found[next(key.key_id for key in listed if key.digest == tokens.digest(first))])
    assert chart.rows[0] == ("Mar 4", [2, 0])
    assert len(chart.labels) == 14
