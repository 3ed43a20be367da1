"""PATCH /v1/inbox, which changes several items."""

from typing import Any

import pytest

from controlplane.aws.errors import NoAnswer
from controlplane.core.errors import CATALOG
from controlplane.store import inbox, keys
from controlplane.store.idempotency import LEASE_SECONDS
from controlplane.store.inbox_items import InboxItem
from controlplane.store.table import Delete, table
from tests.functional.inbox.test_update_inbox_item import stored
from tests.support.api import Api, Reply
from tests.support.audit_log import all_entries
from tests.support.calls import intercepted
from tests.support.crashes import dies_at
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import Company, World

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


def change(item: InboxItem, status: str = "dismissed", **values: Any) -> dict[str, Any]:
    return {"id": item.item_id, "status": status, "version": item.version, **values}


def patch(api: Api, company: Company, *items: dict[str, Any], **options: Any) -> Reply:
    path = f"/v1/inbox?organizationId={company.organization_id}"
    return api.patch(path, company.owner.token, json_body={"items": [*items]}, **options)


class Test200:
    def test_each_item_has_its_own_result_in_the_order_of_the_request(self, api: Api, world: World, company: Company):
        items = [world.finding(company) for _ in range(4)]
        stale, gone, foreign = items[1], items[2], world.finding(world.company())
        inbox.change_status(stale, "accepted", stale.version, company.owner.user_id, None)
        table.delete(Delete(keys.inbox_item(*gone.item_id.location)), PREPARED)
        sent = [
            change(items[3], "resolved", reason="fixed"),
            change(stale),
            change(gone),
            change(foreign),
            {**change(items[0]), "id": "nonsense"},
            change(items[0], "accepted"),
        ]
        reply = patch(api, company, *sent)
        results = reply.data["results"]
        assert reply.status == 200
        assert [it["id"] for it in results] == [it["id"] for it in sent]
        assert [it["statusCode"] for it in results] == [200, 409, 404, 404, 404, 200]
        assert [it["item"] is None for it in results] == [it["error"] is not None for it in results]
        for result, sent_one in zip(results, sent, strict=True):
            # What the operation on this item alone returns now.
            body = {name: value for name, value in sent_one.items() if name != "id"}
            alone = api.patch(f"/v1/inbox/{sent_one['id']}", company.owner.token, json_body=body)
            if sent_one["id"] != foreign.item_id:
                assert alone.status == result["statusCode"]
                assert (result["item"] or {}) == (alone.data if alone.status == 200 else {})
            if alone.status != 200:
                error = alone.error
                details = {**error.get("details", {}), **alone.guidance}
                assert result["error"] == {**error, "details": details}
                assert CATALOG[result["error"]["code"]] == result["statusCode"]
        assert inbox.get_item(foreign.item_id).status == "open"

    def test_each_changed_item_has_an_entry_in_the_audit_log_and_no_other(
        self, api: Api, world: World, company: Company
    ):
        items = [world.finding(company) for _ in range(3)]
        patch(api, company, change(items[0]), change(items[1], "open"), change(items[2]))
        entries = [entry for entry in all_entries() if entry["action"] == "inbox.change_status"]
        assert sorted(entry["resource"] for entry in entries) == sorted([items[0].item_id, items[2].item_id])
        assert {entry["after"]["status"] for entry in entries} == {"dismissed"}

    def test_a_hundred_items_can_be_changed_at_once(self, api: Api, world: World, company: Company):
        items = [world.finding(company) for _ in range(100)]
        reply = patch(api, company, *map(change, items), headers=KEY)
        assert [it["item"]["status"] for it in reply.data["results"]] == ["dismissed"] * 100
        assert patch(api, company, *map(change, items), headers=KEY).text == reply.text

    def test_a_repeated_request_returns_the_same_and_writes_nothing(self, api: Api, world: World, company: Company):
        items = [world.finding(company) for _ in range(3)]
        sent = [change(item, "resolved", reason="fixed") for item in items]
        first, before = patch(api, company, *sent), stored()
        assert patch(api, company, *sent).data == first.data
        assert stored() == before

    def test_an_idempotency_key_returns_the_first_response_even_if_the_items_changed_since(
        self, api: Api, world: World, company: Company
    ):
        item = world.finding(company)
        first = patch(api, company, change(item), headers=KEY)
        current = inbox.get_item(item.item_id)
        inbox.change_status(current, "open", current.version, company.owner.user_id, None)
        second = patch(api, company, change(item), headers=KEY)
        assert (second.text, second.headers["idempotency-replayed"]) == (first.text, "true")
        assert patch(api, company, change(item, "accepted"), headers=KEY).code == "INVALID_PAYLOAD"
        assert patch(api, company, change(item)).data["results"][0]["statusCode"] == 409

    @pytest.mark.parametrize("death", [("TransactWriteItems", True), ("UpdateItem", False)])
    def test_after_a_crash_a_repetition_completes_the_changes(
        self, death: tuple[str, bool], api: Api, world: World, company: Company, now
    ):
        items = [world.finding(company) for _ in range(12)]
        with dies_at(death[0], applied=death[1]):
            assert patch(api, company, *map(change, items), headers=KEY).status == 500
        assert patch(api, company, *map(change, items), headers=KEY).error["details"] == {"reason": "in_flight"}
        now.advance(LEASE_SECONDS + 1)
        reply = patch(api, company, *map(change, items), headers=KEY)
        assert {it["statusCode"] for it in reply.data["results"]} == {200}
        assert {inbox.get_item(item.item_id).status for item in items} == {"dismissed"}
        entries = [entry for entry in all_entries() if entry["action"] == "inbox.change_status"]
        assert len(entries) == len(items)

    def test_an_item_that_changes_meanwhile_fails_alone(self, api: Api, world: World, company: Company):
        first, second = world.finding(company), world.finding(company)
        moved: list[str] = []

        def moving(call, proceed):
            if call.operation == "TransactWriteItems" and not moved:
                moved.append(first.item_id)
                inbox.change_status(first, "accepted", first.version, company.owner.user_id, None)
            return proceed()

        with intercepted(table.client, moving):
            results = patch(api, company, change(first)).data["results"]
        assert [it["statusCode"] for it in results] == [409]
        assert results[0]["error"]["details"]["currentStatus"] == "accepted"
        assert patch(api, company, change(second)).data["results"][0]["statusCode"] == 200


