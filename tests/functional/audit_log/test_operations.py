"""Every operation that changes something writes one entry in its transaction, or belongs to no organization."""

from collections.abc import Callable
from typing import Any

from controlplane.findings import inbox
from controlplane.organizations import members
from controlplane.platform.core.actions import Action
from controlplane.platform.core.settings import settings
from tests.support.api import Api, Reply
from tests.support.audit_log import Subject, all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.each import each
from tests.support.endpoints import URL, delivered, endpoint
from tests.support.operations import Operation, operations
from tests.support.table import restored

type Sent = tuple[dict[str, str], dict[str, Any] | None]


def _of_key(it: Subject) -> Sent:
    return {"keyId": it.key_id}, {}


def _of_project(it: Subject) -> Sent:
    return {"projectId": it.project.project_id}, None


def _of_website(it: Subject) -> Sent:
    body = {"websites": ["example.com", "example.org"]}
    it.api.patch(f"/v1/projects/{it.project.project_id}", it.owner.token, json_body=body)
    return {"projectId": it.project.project_id, "websiteId": it.project.websites[0].website_id}, None


def _of_member(it: Subject) -> Sent:
    member = members.get_member(it.organization_id, it.member.user_id)
    return {"memberId": member.member_id}, {"role": "admin"}


def _of_item(it: Subject) -> Sent:
    item = it.world.finding(it.company, it.repository)
    return {"itemId": item.item_id}, {"status": "accepted", "version": item.version, "reason": "Canary"}


def _of_items(it: Subject) -> Sent:
    ids, change = _of_item(it)
    return {}, {"items": [{"id": ids["itemId"], **(change or {})}]}


def _of_locked_scan(it: Subject) -> Sent:
    scan = make_scan(it.repository, issues=[make_issue(number) for number in range(1, 6)])
    it.world.credits(it.company, 80)
    return {"scanId": scan.scan_id}, None


def _of_link(it: Subject) -> Sent:
    return {"repositoryId": it.repository.repository_id, "projectId": it.project.project_id}, {"schedule": "daily"}


def _new_link(it: Subject) -> Sent:
    project = it.post("/v1/projects", {"name": "Second", "region": "eu-central"})
    return {"repositoryId": it.repository.repository_id}, {"projectId": project["id"]}


def _of_webhook(it: Subject) -> Sent:
    return {"webhookId": endpoint(it.company).webhook_id}, {}


def _of_delivery(it: Subject) -> Sent:
    delivery = delivered(it.company)
    return {"webhookId": delivery.webhook_id, "eventId": delivery.event_id}, None


