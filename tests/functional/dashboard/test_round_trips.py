"""Rules for every page and form: at most three round trips to the table, four for forms, and who gets what."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from controlplane.access import web_session
from controlplane.api_keys import store as api_keys
from controlplane.audits import runs
from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.feedback import store as feedback
from controlplane.findings import inbox
from controlplane.notify import subscriptions
from controlplane.people import credential_index, sessions
from controlplane.platform.core.roles import RANK
from controlplane.platform.core.settings import settings
from dashboard.assets import asset
from tests.functional.dashboard.test_invitations import invite
from tests.functional.device_auth.devices import request_code
from tests.support.api import Reply
from tests.support.browser import Browser
from tests.support.calls import recorded_calls
from tests.support.endpoints import delivered
from tests.support.operations import operations
from tests.support.populated_organization import PopulatedOrganization, id_part, populate_organization
from tests.support.subject import Subject
from tests.support.trips import counted_trips
from tests.support.valid_forms import FORMS
from tests.support.world import Company, Person, World, uncounted

MOST = 3
MOST_OF_A_FORM = 4
_MESSAGE = "a message is sent after the transaction, and then its entry in the outbox is deleted"
# What the forms take that take more, and why. An entry must be current.
EXCEPTIONS: dict[str, tuple[int, str]] = {
    "POST /check": (5, "it counts the address and all addresses, and takes and releases a slot"),
    "POST /organizations/{organizationSlug}/projects/{projectSlug}/audits": (
        8,
        "a record makes it take effect once, and it sends the message of the first run",
    ),
    "POST /organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}/delete": (
        5,
        "the audit's schedule is read for its entry",
    ),
    "POST /organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}/runs": (6, _MESSAGE),
    "POST /organizations/{organizationSlug}/repositories": (10, "it connects, creates, links, and scans, once"),
    "POST /organizations/new": (6, "a record makes it take effect once, and the account is read for its limit"),
    "POST /organizations/{organizationSlug}/inbox/{itemId}/comments": (
        5,
        "a record makes it take effect once, and the finding is read for the log",
    ),
    "POST /organizations/{organizationSlug}/scans": (5, _MESSAGE),
    "POST /organizations/{organizationSlug}/scans/{scanId}/unlock": (5, _MESSAGE),
    "POST /organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}/replay": (5, _MESSAGE),
}
NOTE = web_session.cookie_name("user")
# These lead to GitHub and back from it.
_ELSEWHERE = {
    *("/organizations/{organizationSlug}/github", "/github/callback"),
    *("/sign-in", "/sign-in/callback", "/sign-up"),
}


@pytest.fixture
def populated(visitor, person, world):
    """Returns an organization of the visitor with every kind of item."""
    return populate_organization(world, world.company(owner=person))


@pytest.fixture
def invitation_id(visitor, person, world):
    return invite(visitor, world.company(), person.email)


def addresses_of(made: PopulatedOrganization, invitation_id: str) -> list[str]:
    """Returns the address of every page, and those of scans and findings in other states."""
    organization_id = made.company.organization_id
    findings = [item.item_id for item in inbox.list_items(organization_id, None, 50, None).items]
    delivery = delivered(made.company)
    unsubscribing = subscriptions.link_of_choice(made.company.owner.user_id, organization_id, "digest")
    values = {
        "invitationId": invitation_id,
        "webhookId": delivery.webhook_id,
        "eventId": delivery.event_id,
        "link": unsubscribing.rpartition("/")[2],
        "organizationSlug": made.company.slug,
        "projectSlug": made.project.slug,
        "repositoryId": made.repository.repository_id,
        "keyId": api_keys.list_keys(organization_id, 1, None).items[0].key_id,
        "scanId": made.scan.scan_id,
        "auditId": made.audit_id,
        "runId": runs.list_runs(made.project.project_id, made.audit_id, 1, None).items[0].run_id,
        "itemId": findings[0],
        "fileName": asset("css").name,
    }
    addresses = [
        re.sub(r"\{(\w+)\}", lambda found: values[found[1]], operation.path)
        for operation in operations()
        if operation.method == "GET"
        and operation.path not in _ELSEWHERE
        and (session := operation.requires_session) is not None
        and session.dialect is not None
    ]
    here = f"/organizations/{made.company.slug}"
    return [*addresses, f"{here}/scans/{made.request_id}", *(f"{here}/inbox/{item_id}" for item_id in findings)]


def _count_trips(visitor: Browser, address: str) -> int:
    with counted_trips() as trips:
        assert visitor.get(address).status in {200, 303}, address
    return trips.taken


def test_every_page_takes_at_most_three_round_trips(visitor, populated, invitation_id, world):
    visitor.get("/")  # the first request of a minute
    for _ in range(9):
        repository = world.connected_repository(populated.company, linked=False)
        repositories.link_project(repository.repository_id, Link(populated.project.project_id, None, None, False))
    addresses = addresses_of(populated, invitation_id)
    # One of two requests may also reserve requests for the person.
    counted = {it: min(_count_trips(visitor, it), _count_trips(visitor, it)) for it in addresses}
    # Comments are found through the person, then the organizations, then the findings.
    assert counted.pop("/account/export") <= MOST + 1
    assert {address: trips for address, trips in counted.items() if trips > MOST} == {}
    project = f"/organizations/{populated.company.slug}/projects/{populated.project.slug}"
    assert project in addresses
    assert populated.scan.scan_id in visitor.get(project).text


class Forms:
    """Prepares each form that isn't of an organization. Returns the function that sends it."""

    def __init__(self, browser: Browser, person: Person, world: World) -> None:
        self.browser, self.person, self.world = browser, person, world

    def send(self, path: str, **fields: str) -> Callable[[], Reply]:
        return lambda: self.browser.forge(path, fields)

    def company(self, path: str) -> Callable[[], Reply]:
        return self.send(path, organization_id=self.world.company(owner=self.person).organization_id)

    def invited(self, path: str) -> Callable[[], Reply]:
        return self.send(path, invitation_id=invite(self.browser, self.world.company(), self.person.email))

    def unblocked(self, path: str) -> Callable[[], Reply]:
        company = self.world.company()
        invitation_id = invite(self.browser, company, self.person.email)
        self.send("/invitations/block", invitation_id=invitation_id)()
        return self.send(path, organization_id=company.organization_id)

    def decided(self, path: str) -> Callable[[], Reply]:
        self.send("/device", user_code=request_code(self.browser.api).user_code)()
        return lambda: self.browser.press(path.rpartition("/")[2].capitalize())

    def revoked(self, path: str) -> Callable[[], Reply]:
        sessions.create(self.person.user_id)
        (other, _) = credential_index.list_credentials(self.person.user_id, 2).items
        return self.send(path, session_id=other.session_id)

    def unsubscribed(self, path: str) -> Callable[[], Reply]:
        company = self.world.company(owner=self.person)
        link = subscriptions.link_of_choice(self.person.user_id, company.organization_id, "digest")
        return self.send(path.format(link=link.rpartition("/")[2]))

    def deleted(self, path: str) -> Callable[[], Reply]:
        """Prepares the deletion of an account with memberships, devices, and everything else that it can have."""
        for role in ("member", "owner"):
            self.world.member(self.world.company(), role, self.person)
        for _ in range(3):
            request_code(self.browser.api).approved(self.person.user_id).redeem()
        self.unblocked(path)
        invite(self.browser, self.world.company(), self.person.email)
        feedback.submit_report(self.person.user_id, {"category": "bug", "message": "It is slow."})
        return self.send(path, confirmation=self.person.email)


