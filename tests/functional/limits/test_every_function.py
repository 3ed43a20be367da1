"""The side effects of counting a request, in each function: its policy must allow all of them."""

import re

import pytest

from controlplane.people import credential_index
from controlplane.platform.core import clock
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.table import PREPARED

WITH_TOKEN = {operation.group: operation for operation in operations() if operation.requires}
IN_ORGANIZATION = {
    operation.group: operation
    for operation in operations()
    if operation.method == "GET" and operation.requires and operation.requires.organization
}


def path_of(operation: Operation, organization_id: str = "x") -> str:
    return re.sub(r"\{\w+\}", organization_id, operation.path)


@pytest.mark.parametrize("group", WITH_TOKEN)
def test_the_first_use_of_a_token_in_an_hour_is_recorded(group, api, world, now):
    person = world.person()
    for _ in range(2):  # 05:34, in the hour of its creation; 06:02
        now.advance(1_700)
        api.call(WITH_TOKEN[group].method, path_of(WITH_TOKEN[group]), person.token)
    (entry,) = credential_index.list_credentials(person.user_id, 10).items
    assert entry.last_used_at == clock.timestamp()


@each("group", IN_ORGANIZATION)
def test_the_plan_is_read_only_above_the_lowest_limit(group, api, world):
    company = world.company()
    minute = int(clock.now()) // 60
    owner_count = keys.owner_count(company.organization_id, minute)
    table.update(Update(owner_count, "SET #hits = :hits", values={"hits": 12_000}), PREPARED)
    # The next request with the token completes a block, so it reserves one at the organization's counter.
    change = "SET #win = :minute, #hits = :hits"
    table.update(
        Update(keys.user_token(digest(company.owner.token)), change, values={"minute": minute, "hits": 11}), PREPARED
    )
    path = path_of(IN_ORGANIZATION[group], company.organization_id)
    assert api.get(path, company.owner.token).status == 200
    assert table.get(owner_count)["hits"] == 12_012
