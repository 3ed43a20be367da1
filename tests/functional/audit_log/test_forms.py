"""Every form of the pages that changes something of an organization writes one entry in its transaction."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from controlplane.code_host.items import HostedRepository
from controlplane.findings import inbox, intake
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.people.users import find_user
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from dashboard.code_host import connecting
from tests.support.api import Api
from tests.support.audit_log import Subject, all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.endpoints import URL, delivered, endpoint
from tests.support.operations import operations, operations_at
from tests.support.page import Entry
from tests.support.populated_organization import detection
from tests.support.reply import Reply
from tests.support.sqs import FakeSqs
from tests.support.table import restored
from tests.support.world import World


class Control(NamedTuple):
    """A button of a page (below the organization's), what is entered before it is pressed, and a text near it."""

    page: str
    label: str
    entered: Mapping[str, Entry] = MappingProxyType({})
    near: str = ""


def _chosen(it: Subject) -> Control:
    item = it.world.finding(it.company)
    return Control("/inbox", "Accept", {f"Select {item.title}": True, "Reason": "Canary"})


def _item(it: Subject) -> str:
    return f"/inbox/{it.world.finding(it.company, it.repository).item_id}"


def _vendor(it: Subject) -> Control:
    intake.record_detection(detection(it.project.project_id))
    item = inbox.list_items(it.organization_id, None, 1, None).items[0]
    return Control(f"/inbox/{item.item_id}", "Approve")


def _locked(it: Subject) -> Control:
    scan = make_scan(it.repository, issues=[make_issue(number) for number in range(1, 6)])
    it.world.credits(it.company, 80)
    return Control(f"/scans/{scan.scan_id}/unlock", "Unlock for 50 credits")


def _member(it: Subject) -> Control:
    label = f"Role of {it.member.name}"
    return Control("/members", "Change", {label: "Admin"})


def _invited(it: Subject, label: str) -> Control:
    assert it.invitation_id
    return Control("/members", label)


def _link(it: Subject) -> Control:
    threshold = "A pull request's check fails for new findings of"
    return Control(f"/repositories/{it.repository.repository_id}", "Save", {threshold: "P2 or more urgent"})


def _webhook(it: Subject, label: str, **entered: Entry) -> Control:
    return Control(f"/webhooks/{endpoint(it.company).webhook_id}", label, entered)


def _delivery(it: Subject) -> Control:
    delivery = delivered(it.company)
    return Control(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.event_id}", "Replay")


_WEBHOOK: dict[str, Entry] = {"Name": "Alerts", "URL": f"{URL}/canary", "key.created": True}


CASES: dict[str, tuple[Action, Callable[[Subject], Control]]] = {
    "submitNewProject": (
        Action.PROJECT_CREATE,
        lambda _: Control("/projects/new", "Create the project", {"Name": "Shop", "Websites": "example.com"}),
    ),
    "changeProject": (
        Action.PROJECT_UPDATE,
        lambda it: Control(f"/projects/{it.project.slug}/settings", "Save", {"Name": "Store"}, "Description"),
    ),
    "deleteProjectOnPage": (
        Action.PROJECT_DELETE,
        lambda it: Control(
            f"/projects/{it.project.slug}/delete", "Delete this project", {"Name of the project": it.project.slug}
        ),
    ),
    "decideVendorOnPage": (
        Action.VENDOR_DECIDE,
        lambda it: Control(f"/projects/{it.project.slug}/vendors", "Approve", {"Vendor ID": "segment"}),
    ),
    "submitKey": (
        Action.API_KEY_CREATE,
        lambda _: Control("/keys", "Create key", {"Name of a new key": "deploy"}),
    ),
    "submitKeyRoll": (Action.API_KEY_ROLL, lambda it: Control(f"/keys/{it.key_id}", "Roll this key")),
    "submitKeyRevocation": (Action.API_KEY_DELETE, lambda it: Control(f"/keys/{it.key_id}", "Revoke this key")),
    "submitInvitation": (
        Action.INVITATION_CREATE,
        lambda _: Control("/members", "Invite", {"Email address": "canary@example.com"}),
    ),
    "submitResend": (Action.INVITATION_RESEND, lambda it: _invited(it, "Renew")),
    "submitWithdrawal": (Action.INVITATION_CANCEL, lambda it: _invited(it, "Withdraw")),
    "submitMember": (Action.MEMBER_CHANGE_ROLE, _member),
    "decideFindings": (Action.INBOX_CHANGE_STATUS, _chosen),
    "decideFinding": (Action.INBOX_CHANGE_STATUS, lambda it: Control(_item(it), "Accept", {"Reason": "Canary"})),
    "openIssue": (Action.ISSUE_REQUEST, lambda it: Control(_item(it), "Open an issue")),
    "decideFindingVendor": (Action.VENDOR_DECIDE, _vendor),
    "saveRepositoryLink": (Action.LINK_UPDATE, _link),
    "confirmDisconnection": (
        Action.REPOSITORY_DISCONNECT,
        lambda it: Control(f"/repositories/{it.repository.repository_id}/disconnect", "Disconnect this repository"),
    ),
    "beginScan": (
        Action.SCAN_REQUEST,
        lambda it: Control(f"/scans?repository={it.repository.repository_id}", "Start scan"),
    ),
    "unlockFindings": (Action.SCAN_UNLOCK, _locked),
    "createOrganizationOfForm": (
        Action.ORGANIZATION_CREATE,
        lambda _: Control("/organizations/new", "Create the organization", {"Name": "Second"}),
    ),
    "submitWebhook": (Action.WEBHOOK_CREATE, lambda _: Control("/webhooks", "Create endpoint", _WEBHOOK)),
    "submitWebhookChange": (Action.WEBHOOK_UPDATE, lambda it: _webhook(it, "Save", **_WEBHOOK)),
    "submitWebhookStatus": (Action.WEBHOOK_UPDATE, lambda it: _webhook(it, "Disable this endpoint")),
    "submitWebhookRotation": (Action.WEBHOOK_ROTATE_SECRET, lambda it: _webhook(it, "Rotate the secret")),
    "submitWebhookDeletion": (Action.WEBHOOK_DELETE, lambda it: _webhook(it, "Delete this endpoint")),
    "submitWebhookReplay": (Action.WEBHOOK_REPLAY, _delivery),
    "deleteOrganization": (
        Action.ORGANIZATION_DELETE,
        lambda it: Control("/delete", "Delete this organization", {"Name of the organization": it.company.slug}),
    ),
}
# Answers of the invited person.
ANSWERS = {
    "acceptInvitation": ("Accept", Action.MEMBER_JOIN),
    "declineInvitation": ("Decline", Action.INVITATION_DECLINE),
    "blockOrganization": ("Decline and block", Action.INVITATION_DECLINE),
}
# A person's own account, sessions, devices, and default organization (decision 0064). Deleting an account ends its
# memberships, each with an entry.
OF_NO_ORGANIZATION = {
    "deleteAccount",
    "reviewDevice",
    "approveDevice",
    "denyDevice",
    "unblockOrganization",
    "saveOrganization",
    "makeOrganizationDefault",
    "endSession",
    "endOtherSessions",
    "saveNotifications",
    "resumeEmails",
    "signOut",
}
FORMS = {
    operation.route.operation_id: operation
    for operation in operations()
    if operation.requires_session is not None and operation.requires_session.form
}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)


