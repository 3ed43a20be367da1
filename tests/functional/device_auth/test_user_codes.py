"""Operations of the pages on a user code: find the request, approve it, deny it."""

import secrets

import pytest

from controlplane.core.tokens import digest
from controlplane.store import device, device_approvals, keys, rate
from controlplane.store.device_approvals import (
    AlreadyDecided,
    RequestExpired,
    ScopeNotRequested,
    TooManyTries,
    UnknownUserCode,
)
from controlplane.store.retry import WriteConflict
from controlplane.store.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import CODE, Device, code_body, get_request, request_code
from tests.support.api import Api
from tests.support.calls import Call, refused
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED, restored
from tests.support.world import Person, World


def wrong_code(requester: Device) -> str:
    """Returns a well-formed code that isn't this device's."""
    return "BBBB-BBBB" if requester.user_code != "BBBB-BBBB" else "CCCC-CCCC"


class TestFind:
    def test_find_shows_client_scopes_and_address(self, person: Person, now: FakeClock):
        api = Api(source_ip="203.0.113.9")
        requester = request_code(api, scope="projects.read billing.read", deviceName="laptop")
        asked_at = int(now())
        now.advance(120)
        assert device_approvals.find_by_user_code(
            requester.user_code, person.user_id
        ) == device_approvals.DeviceRequest(
            user_code=requester.user_code,
            client_id="assent-cli",
            device_name="laptop",
            scopes=["billing.read", "projects.read"],
            address="203.0.113.9",
            created_at=asked_at,
            expires_at=asked_at + 900,
            status="pending",
        )

    @each("separator", ["", " ", "-", "_", "\u2011", " - ", "."])
    @each("case", [str.lower, str.upper, str.swapcase], around=restored)
    def test_find_accepts_the_code_as_people_type_it(self, api: Api, person: Person, separator: str, case):
        requester = request_code(api)
        typed = " " + case(requester.user_code.replace("-", separator)) + "\n"
        assert device_approvals.find_by_user_code(typed, person.user_id).user_code == requester.user_code

    @each(
        "code",
        ["", "-", "BCDF", "BCDF-GHJ", "BCDF-GHJKL", "AEIO-UYBC", "1234-5678", "\u0412\u0421DF-GHJK", "B" * 9_999],
        around=restored,
    )
    def test_find_treats_a_malformed_code_as_unknown_and_reads_nothing(self, person: Person, code: str):
        with recorded_calls() as calls, pytest.raises(UnknownUserCode):
            device_approvals.find_by_user_code(code, person.user_id)
        assert [call.operation for call in calls] == ["UpdateItem"]  # counts the attempt

    def test_find_shows_the_requests_outcome(self, api: Api, person: Person, now: FakeClock):
        approved, denied, redeemed, pending = (request_code(api) for _ in range(4))
        approved.approved(person.user_id)
        redeemed.approved(person.user_id).redeem()
        device_approvals.deny(denied.user_code, person.user_id)

        def statuses() -> list[str]:
            asked = (approved, denied, redeemed, pending)
            return [
                device_approvals.find_by_user_code(requester.user_code, person.user_id).status for requester in asked
            ]

        assert statuses() == ["approved", "denied", "redeemed", "pending"]
        now.advance(900)
        assert statuses() == ["expired", "denied", "redeemed", "expired"]

    def test_at_most_five_people_can_look_up_a_code(self, api: Api, world: World):
        requester = request_code(api)
        people = [world.person().user_id for _ in range(5)]
        for user_id in people:
            device_approvals.find_by_user_code(requester.user_code, user_id)
        with pytest.raises(UnknownUserCode):
            device_approvals.find_by_user_code(requester.user_code, world.person().user_id)
        for user_id in people:
            assert device_approvals.find_by_user_code(requester.user_code, user_id).status == "pending"

    def test_a_person_can_look_up_a_code_repeatedly(self, api: Api, person: Person, world: World):
        requester = request_code(api)
        for _ in range(12):
            assert device_approvals.find_by_user_code(requester.user_code, person.user_id).status == "pending"
        assert device_approvals.find_by_user_code(requester.user_code, world.person().user_id).status == "pending"

    def test_a_person_can_try_five_wrong_codes_in_15_minutes(self, api: Api, world: World, now: FakeClock):
        person, requester = world.person(), request_code(api)
        for _ in range(5):
            with pytest.raises(UnknownUserCode):
                device_approvals.find_by_user_code(wrong_code(requester), person.user_id)
        with pytest.raises(TooManyTries) as failure:
            device_approvals.find_by_user_code(requester.user_code, person.user_id)
        wait_seconds = 900 - int(now()) % 900
        assert failure.value.headers == {"Retry-After": str(wait_seconds)}
        assert device_approvals.find_by_user_code(requester.user_code, world.person().user_id).status == "pending"
        now.advance(wait_seconds)
        assert device_approvals.find_by_user_code(requester.user_code, person.user_id).status == "pending"

    def test_correct_codes_use_up_no_attempts(self, person: Person):
        for number in range(12):
            requester = request_code(Api(source_ip=f"203.0.113.{number}"))
            assert device_approvals.find_by_user_code(requester.user_code, person.user_id).status == "pending"


