"""Every form of the pages that changes something of an organization writes one entry in its transaction."""

from collections.abc import Callable

import pytest

from controlplane.core.actions import Action
from controlplane.core.ids import InvitationId
from controlplane.core.settings import settings
from controlplane.store import detections, inbox, invitees, members, organizations
from controlplane.store.repository_items import HostedRepository
from controlplane.store.users import find_user
from dashboard import connecting
from tests.support.api import Api
from tests.support.audit_log import Subject, all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.endpoints import URL, delivered, endpoint
from tests.support.operations import operations
from tests.support.populated_organization import detection
from tests.support.sqs import FakeSqs
from tests.support.table import restored
from tests.support.world import World

ONCE = {"once": "x" * 32}
# The values of the path's parameters and the form's fields, who sends it, and the action of the entry.
type Sent = tuple[dict[str, str], dict[str, str]]


def _member_id(it: Subject) -> str:
    return members.get_member(it.organization_id, it.member.user_id).member_id


def _project(it: Subject) -> dict[str, str]:
    return {"projectSlug": it.project.slug}


def _item(it: Subject) -> Sent:
    item = it.world.finding(it.company, it.repository)
    return {"itemId": item.item_id}, {"action": "accepted", "version": item.version, "reason": "Canary"}


def _chosen(it: Subject) -> Sent:
    item = it.world.finding(it.company)
    return {}, {"action": "accepted", f"item-{item.item_id}": item.version}


def _vendor(it: Subject) -> Sent:
    detections.record_detection(detection(it.project.project_id))
    item = inbox.list_items(it.organization_id, None, 1, None).items[0]
    return {"itemId": item.item_id}, {"decision": "approve"}


def _locked(it: Subject) -> Sent:
    scan = make_scan(it.repository, issues=[make_issue(number) for number in range(1, 6)])
    it.world.credits(it.company, 80)
    return {"scanId": scan.scan_id}, {}


def _offers(it: Subject) -> Sent:
    hosted = HostedRepository(
        hosted_id=77,
        installation_id=4711,
        owner="acme",
        name="blog",
        html_url="https://github.com/acme/blog",
        default_branch="main",
        visibility="private",
    )
    membership = organizations.find_membership(it.owner.user_id, it.organization_id)
    assert membership is not None
    offers = connecting._seal_offers(membership, [hosted], it.browser.secret)
    return {}, {"offers": offers.sealed, "repository": "77"}


def _link(it: Subject) -> Sent:
    fields = {"project_id": it.project.project_id, "failure_threshold": "P2"}
    return {"repositoryId": it.repository.repository_id}, fields


def _confirmed(it: Subject) -> dict[str, str]:
    return {"confirmation": it.repository.full_name}


def _webhook(it: Subject) -> dict[str, str]:
    return {"webhookId": endpoint(it.company).webhook_id}


def _delivery(it: Subject) -> dict[str, str]:
    delivery = delivered(it.company)
    return {"webhookId": delivery.webhook_id, "eventId": delivery.event_id}


_WEBHOOK = {"name": "Alerts", "url": f"{URL}/canary", "format": "slack", "key.created": "yes"}


