"""Operations of the pages on a user code: find the request, approve it, deny it."""

import secrets
from collections.abc import Callable
from itertools import product

import pytest

from controlplane.people import device, device_approvals
from controlplane.people.device_approvals import (
    AlreadyDecided,
    RequestExpired,
    ScopeNotRequested,
    TooManyTries,
    UnknownUserCode,
)
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys, rate
from controlplane.platform.table.table import Delete, table
from tests.functional.device_auth.devices import Device, get_request, request_code
from tests.support.api import Api
from tests.support.calls import recorded_calls, refused
from tests.support.each import each
from tests.support.table import PREPARED, restored
from tests.support.world import Person


def approve(code: str, user_id: str) -> object:
    return device_approvals.approve(code, user_id, [])


DECISIONS: list[Callable[[str, str], object]] = [approve, device_approvals.deny]
OPERATIONS = [device_approvals.find_by_user_code, *DECISIONS]


def find(requester: Device, person: Person) -> str:
    """Looks up the device's code and returns the status of its request."""
    return device_approvals.find_by_user_code(requester.user_code, person.user_id).shown_status


def decision_before(decide: Callable[[str, str], object], requester: Device, person: Person) -> str:
    """Decides on a request that was already decided, and returns how."""
    with pytest.raises(AlreadyDecided) as failure:
        decide(requester.user_code, person.user_id)
    return str((failure.value.context or {})["decision"])


def wrong_code(requester: Device) -> str:
    """Returns a well-formed code that isn't this device's."""
    return "BBBB-BBBB" if requester.user_code != "BBBB-BBBB" else "CCCC-CCCC"


class TestFind:
    def test_the_code_is_accepted_as_people_type_it_and_not_by_half(self, pending, person):
        for separator, case in product(("", " ", "-", "_", "\u2011", " - ", "."), (str.lower, str.upper)):
            typed = " " + case(pending.user_code.replace("-", separator)) + "\n"
            found = device_approvals.find_by_user_code(typed, person.user_id)
            assert found == device.find(pending.device_code), typed
        assert device.find(pending.device_code[:-1]) is None
        assert device.find(pending.user_code) is None
        assert table.get(keys.device_request(digest(pending.user_code))) is None

    @each(
        "code",
        ["", "-", "BCDF", "BCDF-GHJ", "BCDF-GHJKL", "AEIO-UYBC", "1234-5678", "\u0412\u0421DF-GHJK", "B" * 9_999],
        around=restored,
    )
    def test_a_malformed_code_is_unknown_and_costs_no_read(self, person, code):
        with recorded_calls() as calls, pytest.raises(UnknownUserCode):
            device_approvals.find_by_user_code(code, person.user_id)
        assert [call.operation for call in calls] == ["UpdateItem"]  # counts the attempt

    def test_the_requests_outcome_is_shown(self, api, person, now):
        asked = approved, denied, redeemed, _ = [request_code(api) for _ in range(4)]
        approved.approved(person.user_id)
        redeemed.approved(person.user_id).redeem()
        device_approvals.deny(denied.user_code, person.user_id)
        assert [find(requester, person) for requester in asked] == ["approved", "denied", "redeemed", "pending"]
        now.advance(900)
        assert [find(requester, person) for requester in asked] == ["expired", "denied", "redeemed", "expired"]

    def test_at_most_five_people_can_look_up_a_code_any_number_of_times(self, pending, world):
        people = [world.person() for _ in range(5)]
        for person in (*people[:1] * 12, *people, *people):
            assert find(pending, person) == "pending"
        with pytest.raises(UnknownUserCode):
            find(pending, world.person())


class TestAttempts:
    """A person can try five wrong codes in 15 minutes."""

    def test_the_sixth_attempt_has_to_wait(self, pending, person, world, now):
        for number in range(12):  # correct codes don't count
            assert find(request_code(Api(source_ip=f"203.0.113.{number}")), person) == "pending"
        for _ in range(5):
            with pytest.raises(UnknownUserCode):
                device_approvals.find_by_user_code(wrong_code(pending), person.user_id)
        with pytest.raises(TooManyTries) as failure:
            find(pending, person)
        wait_seconds = 900 - int(now()) % 900
        assert failure.value.headers == {"Retry-After": str(wait_seconds)}
        assert find(pending, world.person()) == "pending"
        now.advance(wait_seconds)
        assert find(pending, person) == "pending"

    def test_wrong_codes_in_decisions_count(self, pending, person):
        for operation in (*DECISIONS, *OPERATIONS):
            with pytest.raises(UnknownUserCode):
                operation(wrong_code(pending), person.user_id)
        for operation in OPERATIONS:
            with pytest.raises(TooManyTries):
                operation(pending.user_code, person.user_id)

    def test_a_refunded_attempt_returns_to_its_own_window_or_to_none(self, person, now):
        rate.return_try(person.user_id)
        assert rate.count_try(person.user_id, 5).hits == 1
        now.advance(900)
        rate.return_try(person.user_id)
        assert rate.count_try(person.user_id, 5).hits == 1