class TestApprove:
    def test_approving_grants_the_scopes_that_the_person_kept(self, api: Api, person: Person):
        requester = request_code(api, scope="projects.read billing.read")
        device_approvals.approve(requester.user_code.lower(), person.user_id, ["billing.read"])
        assert requester.redeem().data["scope"] == "billing.read"

    def test_approving_never_grants_more_than_requested(self, api: Api, person: Person):
        requester = request_code(api, scope="billing.read")
        with pytest.raises(ScopeNotRequested):
            device_approvals.approve(requester.user_code, person.user_id, ["billing.read", "projects.write"])
        assert requester.redeem().status == 409

    def test_approving_an_expired_request_fails(self, api: Api, person: Person, now: FakeClock):
        requester = request_code(api)
        now.advance(900)
        with pytest.raises(RequestExpired):
            device_approvals.approve(requester.user_code, person.user_id, [])

    @pytest.mark.parametrize("another", [False, True], ids=["the same person", "another person"])
    def test_approving_works_once(self, api: Api, person: Person, world: World, another: bool):
        requester = request_code(api).approved(person.user_id)
        second = world.person() if another else person
        with pytest.raises(AlreadyDecided) as failure:
            device_approvals.approve(requester.user_code, second.user_id, [])
        assert failure.value.context == {"decision": "approved"}
        assert api.get("/v1/me", requester.redeem().data["accessToken"]).data["principal"]["userId"] == person.user_id

    def test_a_denied_request_cannot_be_approved(self, api: Api, person: Person):
        requester = request_code(api)
        device_approvals.deny(requester.user_code, person.user_id)
        with pytest.raises(AlreadyDecided) as failure:
            device_approvals.approve(requester.user_code, person.user_id, [])
        assert failure.value.context == {"decision": "denied"}

    def test_a_deleted_account_approves_nothing(self, api: Api, person: Person):
        requester = request_code(api)
        table.delete(Delete(keys.user(person.user_id)), PREPARED)
        with pytest.raises(UnknownUserCode):
            device_approvals.approve(requester.user_code, person.user_id, [])
        assert requester.redeem().error["details"] == {"status": "authorization_pending"}

    def test_wrong_codes_in_decisions_count_as_attempts(self, api: Api, person: Person):
        requester = request_code(api)
        for _ in range(2):
            with pytest.raises(UnknownUserCode):
                device_approvals.approve(wrong_code(requester), person.user_id, [])
            with pytest.raises(UnknownUserCode):
                device_approvals.deny(wrong_code(requester), person.user_id)
        with pytest.raises(UnknownUserCode):
            device_approvals.find_by_user_code(wrong_code(requester), person.user_id)
        with pytest.raises(TooManyTries):
            device_approvals.approve(requester.user_code, person.user_id, [])
        with pytest.raises(TooManyTries):
            device_approvals.deny(requester.user_code, person.user_id)

    def test_a_refunded_attempt_returns_to_its_own_window_or_to_none(self, person: Person, now: FakeClock):
        rate.return_try(person.user_id)
        assert rate.count_try(person.user_id, 5).hits == 1
        now.advance(900)
        rate.return_try(person.user_id)
        assert rate.count_try(person.user_id, 5).hits == 1

    @pytest.mark.parametrize("error", ["ThrottlingException", "InternalServerError"])
    def test_an_approval_whose_attempt_cannot_be_refunded_succeeds(self, error: str, api: Api, person: Person):
        def refunds(call: Call) -> bool:
            return call.operation == "UpdateItem" and "#hits - :one" in call.parameters["UpdateExpression"]

        requester = request_code(api)
        with refused(table.client, refunds, error):
            device_approvals.approve(requester.user_code, person.user_id, ["projects.read"])
        assert requester.redeem().status == 200

    def test_approving_an_unknown_code_fails(self, api: Api, person: Person):
        for code in (wrong_code(request_code(api)), "nonsense"):
            with pytest.raises(UnknownUserCode):
                device_approvals.approve(code, person.user_id, [])
            with pytest.raises(UnknownUserCode):
                device_approvals.deny(code, person.user_id)


