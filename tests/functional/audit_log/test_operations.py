"""Every operation and form that changes something of an organization writes one entry in its transaction.

`test_dry_runs`, `test_roles_at_commit`, and `test_round_trips` of pages check that all of them are listed.
"""

import pytest

from controlplane.findings import inbox
from controlplane.organizations import invitees, members
from controlplane.people.users import find_user
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from tests.support.audit_log import all_entries
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.operations import operations_at
from tests.support.subject import Subject
from tests.support.table import restored
from tests.support.valid_forms import FORMS
from tests.support.valid_requests import CASES, CREATING, OPERATIONS

LOGGED = [case for case in CASES if case.action]
_WITH_KEY = {"createProject", "updateProject", "deleteProject", "deleteWebsite"}
KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)


@each("case", LOGGED, ids=str, around=restored)
def test_each_success_writes_one_entry_and_no_refusal_writes_any(case, api, world, sqs):
    name, subject = case.name, Subject(world, api)
    request = case.prepared(subject)
    stranger = world.company().owner
    before = all_entries()
    # `updateInboxItems` has a 404 for each item of another organization.
    if name not in {*CREATING, "updateInboxItems"}:
        assert request.send(stranger.token).status in {403, 404}
    if name != "createOrganization":
        unscoped = world.token(subject.owner.user_id, ["billing.read"])
        assert request.send(unscoped).status == 403
    assert all_entries() == before
    token = world.key(subject.company) if name in _WITH_KEY else subject.owner.token
    before = all_entries()
    reply = request.send(token, **KEY)
    # The issue itself is opened in the background.
    assert reply.status == 409 if name == "createGithubIssue" else reply.status < 300, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["source"], entry["requestId"]) == (case.action, "api", reply.headers["x-request-id"])
    if name in _WITH_KEY:
        assert (entry["actorKind"], entry["actorId"][:4]) == ("api_key", "key_")
    else:
        assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    if name != "createOrganization":
        assert entry["pk"] == f"AUDITLOG#{subject.organization_id}#2026-03"
    assert entry["before"] or entry["after"] or name == "createGithubIssue"
    assert entry["expiresAt"] == 1_772_600_767 + 400 * 86_400
    # No secret, free text, or personal data beyond the actor's ID.
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace", "hopper"))
    # The same request again, with its Idempotency-Key or without effect, writes no second entry of the change.
    again = request.send(token, **KEY)
    written = [it for it in all_entries() if it not in before and it != entry]
    if again.status >= 400 or again.headers.get("idempotency-replayed"):
        assert written == []


def test_unchanged_statuses_and_operations_outside_organizations_write_no_entry(api, world):
    subject = Subject(world, api)
    other, item = world.company(owner=subject.owner), world.finding(subject.company)
    before = all_entries()
    inbox.change_status(item, item.status, item.version, subject.owner.user_id, None)
    body = {"organizationId": other.organization_id}
    assert api.put("/v1/me/active-organization", subject.owner.token, json_body=body).status == 200
    report = {"category": "bug", "surface": "api", "message": "It fails.", "title": "It fails"}
    api.post("/v1/feedback", subject.owner.token, json_body=report)
    sessions = api.get("/v1/me/sessions", subject.owner.token).data
    assert api.delete(f"/v1/me/sessions/{sessions[0]['id']}", subject.owner.token).status == 200
    assert all_entries() == before


LOGGED_FORMS = [form for form in FORMS if form.action]
# Answers of the invited person.
ANSWERS = {
    "acceptInvitation": ("Accept", Action.MEMBER_JOIN),
    "declineInvitation": ("Decline", Action.INVITATION_DECLINE),
    "blockOrganization": ("Decline and block", Action.INVITATION_DECLINE),
}


@each("form", LOGGED_FORMS, ids=str, around=restored)
def test_a_form_writes_one_entry(form, api, world, sqs):
    subject = Subject(world, api)
    posted = form.prepared(subject)
    before = all_entries()
    reply = posted.send(subject.browser)
    assert form.operation in operations_at(posted.path, "POST")
    assert reply.status in {200, 303}, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    expected = (form.action, "page", reply.headers["x-request-id"])
    assert (entry["action"], entry["source"], entry["requestId"]) == expected
    assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace", "hopper"))


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