OWN_FORMS: dict[str, Callable[[Forms, str], Callable[[], Reply]]] = {
    "POST /account/delete": Forms.deleted,
    "POST /check": lambda forms, path: forms.send(path, code="<p>"),
    "POST /account/notifications": Forms.company,
    "POST /account/notifications/resume": Forms.send,
    "POST /account/unsubscribe/{link}": Forms.unsubscribed,
    "POST /account/unsubscribe/{link}/all": Forms.unsubscribed,
    "POST /sign-out": Forms.send,
    "POST /device": lambda forms, path: forms.send(path, user_code=request_code(forms.browser.api).user_code),
    "POST /device/approve": Forms.decided,
    "POST /device/deny": Forms.decided,
    "POST /invitations/accept": Forms.invited,
    "POST /invitations/decline": Forms.invited,
    "POST /invitations/block": Forms.invited,
    "POST /invitations/unblock": Forms.unblocked,
    "POST /sessions/revoke": Forms.revoked,
    "POST /sessions/revoke-others": Forms.revoked,
    "POST /organizations": Forms.company,
    "POST /organizations/new": lambda forms, path: forms.send(path, name="Acme", once="once" * 8),
}
# One more if the repository is already connected, because its description is updated afterward.
FORMS_OF_ORGANIZATIONS = [it for it in FORMS if it.role and it.near != "{connectedBlogId}"]


class Waiting(Browser):
    """A browser whose session has already made the first request of a minute."""

    def signed_in(self, user_id: str) -> "Waiting":
        super().signed_in(user_id)
        self.get("/account")
        return self


def _trips_of(send: Callable[[], Reply]) -> int:
    with counted_trips() as trips:
        reply = send()
    assert reply.status in {200, 303}, reply.text
    return trips.taken