def test_every_form_has_a_case():
    assert FORMS.keys() == CASES.keys() | ANSWERS.keys() | OF_NO_ORGANIZATION | {"connectRepository"}


def check_entry(before: list[dict], action: Action, subject: Subject, reply: Reply) -> None:
    assert reply.status in {200, 303}, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["source"], entry["requestId"]) == (action, "page", reply.headers["x-request-id"])
    assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace"))


@each("name", CASES, around=restored)
def test_a_form_writes_one_entry(name: str, api: Api, world: World, sqs: FakeSqs):
    action, prepare = CASES[name]
    subject = Subject(world, api)
    browser, control = subject.browser, prepare(subject)
    below = "" if control.page.startswith("/organizations") else f"/organizations/{subject.company.slug}"
    browser.get(below + control.page)
    before = all_entries()
    reply = browser.press(control.label, near=control.near, fill=control.entered)
    sent_to = operations_at(browser.at.partition("?")[0])
    assert name in {operation.route.operation_id for operation in sent_to if operation.method == "POST"}
    check_entry(before, action, subject, reply)


def test_connecting_a_repository_writes_one_entry(api: Api, world: World):
    """Forges the choice that the page offers after GitHub has named the repositories."""
    subject = Subject(world, api)
    hosted = HostedRepository(
        hosted_id=77,
        installation_id=4711,
        owner="acme",
        name="blog",
        html_url="https://github.com/acme/blog",
        default_branch="main",
        visibility="private",
    )
    membership = organizations.find_membership(subject.owner.user_id, subject.organization_id)
    assert membership is not None
    offers = connecting._seal_offers(membership.organization_id, [hosted], subject.browser.secret)
    fields = {"offers": offers.sealed, "repository": "77"}
    before = all_entries()
    reply = subject.browser.forge(f"/organizations/{subject.company.slug}/repositories", fields)
    check_entry(before, Action.REPOSITORY_CONNECT, subject, reply)


@each("name", ANSWERS, around=restored)
def test_an_answer_to_an_invitation_is_recorded_without_what_only_the_person_may_know(
    name: str, api: Api, world: World
):
    subject, invited = Subject(world, api), world.person("canary@example.com")
    body = {"email": invited.email, "role": "admin"}
    subject.post("/v1/invitations", body)
    before = all_entries()
    browser = Browser(api).signed_in(invited.user_id)
    browser.get("/invitations")
    label, action = ANSWERS[name]
    assert browser.press(label).status == 303
    assert browser.at == FORMS[name].path
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["actorId"], entry["source"]) == (action, invited.user_id, "page")
    assert "block" not in str(entry).lower()
    assert "canary" not in str(entry)


def test_a_deleted_account_leaves_its_organizations_with_entries(api: Api, world: World):
    subject = Subject(world, api)
    person = subject.member
    member_id = members.get_member(subject.organization_id, person.user_id).member_id
    browser = Browser(api).signed_in(person.user_id)
    before = all_entries()
    browser.get("/account/delete")
    assert browser.press("Delete my account", fill={"Your email address": person.email}).status == 303
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["resource"]) == (Action.MEMBER_REMOVE, member_id)


def test_blocking_again_after_declining_changes_nothing(api: Api, world: World):
    subject, invited = Subject(world, api), world.person()
    made = subject.post("/v1/invitations", {"email": invited.email, "role": "member"})
    profile = find_user(invited.user_id)
    assert profile is not None
    invitees.decline_invitation(InvitationId.stored(made["id"]), profile)
    before = all_entries()
    with pytest.raises(invitees.InvitationGone):
        invitees.block_organization(InvitationId.stored(made["id"]), profile)
    assert all_entries() == before
