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
from tests.support.audit_log import Subject, all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.endpoints import URL, delivered, endpoint
from tests.support.operations import operations, operations_at
from tests.support.page import Entry
from tests.support.populated_organization import detection
from tests.support.reply import Reply
from tests.support.table import restored


class Control(NamedTuple):
    """A button of a page (below the organization's), what is entered before it is pressed, and a text near it.

    Braces name a part of the subject, `it`.
    """

    page: str
    label: str
    entered: Mapping[str, Entry] = MappingProxyType({})
    near: str = ""


def _item(it: Subject, label: str, **entered: Entry) -> Control:
    return Control(f"/inbox/{it.world.finding(it.company, it.repository).item_id}", label, entered)


def _chosen(it: Subject) -> Control:
    item = it.world.finding(it.company)
    return Control("/inbox", "Accept", {f"Select {item.title}": True, "Reason": "Canary"})


def _vendor(it: Subject) -> Control:
    intake.record_detection(detection(it.project.project_id))
    item = inbox.list_items(it.organization_id, None, 1, None).items[0]
    return Control(f"/inbox/{item.item_id}", "Approve")


def _locked(it: Subject) -> Control:
    scan = make_scan(it.repository, issues=[make_issue(number) for number in range(1, 6)])
    it.world.credits(it.company, 80)
    return Control(f"/scans/{scan.scan_id}/unlock", "Unlock for 50 credits")


def _invited(it: Subject, label: str) -> Control:
    assert it.invitation_id
    return Control("/members", label)


def _webhook(it: Subject, label: str, **entered: Entry) -> Control:
    return Control(f"/webhooks/{endpoint(it.company).webhook_id}", label, entered)


def _delivery(it: Subject) -> Control:
    delivery = delivered(it.company)
    return Control(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.event_id}", "Replay")


_WEBHOOK: dict[str, Entry] = {"Name": "Alerts", "URL": f"{URL}/canary", "key.created": True}
_SHOP: dict[str, Entry] = {"Name": "Shop", "Websites": "example.com"}
_THRESHOLD: dict[str, Entry] = {"A pull request's check fails for new findings of": "P2 or more urgent"}
_PROJECT, _REPOSITORY = "/projects/{it.project.slug}", "/repositories/{it.repository.repository_id}"


