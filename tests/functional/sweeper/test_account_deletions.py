"""Background deletion of an account: removes what the request that deleted it left, also if it died."""

from typing import Any

import pytest

from controlplane.access.sign_in import Claims, sign_in
from controlplane.erasure import deletions
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.feedback import store as feedback
from controlplane.notify import subscriptions
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership
from controlplane.people import identities, token_families, users
from controlplane.people.identities import Subject
from controlplane.people.token_families import Pair
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, Update, table
from tests.functional.device_auth.devices import Device, request_code
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.populated_organization import kinds_containing
from tests.support.table import PREPARED
from tests.support.trips import counted_trips
from tests.support.world import Person, World, get_profile, table_dump

CLAIMS = Claims(
    issuer="https://issuer.example",
    subject="ada",
    email="ada@example.com",
    email_verified=True,
    name="Ada",
    image=None,
)
# While open, calls that overlap run in this thread, where the function that makes them is known.
in_this_thread = counted_trips


@pytest.fixture
def person(world: World) -> Person:
    user_id = sign_in(CLAIMS).user_id
    return Person(user_id, "ada@example.com", "Ada", world.token(user_id))


def redeemed(api: Api, person: Person) -> tuple[Device, Pair]:
    """Returns a device that has tokens, and these."""
    device = request_code(api).approved(person.user_id)
    data = device.redeem().data
    return device, Pair(data["accessToken"], data["expiresIn"], data["refreshToken"], [])


def commit(person: Person) -> None:
    """Deletes the account, as a request that then dies."""
    account = organizations.get_account(person.user_id)
    assert account.profile is not None
    deletions.delete_account(account.profile, account.memberships, identities.list_listings(person.user_id))


def fill(person: Person, world: World) -> None:
    """Stores everything that belongs to the person and grants no access."""
    blocked = world.company()
    profile = get_profile(person.user_id)
    invitees.block_organization(world.invitation(blocked, person.email).invitation_id, profile)
    world.invitation(world.company(), person.email)
    feedback.submit_report(person.user_id, {"category": "bug", "message": "It is slow. " * 100})
    subscriptions.save_choices(person.user_id, {blocked.organization_id: []})
    subscriptions.stop(person.email, "returned")
    table.put(Put({**keys.mail(person.user_id, "3q8")._asdict(), "address": person.email}), PREPARED)


@pytest.mark.parametrize("page", [1, 25])
def test_everything_that_can_be_found_by_key_is_deleted(  # noqa: PLR0917
    page, api, person, world, sweep, now, monkeypatch
):
    monkeypatch.setattr(deletions, "_PAGE", page)
    fill(person, world)
    redeemed(api, person)
    request_code(api).approved(person.user_id)
    commit(person)
    assert kinds_containing(person.user_id) >= {"BLOCKS", "CREDENTIALS", "DC", "FAMILY", "FEEDBACK", "MAILS", "TH"}
    with in_this_thread():
        assert sweep()["FinishedDeletions"] == 0
    assert person.email not in str(table_dump())
    kept = {"AUDITLOG", "DELETIONS", "FEEDBACKQUOTA", "TRIES"}
    assert kinds_containing(person.user_id) == kept
    now.advance(SETTLED_AFTER_SECONDS)
    assert sweep()["FinishedDeletions"] == 1
    assert kinds_containing(person.user_id) == kept - {"DELETIONS"}


def test_no_credential_works_after_the_sweep_even_if_a_devices_entry_lacks_its_tokens(api, person, sweep):
    """A device can redeem its code after its entry was read."""
    (device, pair), approved = redeemed(api, person), request_code(api).approved(person.user_id)
    for item in table_dump():
        if item["pk"]["S"].startswith("CREDENTIALS#") and item["kind"]["S"] == "device":
            key = keys.Key(item["pk"]["S"], item["sk"]["S"])
            table.update(Update(key, "SET #familyId = :none", values={"none": None}), PREPARED)
    commit(person)
    with in_this_thread():
        sweep()
    for token in (person.token, pair.access_token):
        assert api.get("/v1/me", token).status == 401
    with pytest.raises(token_families.UnknownRefreshToken):
        token_families.rotate(pair.refresh_token)
    assert {device.redeem().status, approved.redeem().status} == {401}


@pytest.mark.parametrize("happens", ["refresh", "redemption"])
def test_tokens_that_a_device_gets_during_the_sweep_are_deleted(happens, api, person, sweep):
    device = request_code(api).approved(person.user_id)
    given: list[str] = []

    def redeem() -> None:
        given.append(device.redeem().data["accessToken"])

    if happens == "refresh":
        refresh_token = device.redeem().data["refreshToken"]
    commit(person)
    act = redeem if happens == "redemption" else lambda: given.append(token_families.rotate(refresh_token).access_token)
    with in_this_thread(), before_the_transaction(table.client, act):
        sweep()
    assert api.get("/v1/me", given[0]).status == 401
    assert not kinds_containing(person.user_id) & {"CREDENTIALS", "DC", "FAMILY", "TH"}


def test_what_began_while_the_account_was_deleted_ends(person, world, sweep):
    company, profile = world.company(), get_profile(person.user_id)
    joined = Membership(organization_id=company.organization_id, slug=company.slug, name=company.name, role="member")
    subject = Subject("https://other.example", "ada")
    late: list[Any] = [*organizations.membership_legs(joined, profile)]
    late += identities.first_legs(subject, person.user_id).values()
    commit(person)
    for put in late:
        table.put(put, PREPARED)
    with in_this_thread():
        sweep()
    assert organizations.get_account(person.user_id) == (None, [])
    assert identities.find_identity(subject) is None
    (entry,) = [it for it in table_dump() if it.get("action", {}).get("S") == "member.remove"]
    assert (entry["actorId"]["S"], entry["source"]["S"]) == (person.user_id, "page")


def test_what_a_new_account_with_the_address_has_is_kept(person, world, sweep, now):
    commit(person)
    later = sign_in(CLAIMS)
    assert later.user_id != person.user_id
    stale = identities.first_legs(Subject(CLAIMS.issuer, CLAIMS.subject), person.user_id)["issuer"]
    table.transact({"issuer": stale}, PREPARED)
    world.invitation(world.company(), person.email)
    subscriptions.stop(person.email, "stopped")
    sweep()
    now.advance(SETTLED_AFTER_SECONDS)
    sweep()
    assert len(invitees.list_for_address(person.email)) == 1
    assert person.email in subscriptions.find_stops([person.email])
    assert users.find_user_by_email(person.email) == sign_in(CLAIMS) == later
