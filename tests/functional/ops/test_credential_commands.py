"""`assent-ops credential`."""

from typing import Any

import pytest

from controlplane.core import clock
from controlplane.store import (
    credential_index,
    device,
    device_approvals,
    identities,
    keys,
    sessions,
    sign_in,
    token_families,
)
from controlplane.store.table import LegFailed, Update, table
from tests.functional.device_auth.devices import get_request
from tests.functional.ops.conftest import Ops
from tests.functional.ops.test_user_commands import Guest
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.invariants import live_credentials_are_listed_and_listed_ones_exist, read_items
from tests.support.legacy_table import delete_index
from tests.support.table import PREPARED
from tests.support.world import World, table_dump


@pytest.fixture
def guest(world: World) -> Guest:
    return Guest(world)


def listed(user_id: str) -> dict[str, int]:
    """Returns the number of entries of each kind."""
    found = credential_index.list_credentials(user_id, 100).credentials
    kinds = [entry.kind for entry in found]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


class TestIndex:
    def test_credential_index_lists_every_live_credential_and_identity(self, ops: Ops, guest: Guest):
        delete_index()
        done = ops("credential", "index").document
        assert done["listed"] == 5
        assert done["completedAt"] == clock.timestamp()
        assert listed(guest.user_id) == {"device": 2, "session": 1, "token": 1}
        assert len(identities.list_identities(guest.user_id)) == 1

    def test_credential_index_shows_when_each_was_used(self, ops: Ops, guest: Guest):
        delete_index()
        ops("credential", "index")
        used = {entry.last_used_at for entry in credential_index.list_credentials(guest.user_id, 100).credentials}
        assert used == {"2026-03-04T05:00:00.000Z", "2026-03-04T05:06:07.000Z"}

    def test_credential_index_omits_expired_credentials(self, ops: Ops, guest: Guest, world: World, now):
        person = world.person()
        sessions.revoke(sessions.create(person.user_id))
        token_families.revoke_refresh_token(guest.refresh_token)
        now.advance(3_600)
        delete_index()
        assert ops("credential", "index").document["listed"] == 2  # the session of 12 hours, and the identity
        assert listed(guest.user_id) == {"session": 1}
        assert listed(person.user_id) == {}

    def test_credential_index_changes_nothing_when_run_again(self, ops: Ops, guest: Guest):
        ops("credential", "index")
        before = table_dump()
        assert ops("credential", "index").document["read"] == 0
        assert table_dump() == before

    def test_starts_over_with_the_option_again(self, ops: Ops, guest: Guest):
        ops("credential", "index")
        delete_index()
        assert ops("credential", "index", "--again").document["listed"] == 5

    def test_starting_over_makes_the_index_incomplete_at_once(self, ops: Ops, guest: Guest):
        ops("credential", "index")

        def interrupted(call: Call, proceed: Proceed) -> Any:
            if call.operation == "Scan":
                raise KeyboardInterrupt
            return proceed()

        with intercepted(table.client, interrupted):
            assert ops("credential", "index", "--again").exit_code != 0
        assert not credential_index.is_complete()

    def test_credential_index_resumes_after_an_interruption(self, ops: Ops, guest: Guest):
        delete_index()
        started: list[Any] = []

        def page_by_page(call: Call, proceed: Proceed) -> Any:
            """Reads one item per page, and kills the command at the fourth."""
            if call.operation == "Scan":
                call.parameters["Limit"] = 1
                started.append(call.parameters.get("ExclusiveStartKey"))
                if len(started) == 4:
                    raise KeyboardInterrupt
            return proceed()

        with intercepted(table.client, page_by_page):
            assert ops("credential", "index").exit_code != 0
        assert not credential_index.is_complete()
        with intercepted(table.client, page_by_page):
            assert ops("credential", "index").exit_code == 0
        assert started[4] == started[3] is not None
        assert credential_index.is_complete()
        assert listed(guest.user_id) == {"device": 2, "session": 1, "token": 1}

    def test_a_page_whose_items_were_not_all_listed_is_read_again(self, ops: Ops, guest: Guest):
        delete_index()

        def dies_at_the_first_write(call: Call, proceed: Proceed) -> Any:
            if call.operation == "Scan":
                call.parameters["Limit"] = 1
            if call.operation == "TransactWriteItems":
                raise KeyboardInterrupt
            return proceed()

        with intercepted(table.client, dies_at_the_first_write):
            assert ops("credential", "index").exit_code != 0
        assert ops("credential", "index").exit_code == 0
        assert listed(guest.user_id) == {"device": 2, "session": 1, "token": 1}

    @each("status", ["denied", "redeemed"])
    def test_credential_index_removes_names_and_addresses_of_decided_devices(self, ops: Ops, guest: Guest, status: str):
        key = keys.device_request(get_request(guest.waiting).digest)
        older = {"status": status, "deviceName": "laptop", "address": "203.0.113.77"}
        change = "SET #status = :status, #deviceName = :deviceName, #address = :address"
        table.update(Update(key, change, None, older), PREPARED)
        ops("credential", "index", "--again")
        stored = table.get(key) or {}
        assert {name: stored.get(name) for name in older} == {"status": status, "deviceName": None, "address": None}

    def test_indexed_credentials_can_be_revoked(self, ops: Ops, api: Any, guest: Guest):
        delete_index()
        ops("credential", "index")
        ops("user", "revoke", guest.email, "--yes")
        guest.assert_out(api)
        assert listed(guest.user_id) == {}

    def test_credential_index_keeps_existing_entries(self, ops: Ops, guest: Guest):
        before = table_dump()
        ops("credential", "index")
        after = [item for item in table_dump() if item["pk"]["S"] != keys.credential_backfill().pk]
        assert after == before
        live_credentials_are_listed_and_listed_ones_exist(read_items(table.client, table.name))


def test_an_unindexed_identity_is_listed_at_the_next_sign_in(guest: Guest):
    delete_index()
    sign_in.sign_in(guest.identity)
    assert len(identities.list_identities(guest.user_id)) == 1


def test_an_approval_that_is_redeemed_concurrently_is_listed_by_its_redemption(guest: Guest):
    request = device.find(guest.waiting)
    assert request is not None
    delete_index()
    older = device.find(guest.waiting)
    assert older is not None
    device.redeem(older)
    written = table_dump()
    with pytest.raises(LegFailed):
        device_approvals.list_older_approval(older)
    assert table_dump() == written
    assert listed(guest.user_id) == {"device": 1}
