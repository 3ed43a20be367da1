"""A flood of refusals is recorded up to the bound and no further, whichever requests win."""

import pytest

from controlplane.store import keys, refusals
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


def recorded(organization_id: str) -> list[str]:
    items = table.query(keys.refusals_pk(organization_id), consistent=True).items
    assert all(item["count"] == len(item["refusals"]) <= refusals.RECORDS_PER_ITEM for item in items)
    return [record["requestId"] for item in items for record in item["refusals"]]


def test_racing_refusals_of_a_caller_are_recorded_exactly_up_to_the_bound(stage: Stage) -> None:
    world: World = stage.fresh()
    company = world.company()
    key = world.key(company)
    refusals.forget_full()
    replies = [
        outcome.get()
        for outcome in run_repeatedly([lambda: stage.api.get("/v1/projects/prj_unknown", key)] * 8, times=5)
    ]
    assert {reply.status for reply in replies} == {404}
    found = recorded(company.organization_id)
    assert len(found) == refusals.RECORDS_PER_ITEM
    assert {*found} <= {reply.headers["x-request-id"] for reply in replies}
    explained = stage.api.get(f"/v1/requests/{found[0]}", company.owner.token)
    assert explained.data["refusal"]["code"] == "NOT_FOUND"