class TestDecisions:
    def test_approving_grants_the_scopes_that_the_person_kept_and_no_others(self, api, person):
        requester = request_code(api, scope="projects.read billing.read")
        with pytest.raises(ScopeNotRequested):
            device_approvals.approve(requester.user_code, person.user_id, ["billing.read", "projects.write"])
        assert requester.redeem().status == 409

        def refunds(call):
            return call.operation == "UpdateItem" and "#hits - :one" in call.parameters["UpdateExpression"]

        for error in ("ThrottlingException", "InternalServerError"):  # the attempt can't be refunded
            with refused(table.client, refunds, error):
                assert find(requester, person) == "pending"
        with refused(table.client, refunds, error):
            device_approvals.approve(requester.user_code.lower(), person.user_id, ["billing.read"])
        assert requester.redeem().data["scope"] == "billing.read"

    def test_a_request_is_decided_once(self, api, person, world):
        approved, denied = request_code(api).approved(person.user_id), request_code(api)
        for second in (person, world.person()):
            assert decision_before(approve, approved, second) == "approved"
        access_token = approved.redeem().data["accessToken"]
        assert api.get("/v1/me", access_token).data["principal"]["userId"] == person.user_id
        device_approvals.deny(denied.user_code, person.user_id)
        assert (denied.redeem().status, decision_before(approve, denied, person)) == (403, "denied")
        request = get_request(denied.device_code)
        assert request.user_id == person.user_id
        with pytest.raises(LookupError):
            device.redeem(request)

    def test_an_approval_can_be_withdrawn_by_its_user_until_redeemed(self, api, person, world):
        withdrawn, redeemed = (request_code(api).approved(person.user_id) for _ in range(2))
        assert decision_before(device_approvals.deny, withdrawn, world.person()) == "approved"
        listed = keys.credential(person.user_id, get_request(withdrawn.device_code).listed_as)
        assert table.get(listed) is not None
        device_approvals.deny(withdrawn.user_code, person.user_id)
        assert table.get(listed) is None
        assert [withdrawn.redeem().status, redeemed.redeem().status] == [403, 200]
        assert decision_before(device_approvals.deny, redeemed, person) == "redeemed"

    def test_an_expired_request_cannot_be_decided(self, pending, person, now):
        now.advance(900)
        for decide in DECISIONS:
            with pytest.raises(RequestExpired):
                decide(pending.user_code, person.user_id)

    def test_an_unknown_code_or_one_whose_request_is_gone_cannot_be_decided(self, pending, person, world):
        deleted = world.person()
        table.delete(Delete(keys.user(deleted.user_id)), PREPARED)
        with pytest.raises(UnknownUserCode):
            approve(pending.user_code, deleted.user_id)
        assert pending.redeem().error["details"] == {"status": "authorization_pending"}
        table.delete(Delete(get_request(pending.device_code).key), PREPARED)
        for code in (pending.user_code, wrong_code(pending), "nonsense"):
            person = world.person()
            for operation in OPERATIONS:
                with pytest.raises(UnknownUserCode):
                    operation(code, person.user_id)


def test_a_user_code_in_use_is_not_issued_again(api, monkeypatch, now):
    taken, ordinary = request_code(api), secrets.choice
    letters = iter((taken.user_code + "BCDFGHJK" + taken.user_code).replace("-", ""))
    assert device.USER_CODE_LETTERS == "BCDFGHJKLMNPQRSTVWXZ"

    def choice(alphabet):
        return next(letters) if alphabet == device.USER_CODE_LETTERS else ordinary(alphabet)

    monkeypatch.setattr(secrets, "choice", choice)
    assert request_code(api).user_code == "BCDF-GHJK"
    now.advance(900)
    # The code has expired and can be reused, though TTL hasn't removed it yet.
    assert request_code(api).user_code == taken.user_code
    assert get_request(taken.device_code).status == "pending"