# What to send, and the action of the entry.
CASES: dict[str, tuple[Action, Callable[[Subject], Sent]]] = {
    "createApiKey": (Action.API_KEY_CREATE, lambda _: ({}, {"name": "deploy"})),
    "rollApiKey": (Action.API_KEY_ROLL, _of_key),
    "updateApiKey": (Action.API_KEY_UPDATE, lambda it: (_of_key(it)[0], {"name": "deploys", "scopes": ["inbox.read"]})),
    "deleteApiKey": (Action.API_KEY_DELETE, lambda it: (_of_key(it)[0], None)),
    "disconnectRepository": (
        Action.REPOSITORY_DISCONNECT,
        lambda it: ({"repositoryId": it.repository.repository_id}, None),
    ),
    "createLink": (Action.LINK_CREATE, _new_link),
    "updateLink": (Action.LINK_UPDATE, _of_link),
    "deleteLink": (Action.LINK_DELETE, lambda it: (_of_link(it)[0], None)),
    "startScan": (Action.SCAN_REQUEST, lambda it: ({}, {"repositoryId": it.repository.repository_id})),
    "unlockScan": (Action.SCAN_UNLOCK, _of_locked_scan),
    "updateInboxItem": (Action.INBOX_CHANGE_STATUS, _of_item),
    "updateInboxItems": (Action.INBOX_CHANGE_STATUS, _of_items),
    "createGithubIssue": (Action.ISSUE_REQUEST, lambda it: (_of_item(it)[0], None)),
    "createInvitation": (Action.INVITATION_CREATE, lambda _: ({}, {"email": "canary@example.com", "role": "admin"})),
    "resendInvitation": (Action.INVITATION_RESEND, lambda it: ({"invitationId": it.invitation_id}, None)),
    "deleteInvitation": (Action.INVITATION_CANCEL, lambda it: ({"invitationId": it.invitation_id}, None)),
    "updateMember": (Action.MEMBER_CHANGE_ROLE, _of_member),
    "deleteMember": (Action.MEMBER_REMOVE, lambda it: (_of_member(it)[0], None)),
    "createOrganization": (Action.ORGANIZATION_CREATE, lambda _: ({}, {"name": "Second"})),
    "createProject": (Action.PROJECT_CREATE, lambda _: ({}, {"name": "Shop", "region": "eu-central"})),
    "updateProject": (Action.PROJECT_UPDATE, lambda it: (_of_project(it)[0], {"projectName": "Store"})),
    "deleteProject": (Action.PROJECT_DELETE, _of_project),
    "decideVendor": (
        Action.VENDOR_DECIDE,
        lambda it: ({**_of_project(it)[0], "vendorId": "segment"}, {"decision": "approve"}),
    ),
    "deleteWebsite": (Action.WEBSITE_DELETE, _of_website),
    "createWebhookEndpoint": (
        Action.WEBHOOK_CREATE,
        lambda _: ({}, {"name": "Alerts", "url": f"{URL}/canary", "events": ["key.created"]}),
    ),
    "updateWebhookEndpoint": (
        Action.WEBHOOK_UPDATE,
        lambda it: (_of_webhook(it)[0], {"url": "https://other.example.com/canary", "status": "disabled"}),
    ),
    "deleteWebhookEndpoint": (Action.WEBHOOK_DELETE, lambda it: (_of_webhook(it)[0], None)),
    "rotateWebhookSecret": (Action.WEBHOOK_ROTATE_SECRET, _of_webhook),
    "replayWebhookDelivery": (Action.WEBHOOK_REPLAY, _of_delivery),
}
# Operations that a person of another organization can perform there.
CREATING = {"createOrganization", "createProject", "createApiKey", "createInvitation", "createWebhookEndpoint"}
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
CHANGING = {
    operation.route.operation_id: operation
    for operation in operations()
    if operation.requires_session is None and operation.method != "GET"
}
_WITH_KEY = {"createProject", "updateProject", "deleteProject", "deleteWebsite"}


def test_every_operation_that_changes_something_has_a_case():
    assert CHANGING.keys() == CASES.keys() | OF_NO_ORGANIZATION


def send(api: Api, operation: Operation, token: str, sent: Sent, **headers: str) -> Reply:
    ids, body = sent
    path = operation.path
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    return api.call(operation.method, path, token, json_body=body, headers=headers)


@each("name", CASES, around=restored)
def test_each_success_writes_one_entry_and_no_refusal_writes_any(name, api, world, sqs, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
    action, prepare = CASES[name]
    subject, operation = Subject(world, api), CHANGING[name]
    sent = prepare(subject)
    stranger = world.company().owner
    before = all_entries()
    # `updateInboxItems` has a 404 for each item of another organization.
    if name not in {*CREATING, "updateInboxItems"}:
        assert send(api, operation, stranger.token, sent).status in {403, 404}
    if name != "createOrganization":
        unscoped = world.token(subject.owner.user_id, ["billing.read"])
        assert send(api, operation, unscoped, sent).status == 403
    assert all_entries() == before
    token = world.key(subject.company) if name in _WITH_KEY else subject.owner.token
    before = all_entries()
    reply = send(api, operation, token, sent, **{"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"})
    # The issue itself is opened in the background.
    assert reply.status == 409 if name == "createGithubIssue" else reply.status < 300, reply.text
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["source"], entry["requestId"]) == (action, "api", reply.headers["x-request-id"])
    if name in _WITH_KEY:
        assert (entry["actorKind"], entry["actorId"][:4]) == ("api_key", "key_")
    else:
        assert (entry["actorKind"], entry["actorId"]) == ("person", subject.owner.user_id)
    if name != "createOrganization":
        assert entry["pk"] == f"AUDITLOG#{subject.organization_id}#2026-03"
    assert entry["before"] or entry["after"] or name == "createGithubIssue"
    assert entry["expiresAt"] == 1_772_600_767 + 400 * 86_400
    # No secret, free text, or personal data beyond the actor's ID.
    assert not any(text in str(entry).lower() for text in ("canary", "@", "assent_", "lovelace"))
    # The same request again, with its Idempotency-Key or without effect, writes no second entry of the change.
    again = send(api, operation, token, sent, **{"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"})
    written = [it for it in all_entries() if it not in before and it != entry]
    if again.status >= 400 or again.headers.get("idempotency-replayed"):
        assert written == []


def test_operations_of_no_organization_and_a_status_that_stays_write_no_entry(api, world):
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
