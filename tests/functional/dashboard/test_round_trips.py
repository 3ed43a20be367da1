"""Each page takes as many sequential round trips to the table as an API request that a person reads: three at most."""

import re

import pytest

from controlplane.http import web_session
from controlplane.rules import unsubscriptions
from controlplane.store import api_keys, inbox, keys, repositories
from controlplane.store.repositories import Link
from controlplane.store.table import Put, table
from dashboard.pages import asset
from tests.functional.dashboard.test_invitations import invite
from tests.support.browser import Browser, text_of
from tests.support.endpoints import delivered
from tests.support.operations import operations
from tests.support.populated_organization import PopulatedOrganization, populate_organization
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.trips import counted_trips
from tests.support.world import Person, World

MOST = 3
NOTE = web_session.cookie_name("user")
# These lead to GitHub and back from it.
_ELSEWHERE = {"/organizations/{organizationSlug}/github", "/github/callback", "/sign-in", "/sign-in/callback"}


@pytest.fixture
def populated(visitor: Browser, person: Person, world: World) -> PopulatedOrganization:
    """Returns an organization of the visitor with every kind of item."""
    return populate_organization(world, world.company(owner=person))


@pytest.fixture
def invitation_id(visitor: Browser, person: Person, world: World) -> str:
    return invite(visitor, world.company(), person.email)


def _addresses(made: PopulatedOrganization, invitation_id: str) -> list[str]:
    """Returns the address of every page, and those of scans and findings in other states."""
    organization_id = made.company.organization_id
    findings = [item.item_id for item in inbox.list_items(organization_id, None, 50, None).items]
    delivery = delivered(made.company)
    unsubscribing = unsubscriptions.link_of_choice(made.company.owner.user_id, organization_id, "digest")
    values = {
        "invitationId": invitation_id,
        "webhookId": delivery.webhook_id,
        "eventId": delivery.event_id,
        "link": unsubscribing.rpartition("/")[2],
        "organizationSlug": made.company.slug,
        "projectSlug": made.project.slug,
        "repositoryId": made.repository.repository_id,
        "keyId": api_keys.list_keys(organization_id, 1, None).keys[0].key_id,
        "scanId": made.scan.scan_id,
        "itemId": findings[0],
        "fileName": asset("css").name,
    }
    addresses = [
        re.sub(r"\{(\w+)\}", lambda found: values[found[1]], operation.path)
        for operation in operations()
        if operation.method == "GET"
        and operation.path not in _ELSEWHERE
        and (session := operation.requires_session) is not None
        and not session.negotiated
    ]
    here = f"/organizations/{made.company.slug}"
    return [*addresses, f"{here}/scans/{made.request_id}", *(f"{here}/inbox/{item_id}" for item_id in findings)]


def _count_trips(visitor: Browser, address: str) -> int:
    with counted_trips() as trips:
        assert visitor.get(address).status in {200, 303}, address
    return trips.taken


def test_every_page_takes_at_most_three_round_trips(
    visitor: Browser, populated: PopulatedOrganization, invitation_id: str
):
    visitor.get("/")  # the first request of a minute
    addresses = _addresses(populated, invitation_id)
    # One of two requests may also reserve requests for the person.
    counted = {it: min(_count_trips(visitor, it), _count_trips(visitor, it)) for it in addresses}
    assert {address: trips for address, trips in counted.items() if trips > MOST} == {}


def test_a_project_with_many_repositories_takes_no_more(
    visitor: Browser, populated: PopulatedOrganization, world: World
):
    project_id = populated.project.project_id
    for _ in range(9):
        repository = world.connected_repository(populated.company, linked=False)
        repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
    address = f"/organizations/{populated.company.slug}/projects/{populated.project.slug}"
    assert min(_count_trips(visitor, address), _count_trips(visitor, address)) <= MOST
    assert populated.scan.scan_id in visitor.get(address).text


class TestNote:
    """The cookie that names the session's user, so that the account is read while the session is authenticated."""

    @pytest.fixture
    def other(self, visitor: Browser, world: World, person: Person) -> Browser:
        """Returns another person's browser. Both people belong to an organization."""
        friend = world.person(name="Grace Hopper")
        world.company(owner=friend, name="Birch")
        world.company(owner=person, name="Acme")
        return Browser(visitor.api).signed_in(friend.user_id)

    def test_a_session_of_an_earlier_release_has_none_and_takes_one_more_round_trip(self, visitor: Browser):
        visitor.get("/organizations")
        with_note = _count_trips(visitor, "/organizations")
        del visitor.cookies[NOTE]
        assert _count_trips(visitor, "/organizations") == with_note + 1

    def test_a_note_that_wasnt_signed_for_the_session_reads_nothing(
        self, visitor: Browser, other: Browser, person: Person
    ):
        own, foreign = visitor.cookies[NOTE], other.cookies[NOTE]
        for note in (foreign, foreign.partition(".")[0] + "." + own.partition(".")[2], "", ".", "x", "\x80.\xff"):
            visitor.cookies[NOTE] = note
            with recorded_calls() as calls:
                shown = visitor.get("/organizations")
            assert "Acme" in shown.text
            assert "Birch" not in shown.text
            partitions = {str(call.parameters.get("ExpressionAttributeValues", {}).get(":pk")) for call in calls}
            assert not any("USER#" in it and person.user_id not in it for it in partitions)

    def test_only_the_authenticated_users_account_is_shown(self, visitor: Browser, other: Browser, person: Person):
        forged = web_session.session_cookies(other.secret, person.user_id, 60)
        other.cookies[NOTE] = forged[1].partition("=")[2].partition(";")[0]
        shown = other.get("/organizations")
        assert "Birch" in shown.text
        assert "Acme" not in shown.text

    def test_a_revoked_sessions_note_is_worthless_and_signing_out_deletes_it(self, visitor: Browser):
        kept = dict(visitor.cookies)
        visitor.get("/")
        visitor.submit("/sign-out")
        assert visitor.cookies == {}
        visitor.cookies = kept
        assert visitor.get("/organizations").headers["location"].startswith("/sign-in")


def test_an_invitation_of_an_earlier_release_is_listed(visitor: Browser, world: World, person: Person):
    company = world.company(name="Acme")
    invite(visitor, company, person.email)
    lock = table.get(keys.invitee(person.email, company.organization_id))
    assert lock is not None
    assert lock.pop("inviterId") == company.owner.user_id
    table.put(Put(lock), PREPARED)
    assert "Acme" in text_of(visitor.get("/invitations"))
    world.leave(company, company.owner)
    assert "No longer valid" in text_of(visitor.get("/invitations"))