class TestDeny:
    def test_the_device_gets_403(self, api: Api, person: Person):
        requester = request_code(api)
        device_approvals.deny(requester.user_code, person.user_id)
        assert requester.redeem().status == 403
        assert get_request(requester.device_code).user_id == person.user_id

    def test_an_approval_can_be_withdrawn_by_its_user_until_redeemed(self, api: Api, person: Person, world: World):
        requester = request_code(api).approved(person.user_id)
        with pytest.raises(AlreadyDecided):
            device_approvals.deny(requester.user_code, world.person().user_id)
        device_approvals.deny(requester.user_code, person.user_id)
        assert requester.redeem().status == 403
        redeemed = request_code(api).approved(person.user_id)
        redeemed.redeem()
        with pytest.raises(AlreadyDecided) as failure:
            device_approvals.deny(redeemed.user_code, person.user_id)
        assert failure.value.context == {"decision": "redeemed"}

    def test_denying_an_expired_request_fails(self, api: Api, person: Person, now: FakeClock):
        requester = request_code(api)
        now.advance(900)
        with pytest.raises(RequestExpired):
            device_approvals.deny(requester.user_code, person.user_id)


class TestRedeem:
    def test_a_request_that_expired_since_it_was_read_returns_nothing(self, api: Api, person: Person, now: FakeClock):
        item = device.find(request_code(api).approved(person.user_id).device_code)
        now.advance(900)
        with pytest.raises(WriteConflict):
            device.redeem(item)

    def test_a_denied_request_cannot_be_redeemed(self, api: Api, person: Person):
        requester = request_code(api)
        device_approvals.deny(requester.user_code, person.user_id)
        with pytest.raises(LookupError):
            device.redeem(get_request(requester.device_code))

    def test_a_poll_reports_a_decision_made_since_it_read_the_request(self, api: Api, person: Person):
        requester = request_code(api)
        item = device.find(requester.device_code)
        requester.approved(person.user_id)
        with pytest.raises(WriteConflict):
            device.note_poll(item)

    def test_of_two_concurrent_polls_the_later_one_is_too_early(self, api: Api, now: FakeClock):
        item = device.find(request_code(api).device_code)
        assert device.note_poll(item) is False
        now.advance(0.1)
        assert device.note_poll(item) is True


class TestUserCodes:
    def test_a_user_code_in_use_is_not_issued_again(self, api: Api, monkeypatch: pytest.MonkeyPatch, now: FakeClock):
        taken = request_code(api)
        letters = iter((taken.user_code + "BCDFGHJK" + taken.user_code).replace("-", ""))
        monkeypatch.setattr(secrets, "choice", _choice_of(letters, secrets.choice))
        second = request_code(api)
        assert second.user_code == "BCDF-GHJK"
        now.advance(900)
        # The code has expired and can be reused, though TTL hasn't removed it yet.
        third = request_code(api)
        assert third.user_code == taken.user_code
        assert get_request(taken.device_code).status == "pending"

    def test_a_code_whose_request_is_gone_is_unknown(self, api: Api, person: Person):
        requester = request_code(api)
        table.delete(Delete(get_request(requester.device_code).key), PREPARED)
        for ask in (
            device_approvals.find_by_user_code,
            device_approvals.deny,
            lambda code, user_id: device_approvals.approve(code, user_id, []),
        ):
            with pytest.raises(UnknownUserCode):
                ask(requester.user_code, person.user_id)

    def test_user_codes_consist_of_20_consonants(self):
        found = set("".join(device._new_user_code() for _ in range(200)).replace("-", ""))
        assert found == set("BCDFGHJKLMNPQRSTVWXZ")


def _choice_of(letters, ordinary):
    """Returns a random choice function that takes user code letters from `letters`."""

    def choice(alphabet):
        return next(letters) if alphabet == device.USER_CODE_LETTERS else ordinary(alphabet)

    return choice


def test_a_device_request_cant_be_found_by_half_a_code(api: Api):
    data = api.post(CODE, json_body=code_body()).data
    assert device.find(data["deviceCode"][:-1]) is None
    assert device.find(data["userCode"]) is None
    assert table.get(keys.device_request(digest(data["userCode"]))) is None
