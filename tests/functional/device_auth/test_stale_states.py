"""Devices, families, and user codes that change, or expire, between a read and the write that depends on it."""

from typing import Any

import pytest

from controlplane.core import clock, tokens
from controlplane.store import (
    credential_index,
    device,
    device_approvals,
    keys,
    revocations,
    token_families,
)
from controlplane.store.device import LIFE_SECONDS
from controlplane.store.device_approvals import PEOPLE_PER_CODE, AlreadyDecided, UnknownUserCode
from controlplane.store.keys import Key
from controlplane.store.retry import WriteConflict
from controlplane.store.table import Delete, LegFailed, Update, table
from controlplane.store.token_families import REFRESH_SECONDS, Pair, TokenFamilyItem
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import CLIENT, Device, get_request, refresh, request_code, works
from tests.support.api import Api
from tests.support.calls import Call, Proceed, before_the_transaction, intercepted
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


@pytest.fixture
def approved(api: Api, person: Person) -> Device:
    return request_code(api).approved(person.user_id)


@pytest.fixture
def token(approved: Device) -> str:
    """Returns a refresh token."""
    return str(approved.redeem().data["refreshToken"])


def family_of(token: str) -> TokenFamilyItem:
    found = token_families.find_family(str(tokens.family_of(token)))
    assert found is not None
    return found


class TestFamily:
    def test_a_refresh_of_a_family_that_is_revoked_at_the_same_time_is_refused(self, api: Api, token: str):
        family_id = str(tokens.family_of(token))
        with before_the_transaction(table.client, lambda: token_families.revoke(family_id, "stolen")):
            assert refresh(api, token).status == 401
        assert family_of(token).state == "revoked"

    def test_two_refreshes_at_the_same_time_return_the_same_pair(self, api: Api, token: str):
        made: list[Pair] = []
        with before_the_transaction(table.client, lambda: made.append(token_families.rotate(token))):
            second = refresh(api, token).data
        assert (second["accessToken"], second["refreshToken"]) == (made[0].access_token, made[0].refresh_token)
        assert refresh(api, token).data["refreshToken"] == made[0].refresh_token

    def test_a_family_that_expires_during_its_refresh_is_refused(self, api: Api, token: str, now: FakeClock):
        key, passed = family_of(token).key, list[Call]()

        def around(call: Call, proceed: Proceed) -> Any:
            answer = proceed()
            if call.operation == "GetItem" and call.parameters["Key"]["pk"]["S"] == key.pk and not passed:
                passed.append(call)
                now.advance(REFRESH_SECONDS)
            return answer

        with intercepted(table.client, around):
            assert refresh(api, token).status == 401
        assert passed

    def test_a_revocation_ends_the_token_of_a_refresh_at_the_same_time(self, api: Api, token: str):
        made: list[Pair] = []
        with before_the_transaction(table.client, lambda: made.append(token_families.rotate(token))):
            token_families.revoke(str(tokens.family_of(token)), "stolen")
        assert not works(api, made[0].access_token)

    def test_of_several_revocations_the_first_is_kept(self, token: str, now: FakeClock):
        family_id, at = str(tokens.family_of(token)), clock.timestamp()
        with before_the_transaction(table.client, lambda: token_families.revoke(family_id, "stolen")):
            token_families.revoke(family_id, "at the same time")
        now.advance(1)
        token_families.revoke(family_id, "later")
        stored = table.get(keys.token_family(family_id))
        assert stored is not None
        assert (stored["reason"], stored["revokedAt"], stored["access"]) == ("stolen", at, [])

    def test_a_family_that_was_deleted_is_neither_refreshed_nor_revoked(self, api: Api, token: str):
        table.delete(Delete(family_of(token).key), PREPARED)
        assert refresh(api, token).status == 401
        before = table_dump()
        for client_id in (CLIENT, None):
            token_families.revoke_refresh_token(token, client_id)
        assert table_dump() == before

    def test_a_family_that_was_refreshed_is_not_deleted_by_its_earlier_state(self, token: str):
        legs = token_families.erasure(family_of(token))
        token_families.rotate(token)
        with pytest.raises(LegFailed):
            table.transact(legs, PREPARED)