CASES: dict[str, tuple[Action, Callable[[Subject], Sent]]] = {
    "submitNewProject": (
        Action.PROJECT_CREATE,
        lambda _: ({}, {"name": "Shop", "region": "eu-central", "websites": "example.com", **ONCE}),
    ),
    "changeProject": (
        Action.PROJECT_UPDATE,
        lambda it: (_project(it), {"action": "describe", "name": "Store", "description": ""}),
    ),
    "deleteProjectOnPage": (Action.PROJECT_DELETE, lambda it: (_project(it), {"confirmation": it.project.slug})),
    "decideVendorOnPage": (
        Action.VENDOR_DECIDE,
        lambda it: (_project(it), {"vendor_id": "segment", "decision": "approve"}),
    ),
    "submitKey": (Action.API_KEY_CREATE, lambda _: ({}, {"name": "deploy", **ONCE})),
    "submitKeyRoll": (Action.API_KEY_ROLL, lambda it: ({"keyId": it.key_id}, dict(ONCE))),
    "submitKeyRevocation": (Action.API_KEY_DELETE, lambda it: ({"keyId": it.key_id}, {})),
    "submitInvitation": (Action.INVITATION_CREATE, lambda _: ({}, {"email": "canary@example.com", "role": "member"})),
    "submitResend": (Action.INVITATION_RESEND, lambda it: ({}, {"invitation_id": it.invitation_id})),
    "submitWithdrawal": (Action.INVITATION_CANCEL, lambda it: ({}, {"invitation_id": it.invitation_id})),
    "submitMember": (
        Action.MEMBER_CHANGE_ROLE,
        lambda it: ({}, {"member_id": _member_id(it), "action": "change", "role": "admin"}),
    ),
    "decideFindings": (Action.INBOX_CHANGE_STATUS, _chosen),
    "decideFinding": (Action.INBOX_CHANGE_STATUS, _item),
    "openIssue": (Action.ISSUE_REQUEST, lambda it: (_item(it)[0], {})),
    "decideFindingVendor": (Action.VENDOR_DECIDE, _vendor),
    "connectRepository": (Action.REPOSITORY_CONNECT, _offers),
    "saveRepositoryLink": (Action.LINK_UPDATE, _link),
    "confirmDisconnection": (
        Action.REPOSITORY_DISCONNECT,
        lambda it: ({"repositoryId": it.repository.repository_id}, _confirmed(it)),
    ),
    "beginScan": (
        Action.SCAN_REQUEST,
        lambda it: ({}, {"subject": f"{it.repository.repository_id} {it.project.project_id}"}),
    ),
    "unlockFindings": (Action.SCAN_UNLOCK, _locked),
    "createOrganizationOfForm": (Action.ORGANIZATION_CREATE, lambda _: ({}, {"name": "Second", "slug": ""})),
    "submitWebhook": (Action.WEBHOOK_CREATE, lambda _: ({}, {**_WEBHOOK, **ONCE})),
    "submitWebhookChange": (Action.WEBHOOK_UPDATE, lambda it: (_webhook(it), _WEBHOOK)),
    "submitWebhookStatus": (Action.WEBHOOK_UPDATE, lambda it: (_webhook(it), {"status": "disabled"})),
    "submitWebhookRotation": (Action.WEBHOOK_ROTATE_SECRET, lambda it: (_webhook(it), dict(ONCE))),
    "submitWebhookDeletion": (Action.WEBHOOK_DELETE, lambda it: (_webhook(it), {})),
    "submitWebhookReplay": (Action.WEBHOOK_REPLAY, lambda it: (_delivery(it), {})),
    "deleteOrganization": (Action.ORGANIZATION_DELETE, lambda it: ({}, {"confirmation": it.company.slug})),
}
# Answers of the invited person.
ANSWERS = {
    "acceptInvitation": Action.MEMBER_JOIN,
    "declineInvitation": Action.INVITATION_DECLINE,
    "blockOrganization": Action.INVITATION_DECLINE,
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
    assert FORMS.keys() == CASES.keys() | ANSWERS.keys() | OF_NO_ORGANIZATION


@each("name", CASES, around=restored)
def test_a_form_writes_one_entry_and_without_its_token_none(name: str, api: Api, world: World, sqs: FakeSqs):
    action, prepare = CASES[name]
    subject, path = Subject(world, api), FORMS[name].path
    browser = subject.browser
    values, fields = prepare(subject)
    for parameter, value in {"organizationSlug": subject.company.slug, **values}.items():
        path = path.replace("{" + parameter + "}", value)
    before = all_entries()
    assert browser.post(path, fields).status == 403
    assert all_entries() == before
    reply = browser.post(path, {**fields, "form_token": browser.form_token})
    assert reply.status in {200, 303}, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["source"], entry["requestId"]) == (action, "page", reply.headers["x-request-id"])
    assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace"))


@each("name", ANSWERS, around=restored)
def test_an_answer_to_an_invitation_is_recorded_without_what_only_the_person_may_know(
    name: str, api: Api, world: World
):
    subject, invited = Subject(world, api), world.person("canary@example.com")
    body = {"email": invited.email, "role": "admin"}
    made = subject.post("/v1/invitations", body)
    before = all_entries()
    browser = Browser(api).signed_in(invited.user_id)
    fields = {"invitation_id": made["id"], "form_token": browser.form_token}
    assert browser.post(FORMS[name].path, fields).status in {200, 303}
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["actorId"], entry["source"]) == (ANSWERS[name], invited.user_id, "page")
    assert "block" not in str(entry).lower()
    assert "canary" not in str(entry)


def test_a_deleted_account_leaves_its_organizations_with_entries(api: Api, world: World):
    subject = Subject(world, api)
    person, member_id = subject.member, _member_id(subject)
    browser = Browser(api).signed_in(person.user_id)
    before = all_entries()
    fields = {"confirmation": person.email, "form_token": browser.form_token}
    assert browser.post("/account/delete", fields).status == 303
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
