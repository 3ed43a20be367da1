"""Every form of the pages that changes something of an organization writes one entry in its transaction."""

import pytest

from controlplane.organizations import invitees, members
from controlplane.people.users import find_user
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from tests.support.audit_log import all_entries
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.operations import operations_at
from tests.support.reply import Reply
from tests.support.subject import Subject
from tests.support.table import restored
from tests.support.valid_forms import FORMS
from tests.support.valid_requests import OPERATIONS

LOGGED = [form for form in FORMS if form.action]
# Answers of the invited person.
ANSWERS = {
    "acceptInvitation": ("Accept", Action.MEMBER_JOIN),
    "declineInvitation": ("Decline", Action.INVITATION_DECLINE),
    "blockOrganization": ("Decline and block", Action.INVITATION_DECLINE),
}
# A person's own account, sessions, devices, and default organization (decision 0064). Deleting an account ends its
# memberships, each with an entry.
OF_NO_ORGANIZATION = {
    "checkCode",
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


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)


def test_every_form_has_a_case():
    changing = {name for name, it in OPERATIONS.items() if it.requires_session is not None and it.requires_session.form}
    assert changing == {form.name for form in FORMS} | ANSWERS.keys() | OF_NO_ORGANIZATION


def check_entry(before: list[dict], action: Action, subject: Subject, reply: Reply) -> None:
    assert reply.status in {200, 303}, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["source"], entry["requestId"]) == (action, "page", reply.headers["x-request-id"])
    assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace", "hopper"))


@each("form", LOGGED, ids=str, around=restored)
def test_a_form_writes_one_entry(form, api, world, sqs):
    subject = Subject(world, api)
    posted = form.prepared(subject)
    before = all_entries()
    reply = posted.send(subject.browser)
    assert form.operation in operations_at(posted.path, "POST")
    check_entry(before, form.action, subject, reply)


@each("name", ANSWERS, around=restored)
def test_an_answer_to_an_invitation_is_logged_without_the_invitees_private_details(name, api, world):
    subject, invited = Subject(world, api), world.person("canary@example.com")
    body = {"email": invited.email, "role": "admin"}
    made = subject.post("/v1/invitations", body)
    before = all_entries()
    browser = Browser(api).signed_in(invited.user_id)
    browser.get("/invitations")
    label, action = ANSWERS[name]
    assert browser.press(label).status == 303
    assert browser.at == OPERATIONS[name].path
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["actorId"], entry["source"]) == (action, invited.user_id, "page")
    assert not any(text in str(entry).lower() for text in ("block", "canary"))
    before = all_entries()
    with pytest.raises(invitees.InvitationGone):  # a second answer changes nothing
        invitees.block_organization(InvitationId.stored(made["id"]), find_user(invited.user_id))
    assert all_entries() == before


def test_deleting_an_account_logs_the_removal_of_the_member(api, world):
    subject = Subject(world, api)
    person = subject.member
    member_id = members.get_member(subject.organization_id, person.user_id).member_id
    browser = Browser(api).signed_in(person.user_id)
    before = all_entries()
    browser.get("/account/delete")
    assert browser.press("Delete my account", fill={"Your email address": person.email}).status == 303
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["resource"]) == (Action.MEMBER_REMOVE, member_id)