class TestRequest:
    def test_a_request_that_was_redeemed_or_expired_is_not_redeemed(self, approved: Device, now: FakeClock):
        request = get_request(approved.device_code)
        now.advance(LIFE_SECONDS)
        with pytest.raises(WriteConflict):
            device.redeem(request)
        now.advance(-LIFE_SECONDS)
        device.redeem(request)
        with pytest.raises(WriteConflict):
            device.redeem(request)

    def test_of_two_polls_at_the_same_time_one_is_recorded(self, api: Api, now: FakeClock):
        request = get_request(request_code(api).device_code)
        assert not device.note_poll(request)
        now.advance(1)
        assert device.note_poll(request)
        assert get_request_of(request).interval == request.interval

    def test_a_repeated_write_of_an_early_poll_is_early(self, api: Api, now: FakeClock):
        pending = request_code(api)
        pending.redeem()
        now.advance(1)
        request = get_request(pending.device_code)
        assert device.note_poll(request)
        assert device.note_poll(request)

    def test_a_request_that_was_deleted_is_neither_polled_nor_withdrawn(self, approved: Device, person: Person):
        request = get_request(approved.device_code)
        with before_the_transaction(table.client, lambda: table.delete(Delete(request.key), PREPARED)):
            assert device_approvals.withdraw(request.digest, person.user_id) is None
        with pytest.raises(WriteConflict):
            device.note_poll(request)

    def test_only_the_person_who_approved_withdraws_that(self, approved: Device, world: World):
        request = get_request(approved.device_code)
        device_approvals.withdraw(request.digest, world.person().user_id)
        assert get_request_of(request).status == "approved"

    def test_a_withdrawal_does_not_end_what_was_redeemed(self, approved: Device, person: Person, world: World):
        request = get_request(approved.device_code)
        approved.redeem()
        assert device_approvals.withdraw(request.digest, person.user_id) is not None
        assert device_approvals.withdraw(request.digest, world.person().user_id) is None
        assert get_request_of(request).status == "redeemed"

    def test_another_person_neither_approves_nor_denies_what_was_approved(self, approved: Device, world: World):
        for decide in (lambda it: device_approvals.approve(approved.user_code, it, []),
                       lambda it: device_approvals.deny(approved.user_code, it)):  # fmt: skip
            with pytest.raises(AlreadyDecided):
                decide(world.person().user_id)

    def test_a_denial_ends_the_listing_of_the_approval(self, approved: Device, person: Person):
        listed = keys.credential(person.user_id, get_request(approved.device_code).listed_as)
        assert table.get(listed) is not None
        device_approvals.deny(approved.user_code, person.user_id)
        assert table.get(listed) is None

    def test_an_approval_that_is_denied_during_its_erasure_is_erased(self, approved: Device, person: Person):
        request = get_request(approved.device_code)
        entries = credential_index.list_credentials(person.user_id, 25, None).credentials
        (stored,) = revocations.find_stored(it for it in entries if it.request_digest == request.digest)
        with before_the_transaction(table.client, lambda: device_approvals.deny(approved.user_code, person.user_id)):
            revocations.erase(stored)
        assert device.find_by_digest(request.digest) is None


def get_request_of(request: device.DeviceRequestItem) -> device.DeviceRequestItem:
    found = device.find_by_digest(request.digest)
    assert found is not None
    return found


class TestUserCode:
    @pytest.fixture
    def pointer(self, api: Api) -> dict[str, Any]:
        """Returns the pointer of a code before anyone has looked it up."""
        request_code(api)
        (item,) = (it for it in table_dump() if it["pk"]["S"].startswith("UC#"))
        found = table.get(Key(item["pk"]["S"], item["sk"]["S"]))
        assert found is not None
        return found

    def test_two_looks_of_a_person_at_the_same_time_count_once(self, pointer: dict[str, Any]):
        for _ in range(2):
            device_approvals._note_look(pointer, "usr_1")
        assert stored(pointer)["seenBy"] == ["usr_1"]

    def test_people_who_look_at_the_same_time_are_limited(self, pointer: dict[str, Any]):
        for number in range(PEOPLE_PER_CODE):
            device_approvals._note_look(pointer, f"usr_{number}")
        with pytest.raises(UnknownUserCode):
            device_approvals._note_look(pointer, "usr_last")
        assert len(stored(pointer)["seenBy"]) == PEOPLE_PER_CODE

    def test_a_look_at_a_code_that_was_issued_again_is_refused(self, pointer: dict[str, Any]):
        key = Key(pointer["pk"], pointer["sk"])
        values = {"digest": "another", "seen": ["usr_2"]}
        table.update(Update(key, "SET #digest = :digest, #seenBy = :seen", None, values), PREPARED)
        for user_id in ("usr_1", "usr_2"):
            with pytest.raises(UnknownUserCode):
                device_approvals._note_look(pointer, user_id)
        assert stored(pointer)["seenBy"] == ["usr_2"]
        table.delete(Delete(key), PREPARED)
        with pytest.raises(UnknownUserCode):
            device_approvals._note_look(pointer, "usr_1")


def stored(pointer: dict[str, Any]) -> dict[str, Any]:
    found = table.get(Key(pointer["pk"], pointer["sk"]))
    assert found is not None
    return found