CASES: dict[str, tuple[Action, Control | Callable[[Subject], Control]]] = {
    "submitNewProject": (Action.PROJECT_CREATE, Control("/projects/new", "Create the project", _SHOP)),
    "changeProject": (Action.PROJECT_UPDATE, Control(f"{_PROJECT}/settings", "Save", {"Name": "Store"}, "Description")),
    "deleteProjectOnPage": (
        Action.PROJECT_DELETE,
        Control(f"{_PROJECT}/delete", "Delete this project", {"Name of the project": "{it.project.slug}"}),
    ),
    "decideVendorOnPage": (
        Action.VENDOR_DECIDE,
        Control(f"{_PROJECT}/vendors", "Approve", {"Vendor ID": "segment"}),
    ),
    "submitKey": (Action.API_KEY_CREATE, Control("/keys", "Create key", {"Name of a new key": "deploy"})),
    "submitKeyRoll": (Action.API_KEY_ROLL, Control("/keys/{it.key_id}", "Roll this key")),
    "submitKeyRevocation": (Action.API_KEY_DELETE, Control("/keys/{it.key_id}", "Revoke this key")),
    "submitInvitation": (
        Action.INVITATION_CREATE,
        Control("/members", "Invite", {"Email address": "canary@example.com"}),
    ),
    "submitResend": (Action.INVITATION_RESEND, lambda it: _invited(it, "Renew")),
    "submitWithdrawal": (Action.INVITATION_CANCEL, lambda it: _invited(it, "Withdraw")),
    "submitMember": (
        Action.MEMBER_CHANGE_ROLE,
        lambda it: Control("/members", "Change", {f"Role of {it.member.name}": "Admin"}),
    ),
    "decideFindings": (Action.INBOX_CHANGE_STATUS, _chosen),
    "decideFinding": (Action.INBOX_CHANGE_STATUS, lambda it: _item(it, "Accept", Reason="Canary")),
    "openIssue": (Action.ISSUE_REQUEST, lambda it: _item(it, "Open an issue")),
    "decideFindingVendor": (Action.VENDOR_DECIDE, _vendor),
    "saveRepositoryLink": (Action.LINK_UPDATE, Control(_REPOSITORY, "Save", _THRESHOLD)),
    "confirmDisconnection": (
        Action.REPOSITORY_DISCONNECT,
        Control(f"{_REPOSITORY}/disconnect", "Disconnect this repository"),
    ),
    "beginScan": (Action.SCAN_REQUEST, Control("/scans?repository={it.repository.repository_id}", "Start scan")),
    "unlockFindings": (Action.SCAN_UNLOCK, _locked),
    "createOrganizationOfForm": (
        Action.ORGANIZATION_CREATE,
        Control("/organizations/new", "Create the organization", {"Name": "Second"}),
    ),
    "submitWebhook": (Action.WEBHOOK_CREATE, Control("/webhooks", "Create endpoint", _WEBHOOK)),
    "submitWebhookChange": (Action.WEBHOOK_UPDATE, lambda it: _webhook(it, "Save", **_WEBHOOK)),
    "submitWebhookStatus": (Action.WEBHOOK_UPDATE, lambda it: _webhook(it, "Disable this endpoint")),
    "submitWebhookRotation": (Action.WEBHOOK_ROTATE_SECRET, lambda it: _webhook(it, "Rotate the secret")),
    "submitWebhookDeletion": (Action.WEBHOOK_DELETE, lambda it: _webhook(it, "Delete this endpoint")),
    "submitWebhookReplay": (Action.WEBHOOK_REPLAY, _delivery),
    "deleteOrganization": (
        Action.ORGANIZATION_DELETE,
        Control("/delete", "Delete this organization", {"Name of the organization": "{it.company.slug}"}),
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
def _without_waiting(monkeypatch):
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
def test_a_form_writes_one_entry(name, api, world, sqs):
    action, case = CASES[name]
    it = Subject(world, api)
    browser, control = it.browser, case if isinstance(case, Control) else case(it)
    page = control.page.format(it=it)
    entered = {
        label: entry.format(it=it) if isinstance(entry, str) else entry for label, entry in control.entered.items()
    }
    browser.get(page if page.startswith("/organizations") else f"/organizations/{it.company.slug}{page}")
    before = all_entries()
    reply = browser.press(control.label, near=control.near, fill=entered)
    sent_to = operations_at(browser.at.partition("?")[0])
    assert name in {operation.route.operation_id for operation in sent_to if operation.method == "POST"}
    check_entry(before, action, it, reply)


def test_connecting_a_repository_writes_one_entry(api, world):
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
    offers = connecting._seal_offers(membership.organization_id, [hosted], subject.browser.secret)
    fields = {"offers": offers.sealed, "repository": "77"}
    before = all_entries()
    reply = subject.browser.forge(f"/organizations/{subject.company.slug}/repositories", fields)
    check_entry(before, Action.REPOSITORY_CONNECT, subject, reply)


@each("name", ANSWERS, around=restored)
def test_an_answer_to_an_invitation_is_recorded_without_what_only_the_person_may_know(name, api, world):
    subject, invited = Subject(world, api), world.person("canary@example.com")
    body = {"email": invited.email, "role": "admin"}
    made = subject.post("/v1/invitations", body)
    before = all_entries()
    browser = Browser(api).signed_in(invited.user_id)
    browser.get("/invitations")
    label, action = ANSWERS[name]
    assert browser.press(label).status == 303
    assert browser.at == FORMS[name].path
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["actorId"], entry["source"]) == (action, invited.user_id, "page")
    assert not any(text in str(entry).lower() for text in ("block", "canary"))
    before = all_entries()
    with pytest.raises(invitees.InvitationGone):  # a second answer changes nothing
        invitees.block_organization(InvitationId.stored(made["id"]), find_user(invited.user_id))
    assert all_entries() == before


def test_a_deleted_account_leaves_its_organizations_with_entries(api, world):
    subject = Subject(world, api)
    person = subject.member
    member_id = members.get_member(subject.organization_id, person.user_id).member_id
    browser = Browser(api).signed_in(person.user_id)
    before = all_entries()
    browser.get("/account/delete")
    assert browser.press("Delete my account", fill={"Your email address": person.email}).status == 303
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["resource"]) == (Action.MEMBER_REMOVE, member_id)
