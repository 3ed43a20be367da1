"""Devices, families, and user codes that change, or expire, between a read and the write that depends on it."""

from typing import Any

import pytest

from controlplane.people import device, device_approvals, token_families
from controlplane.people.device import LIFE_SECONDS
from controlplane.people.device_approvals import PEOPLE_PER_CODE, UnknownUserCode
from controlplane.people.token_families import REFRESH_SECONDS
from controlplane.platform.core import clock, tokens
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Delete, LegFailed, Update, table
from tests.functional.device_auth.devices import CLIENT, get_request, refresh, works
from tests.support.calls import Call, before_the_transaction, intercepted
from tests.support.table import PREPARED
from tests.support.world import table_dump


@pytest.fixture
def token(pair):
    """Returns a refresh token."""
    return str(pair["refreshToken"])


@pytest.fixture
def family(token):
    found = token_families.find_family(str(tokens.family_of(token)))
    assert found is not None
    return found


@pytest.fixture
def request_item(approved):
    """Returns the request of an approved device."""
    return get_request(approved.device_code)


def stored(key: Key) -> dict[str, Any]:
    found = table.get(key)
    assert found is not None
    return found


class TestFamily:
    def test_a_family_that_expires_during_its_refresh_is_refused(self, api, token, family, now):
        passed = list[Call]()

        def around(call, proceed):
            answer = proceed()
            if call.operation == "GetItem" and call.parameters["Key"]["pk"]["S"] == family.key.pk and not passed:
                passed.append(call)
                now.advance(REFRESH_SECONDS)
            return answer

        with intercepted(table.client, around):
            assert refresh(api, token).status == 401
        assert passed

    def test_a_revocation_ends_a_refresh_at_the_same_time_and_its_reason_is_kept(self, api, token, family, now):
        made, at = [], clock.timestamp()
        with before_the_transaction(table.client, lambda: made.append(token_families.rotate(token))):
            token_families.revoke(family.family_id, "stolen")
        assert not works(api, made[0].access_token)
        assert refresh(api, token).status == 401
        now.advance(1)
        token_families.revoke(family.family_id, "later")
        item = stored(family.key)
        assert (item["state"], item["reason"], item["revokedAt"], item["access"]) == ("revoked", "stolen", at, [])

    def test_what_is_revoked_at_the_same_time_is_neither_refreshed_nor_revoked_again(self, api, token, family):
        with before_the_transaction(table.client, lambda: token_families.revoke(family.family_id, "stolen")):
            assert refresh(api, token).status == 401
        assert stored(family.key)["reason"] == "stolen"

    def test_of_two_revocations_at_the_same_time_the_first_is_kept(self, family):
        with before_the_transaction(table.client, lambda: token_families.revoke(family.family_id, "first")):
            token_families.revoke(family.family_id, "second")
        assert stored(family.key)["reason"] == "first"

    def test_two_refreshes_at_the_same_time_return_the_same_pair(self, api, token, family):
        made = []
        with before_the_transaction(table.client, lambda: made.append(token_families.rotate(token))):
            second = refresh(api, token).data
        assert (second["accessToken"], second["refreshToken"]) == (made[0].access_token, made[0].refresh_token)
        assert refresh(api, token).data["refreshToken"] == made[0].refresh_token
        with pytest.raises(LegFailed):  # its earlier state deletes nothing
            table.transact(token_families.erasure(family), PREPARED)

    def test_a_family_that_was_deleted_is_neither_refreshed_nor_revoked(self, api, token, family):
        table.delete(Delete(family.key), PREPARED)
        assert refresh(api, token).status == 401
        before = table_dump()
        for client_id in (CLIENT, None):
            token_families.revoke_refresh_token(token, client_id)
        assert table_dump() == before


class TestRequest:
    def test_a_request_that_was_redeemed_or_expired_is_not_redeemed(self, request_item, now):
        now.advance(LIFE_SECONDS)
        with pytest.raises(WriteConflict):
            device.redeem(request_item)
        now.advance(-LIFE_SECONDS)
        device.redeem(request_item)
        with pytest.raises(WriteConflict):
            device.redeem(request_item)

    def test_of_two_polls_at_the_same_time_one_is_recorded_and_the_other_early(self, pending, now):
        request = get_request(pending.device_code)
        assert not device.note_poll(request)
        now.advance(0.1)
        assert device.note_poll(request)
        polled = get_request(pending.device_code)
        assert polled.interval == request.interval
        # A repeated write of an early poll is early, too.
        now.advance(1)
        assert [device.note_poll(polled) for _ in range(2)] == [True, True]

    def test_a_request_that_was_decided_or_deleted_is_not_polled(self, pending, person):
        request = get_request(pending.device_code)
        pending.approved(person.user_id)
        with pytest.raises(WriteConflict):
            device.note_poll(request)
        with before_the_transaction(table.client, lambda: table.delete(Delete(request.key), PREPARED)):
            assert device_approvals.withdraw(request.digest, person.user_id) is None
        with pytest.raises(WriteConflict):
            device.note_poll(request)

    def test_only_who_approved_withdraws_that_and_not_what_was_redeemed(self, approved, request_item, person, world):
        other = world.person()
        assert device_approvals.withdraw(request_item.digest, other.user_id) is None
        assert get_request(approved.device_code).status == "approved"
        approved.redeem()
        assert device_approvals.withdraw(request_item.digest, person.user_id) is not None
        assert device_approvals.withdraw(request_item.digest, other.user_id) is None
        assert get_request(approved.device_code).status == "redeemed"


class TestUserCode:
    @pytest.fixture
    def pointer(self, pending):  # it has the code
        """Returns the pointer of a code before anyone has looked it up."""
        (item,) = (it for it in table_dump() if it["pk"]["S"].startswith("UC#"))
        return stored(Key(item["pk"]["S"], item["sk"]["S"]))

    def test_people_who_look_at_the_same_time_count_once_and_are_limited(self, pointer):
        people = [f"usr_{number}" for number in range(PEOPLE_PER_CODE)]
        for user_id in (people[0], *people):
            device_approvals._note_look(pointer, user_id)
        with pytest.raises(UnknownUserCode):
            device_approvals._note_look(pointer, "usr_last")
        assert stored(Key(pointer["pk"], pointer["sk"]))["seenBy"] == people

    def test_a_look_at_a_code_that_was_issued_again_is_refused(self, pointer):
        key = Key(pointer["pk"], pointer["sk"])
        values = {"digest": "another", "seen": ["usr_2"]}
        table.update(Update(key, "SET #digest = :digest, #seenBy = :seen", None, values), PREPARED)
        for user_id in ("usr_1", "usr_2"):
            with pytest.raises(UnknownUserCode):
                device_approvals._note_look(pointer, user_id)
        assert stored(key)["seenBy"] == ["usr_2"]
        table.delete(Delete(key), PREPARED)
        with pytest.raises(UnknownUserCode):
            device_approvals._note_look(pointer, "usr_1")