class Test400:
    def test_an_item_that_is_named_twice_is_refused_and_nothing_is_changed(
        self, api: Api, world: World, company: Company
    ):
        item = world.finding(company)
        before = stored()
        reply = patch(api, company, change(item), change(item, "accepted"))
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["items"]
        assert stored() == before

    @each("count", [0, 101])
    def test_a_request_has_1_to_100_items(self, count: int, api: Api, company: Company):
        items = [{"id": f"inb_{number}", "status": "open", "version": "x"} for number in range(count)]
        reply = patch(api, company, *items)
        assert (reply.status, reply.error["details"][0]["path"]) == (400, ["items"])

    @each("field", ["id", "status", "version"])
    def test_every_item_needs_its_id_status_and_version(self, field: str, api: Api, world: World, company: Company):
        item = world.finding(company)
        lacking = {name: value for name, value in change(item).items() if name != field}
        reply = patch(api, company, change(item), lacking)
        assert reply.error["details"][0]["path"] == ["items", "1", field]
        assert inbox.get_item(item.item_id).status == "open"


class Test403:
    def test_returns_403_for_an_api_key(self, api: Api, world: World, company: Company):
        item = world.finding(company)
        reply = api.patch("/v1/inbox", world.key(company), json_body={"items": [change(item)]})
        assert reply.code == "INSUFFICIENT_SCOPE"


class Test503:
    def test_a_failure_of_the_table_fails_the_request_and_a_repetition_completes_it(
        self, api: Api, world: World, company: Company
    ):
        items = [world.finding(company) for _ in range(3)]
        failing = items[1].item_id.local

        def refusing(call, proceed):
            if call.operation == "TransactWriteItems" and failing in str(call.parameters):
                raise NoAnswer("down")
            return proceed()

        with intercepted(table.client, refusing):
            assert patch(api, company, *map(change, items), headers=KEY).status == 503
        assert [inbox.get_item(item.item_id).status for item in items] == ["dismissed", "open", "dismissed"]
        reply = patch(api, company, *map(change, items), headers=KEY)
        assert [it["statusCode"] for it in reply.data["results"]] == [200] * 3
