"""PATCH /v1/inbox, which changes several items."""

import pytest

from controlplane.findings import inbox
from controlplane.platform.core.errors import CATALOG
from controlplane.platform.table import keys
from controlplane.platform.table.idempotency import LEASE_SECONDS
from controlplane.platform.table.table import Delete, table
from tests.functional.inbox.conftest import Organization, stored
from tests.support.audit_log import all_entries
from tests.support.crashes import dies_at
from tests.support.table import PREPARED

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


def to(status, item, **values):
    return {"id": item.item_id, "status": status, "version": item.version, **values}


def dismissing(items):
    return [to("dismissed", item) for item in items]


def statuses(items):
    return [inbox.get_item(item.item_id).status for item in items]


def logged():
    return [entry for entry in all_entries() if entry["action"] == "inbox.change_status"]


def test_each_item_has_its_own_result_in_the_order_of_the_request(acme, api, world):
    items = [acme.find() for _ in range(4)]
    stale, gone, foreign = items[1], items[2], Organization(api, world).find()
    acme.move(stale, "accepted")
    table.delete(Delete(keys.inbox_item(*gone.item_id.location)), PREPARED)
    sent = [
        to("resolved", items[3], reason="fixed"),
        *dismissing([stale, gone, foreign]),
        {**to("dismissed", items[0]), "id": "nonsense"},
        to("accepted", items[0]),
    ]
    reply = acme.change_all(*sent)
    results = reply.data["results"]
    assert reply.status == 200
    assert [it["id"] for it in results] == [it["id"] for it in sent]
    assert [it["statusCode"] for it in results] == [200, 409, 404, 404, 404, 200]
    assert [it["item"] is None for it in results] == [it["error"] is not None for it in results]
    for result, change in zip(results, sent, strict=True):
        # What the operation on this item alone returns now.
        body = {name: value for name, value in change.items() if name != "id"}
        alone = api.patch(f"/v1/inbox/{change['id']}", acme.owner.token, json_body=body)
        assert (alone.status, CATALOG.get(alone.body.get("error", {}).get("code"), 200)) == (result["statusCode"],) * 2
        if alone.status == 200:
            assert (result["item"], result["error"]) == (alone.data, None)
        else:
            details = {**alone.error.get("details", {}), **alone.guidance}
            assert (result["item"] or {}, result["error"]) == ({}, {**alone.error, "details": details})
    assert inbox.get_item(foreign.item_id).status == "open"


def test_each_changed_item_has_an_entry_in_the_audit_log_and_no_other(acme):
    items = [acme.find() for _ in range(3)]
    acme.change_all(to("dismissed", items[0]), to("open", items[1]), to("dismissed", items[2]))
    found = {entry["resource"]: entry["after"]["status"] for entry in logged()}
    assert (len(logged()), found) == (2, {items[0].item_id: "dismissed", items[2].item_id: "dismissed"})


def test_a_hundred_items_can_be_changed_at_once(acme):
    changes = dismissing(acme.find() for _ in range(100))
    reply = acme.change_all(*changes, headers=KEY)
    assert [it["item"]["status"] for it in reply.data["results"]] == ["dismissed"] * 100
    assert acme.change_all(*changes, headers=KEY).text == reply.text


def test_a_repeated_request_returns_the_same_and_writes_nothing(acme):
    sent = [to("resolved", acme.find(), reason="fixed") for _ in range(3)]
    first, before = acme.change_all(*sent), stored()
    assert acme.change_all(*sent).data == first.data
    assert stored() == before


@pytest.mark.parametrize(("operation", "applied"), [("TransactWriteItems", True), ("UpdateItem", False)])
def test_after_a_crash_a_repetition_completes_the_changes(operation, applied, acme, now):
    items = [acme.find() for _ in range(12)]
    with dies_at(operation, applied=applied):
        assert acme.change_all(*dismissing(items), headers=KEY).status == 500
    for seconds in (0, LEASE_SECONDS):
        now.advance(seconds)
        assert acme.change_all(*dismissing(items), headers=KEY).error["details"] == {"reason": "in_flight"}
    now.advance(1)
    reply = acme.change_all(*dismissing(items), headers=KEY)
    assert {it["statusCode"] for it in reply.data["results"]} == {200}
    assert (statuses(items), len(logged())) == (["dismissed"] * 12, 12)


def test_a_list_that_cant_be_applied_returns_400_and_changes_nothing(acme):
    change = to("dismissed", acme.find())
    before = stored()
    refused = [[change, change], [], [{**change, "id": f"inb_{number}"} for number in range(101)]]
    for changes in refused:
        assert acme.change_all(*changes).error["details"][0]["path"] == ["items"]
    for field in ("id", "status", "version"):
        lacking = {name: value for name, value in change.items() if name != field}
        reply = acme.change_all(change, lacking)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["items", "1", field]
    assert stored() == before
