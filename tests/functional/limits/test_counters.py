"""Counters in the table: items that expire, of which a limited number may exist, and calls in a window of time."""

from itertools import product
from unittest.mock import Mock

import pytest

from controlplane.organizations import caps
from controlplane.platform.table import keys, rate
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.table import ConditionFailed, Put, table
from tests.support.table import PREPARED

KEY = keys.user("usr_0000000000000000")


def is_created(capacity):
    try:
        table.update(caps.count_creation(KEY, "ownerships", capacity), PREPARED)
    except ConditionFailed:
        return False
    return True


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_no_more_are_created_than_the_limit_allows_however_many_read_the_same(limit):
    for existing, created in product(range(5), (None, 0, 1, 2, 3, 4, 5)):
        if created is not None and created < existing:
            continue
        table.put(Put({**KEY._asdict(), **({} if created is None else {"ownerships": created})}), PREPARED)
        count = Mock(return_value=existing)
        capacity = caps.read_capacity(created, limit, count)
        made = sum(is_created(capacity) for _ in range(6))
        is_enough = created is not None and (limit is None or created < limit)
        assert count.called is not is_enough
        least = created if is_enough else existing
        assert made == (6 if limit is None else max(0, limit - (least or 0)))
        assert capacity.is_full is (made == 0)
        stored = table.get(KEY)
        before = existing if created is None and made else created
        assert stored.get("ownerships") == (before + made if before is not None else None)


@pytest.mark.parametrize(
    ("count", "key", "ends_at"),
    [
        (lambda: rate.count_address("me", "::1", 5), keys.address_count("me", "::1", 29_543_346), 1_772_600_820),
        (lambda: rate.count_try("usr_ada", 5), keys.code_tries("usr_ada", 1_969_556), 1_772_601_300),
    ],
    ids=["calls from an address", "attempts at a user code"],
)
def test_a_window_counts_from_zero_and_is_kept_for_15_minutes_after_its_end(count, key, ends_at, now):
    assert [count() for _ in range(2)] == [Counted(5, 1, ends_at), Counted(5, 2, ends_at)]
    assert table.get(key)["expiresAt"] == ends_at + 900
    now.seconds = ends_at - 1
    assert count().hits == 3
    now.seconds = ends_at
    assert count().hits == 1


def test_the_requests_of_an_owner_add_up_within_a_minute_and_an_attempt_is_returned_once():
    assert [rate.reserve_requests("org_acme", minute, 20) for minute in (7, 7, 8)] == [20, 40, 20]
    assert table.get(keys.owner_count("org_acme", 7))["expiresAt"] == 8 * 60 + 900
    for _ in range(3):
        rate.count_try("usr_ada", 5)
    rate.return_try("usr_ada")
    assert rate.count_try("usr_ada", 5).hits == 3