def test_every_form_takes_at_most_four_round_trips(api, world, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
    counted: dict[str, int] = {}
    for form in FORMS_OF_ORGANIZATIONS:
        subject = Subject(world, api)
        posted, name = form.prepared(subject), form.operation.name
        browser = Waiting(api).signed_in(world.member(subject.company, form.role).user_id)
        counted[name] = max(_trips_of(partial(posted.send, browser)), counted.get(name, 0))
    for name, prepare_own in OWN_FORMS.items():
        person = world.person()
        forms = Forms(Waiting(api).signed_in(person.user_id), person, world)
        counted[name] = _trips_of(prepare_own(forms, name.removeprefix("POST ")))
    assert counted.keys() == {it.name for it in operations() if it.method == "POST" and it.requires_session is not None}
    exceeding = {name: trips for name, trips in counted.items() if trips > MOST_OF_A_FORM}
    assert exceeding == {name: trips for name, (trips, _) in EXCEPTIONS.items()}


class TestNote:
    """The cookie that names the session's user, so that the account is read while the session is authenticated."""

    @pytest.fixture
    def other(self, visitor, world, person):
        """Returns another person's browser. Both people belong to an organization."""
        friend = world.person(name="Grace Hopper")
        world.company(owner=friend, name="Birch")
        world.company(owner=person, name="Acme")
        return Browser(visitor.api).signed_in(friend.user_id)

    def test_a_session_without_a_note_takes_one_more_round_trip(self, visitor):
        visitor.get("/organizations")
        with_note = _count_trips(visitor, "/organizations")
        del visitor.cookies[NOTE]
        assert _count_trips(visitor, "/organizations") == with_note + 1

    def test_a_note_that_wasnt_signed_for_the_session_reads_nothing(self, visitor, other, person):
        own, foreign = visitor.cookies[NOTE], other.cookies[NOTE]
        forged = web_session.session_cookies(other.secret, person.user_id, 60)[1].partition("=")[2].partition(";")[0]
        for note in (foreign, foreign.partition(".")[0] + "." + own.partition(".")[2], "", ".", "x", "\x80.\xff"):
            visitor.cookies[NOTE] = note
            with recorded_calls() as calls:
                shown = visitor.get("/organizations").text
            assert ("Acme" in shown, "Birch" in shown) == (True, False)
            partitions = {str(call.parameters.get("ExpressionAttributeValues", {}).get(":pk")) for call in calls}
            assert not any("USER#" in it and person.user_id not in it for it in partitions)
        other.cookies[NOTE] = forged
        shown = other.get("/organizations").text
        assert ("Acme" in shown, "Birch" in shown) == (False, True)

    def test_a_revoked_sessions_note_is_worthless_and_signing_out_deletes_it(self, visitor):
        kept = dict(visitor.cookies)
        visitor.get("/")
        visitor.press("Sign out")
        assert visitor.cookies == {}
        visitor.cookies = kept
        assert visitor.get("/organizations").headers["location"].startswith("/sign-in")


def contents(company: Company) -> list[dict]:
    """Returns what is stored of the organization."""
    return [it for it in uncounted() if id_part(company.organization_id) in str(it)]


def made_of(page: str) -> bool:
    """Returns whether the page shows one thing of the organization, which another one doesn't have."""
    return len(re.findall(r"/\w+_\w+|/projects/(?!new)", page)) > 0


def test_a_page_of_another_organization_looks_like_one_of_a_missing_organization(visitor, world):
    made = populate_organization(world)
    own = world.company(owner=world.person())
    browser = Browser(visitor.api).signed_in(own.owner.user_id)
    slug = made.company.slug
    pages = [it for it in addresses_of(made, "") if it.startswith(f"/organizations/{slug}")]
    for page in pages:
        foreign, missing, at_home = (browser.get(page.replace(slug, it)) for it in (slug, "missing", own.slug))
        if missing.status == 303:  # the address of a form, which leads to its page
            continue
        assert (foreign.status, missing.status) == (404, 404), page
        assert foreign.text.replace(slug, "") == missing.text.replace("missing", ""), page
        assert at_home.status == (404 if made_of(page) else 200), page


# Only those who came back from GitHub have the offers that this form has to contain.
FORMS_OF_PAGES = [form for form in FORMS_OF_ORGANIZATIONS if form.name != "connectRepository"]


@pytest.mark.parametrize(
    "form", FORMS_OF_PAGES, ids=[f"{number} {it.name}" for number, it in enumerate(FORMS_OF_PAGES)]
)
def test_a_form_changes_nothing_for_outsiders_and_for_members_with_a_lesser_role(form, api, world):
    subject, own = Subject(world, api), world.company()
    company, posted = subject.company, form.prepared(subject)
    lesser = {role: world.member(company, role) for role in RANK if RANK[role] < RANK[form.role]}
    for who, person in {"outsider": own.owner, "outsider at home": own.owner, **lesser}.items():
        at_home = who == "outsider at home"
        sent = posted._replace(path=posted.path.replace(company.slug, own.slug)) if at_home else posted
        before = contents(company)
        status = sent.of(person)().status
        assert contents(company) == before, who
        if not at_home:
            assert status == (404 if who == "outsider" else 403), who
        elif "{" in form.operation.path.partition("}")[2]:
            assert status == 404, who
