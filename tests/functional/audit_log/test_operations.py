"""Every operation that changes something writes one entry in its transaction, or belongs to no organization."""

from controlplane.findings import inbox
from controlplane.platform.core.settings import settings
from tests.support.audit_log import all_entries
from tests.support.each import each
from tests.support.subject import Subject
from tests.support.table import restored
from tests.support.valid_requests import CASES, CHANGING, CREATING

LOGGED = [case for case in CASES if case.action]
# Operations that change nothing of an organization (decision 0064).
OF_NO_ORGANIZATION = {
    "createDeviceCode",
    "revokeDeviceToken",
    "createDeviceToken",
    "createFeedback",
    "saveActiveOrganization",
    "revokeSession",
    "receiveWebhook",
    # It changes the organizations of the keys in the report: tests/functional/api_keys/test_leaked_keys.py.
    "receiveLeakReport",
}
_WITH_KEY = {"createProject", "updateProject", "deleteProject", "deleteWebsite"}
KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


def test_every_operation_that_changes_something_has_a_case():
    assert CHANGING.keys() == {case.name for case in LOGGED} | OF_NO_ORGANIZATION


@each("case", LOGGED, ids=str, around=restored)
def test_each_success_writes_one_entry_and_no_refusal_writes_any(case, api, world, sqs, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
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
