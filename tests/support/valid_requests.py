"""A valid request of every operation of the API that changes something.

Braces in bodies name a part of the `Subject`, as the parameters of paths do.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from controlplane.platform.core.actions import Action
from controlplane.platform.core.roles import Role
from tests.support.api import Reply
from tests.support.documented import find_operation, samples
from tests.support.endpoints import URL
from tests.support.operations import Operation, operations
from tests.support.subject import Subject, filled
from tests.support.world import Person

OPERATIONS = {it.route.operation_id: it for it in operations()}
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Request(NamedTuple):
    """A request of the API for a subject."""

    subject: Subject
    method: str
    path: str
    body: Any

    def send(self, token: str | None = None, query: str = "", **headers: str) -> Reply:
        """Sends it, by default with the owner's token."""
        token, api = token or self.subject.owner.token, self.subject.api
        return api.call(self.method, self.path + query, token, json_body=self.body, headers=headers)

    def of(self, person: Person) -> Callable[[], Reply]:
        return partial(self.send, person.token)


class Case(NamedTuple):
    """A request of the API.

    action: the audit log's, or None for an operation that changes nothing of an organization (decision 0064).
    other: the fields that another request with the same Idempotency-Key has in addition or instead.
    role: the least one, which is checked again at commit; `member` only at admission. None: not of an organization.
    held: the role of the member that is changed.
    """

    name: str
    action: Action | None
    body: Mapping[str, Any] | None = None
    other: Mapping[str, Any] = NOTHING
    role: Role | None = "admin"
    held: Role = "member"

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.name]

    def prepared(self, subject: Subject) -> Request:
        subject.held = self.held
        path = self.operation.path.replace("{scanId}/cancel", "{openScanId}/cancel")
        path, body = filled(path, subject), filled(self.body, subject)
        return Request(subject, self.operation.method, path, body)


_CHANGE = {"id": "{itemId}", "status": "accepted", "version": "{version}", "reason": "Canary"}
_ENDPOINT = {"name": "Alerts", "url": f"{URL}/canary", "events": ["key.created"]}

CASES = (
    Case("createApiKey", Action.API_KEY_CREATE, {"name": "déploy"}, {"name": "other"}),
    Case("rollApiKey", Action.API_KEY_ROLL, {}, {"gracePeriodSeconds": 60}),
    Case("updateApiKey", Action.API_KEY_UPDATE, {"name": "deploys", "scopes": ["inbox.read"]}),
    Case("deleteApiKey", Action.API_KEY_DELETE),
    Case("disconnectRepository", Action.REPOSITORY_DISCONNECT),
    Case("createLink", Action.LINK_CREATE, {"projectId": "{otherProjectId}"}, {"rootDirectory": "web"}),
    Case("updateLink", Action.LINK_UPDATE, {"schedule": "daily"}),
    Case("deleteLink", Action.LINK_DELETE),
    Case(
        "startScan",
        Action.SCAN_REQUEST,
        {"repositoryId": "{repositoryId}"},
        {"repositoryId": "{otherRepositoryId}"},
        "member",
    ),
    Case("cancelScan", Action.SCAN_CANCEL, role="member"),
    Case("unlockScan", Action.SCAN_UNLOCK, role="owner"),
    Case(
        "updateInboxItem",
        Action.INBOX_CHANGE_STATUS,
        {name: value for name, value in _CHANGE.items() if name != "id"},
        role="member",
    ),
    Case(
        "updateInboxItems",
        Action.INBOX_CHANGE_STATUS,
        {"items": [_CHANGE]},
        {"items": [{**_CHANGE, "status": "dismissed"}]},
        "member",
    ),
    Case("createComment", Action.INBOX_ADD_COMMENT, {"text": "Canary"}, {"text": "Another"}, role="member"),
    Case("deleteComment", Action.INBOX_DELETE_COMMENT),
    Case("createGithubIssue", Action.ISSUE_REQUEST),
    Case(
        "createInvitation",
        Action.INVITATION_CREATE,
        {"email": "canary@example.com", "role": "member"},
        {"role": "admin"},
    ),
    Case("createInvitation", Action.INVITATION_CREATE, {"email": "canary@example.com", "role": "owner"}, role="owner"),
    Case("resendInvitation", Action.INVITATION_RESEND),
    Case("deleteInvitation", Action.INVITATION_CANCEL),
    Case("updateMember", Action.MEMBER_CHANGE_ROLE, {"role": "admin"}),
    Case("updateMember", Action.MEMBER_CHANGE_ROLE, {"role": "owner"}, role="owner"),
    Case("updateMember", Action.MEMBER_CHANGE_ROLE, {"role": "member"}, role="owner", held="owner"),
    Case("deleteMember", Action.MEMBER_REMOVE),
    Case("deleteMember", Action.MEMBER_REMOVE, role="owner", held="owner"),
    Case("createOrganization", Action.ORGANIZATION_CREATE, {"name": "Second"}, {"name": "Another"}, None),
    Case("createProject", Action.PROJECT_CREATE, {"name": "Shop", "region": "eu-central"}, {"name": "Other"}, "member"),
    Case("updateProject", Action.PROJECT_UPDATE, {"projectName": "Store"}, role="member"),
    Case("deleteProject", Action.PROJECT_DELETE),
    Case("decideVendor", Action.VENDOR_DECIDE, {"decision": "approve"}),
    Case("deleteWebsite", Action.WEBSITE_DELETE),
    Case("createAudit", Action.AUDIT_CREATE, {"websiteId": "{websiteId}"}, {"schedule": "daily"}, "member"),
    Case("updateAudit", Action.AUDIT_UPDATE, {"schedule": "daily"}, role="member"),
    Case("deleteAudit", Action.AUDIT_DELETE),
    Case("startAuditRun", Action.AUDIT_RUN, {}, role="member"),
    Case("createWebhookEndpoint", Action.WEBHOOK_CREATE, _ENDPOINT, {"name": "Other", "format": "standard"}),
    Case("updateWebhookEndpoint", Action.WEBHOOK_UPDATE, {"url": f"{URL}/other", "status": "disabled"}),
    Case("deleteWebhookEndpoint", Action.WEBHOOK_DELETE),
    Case("rotateWebhookSecret", Action.WEBHOOK_ROTATE_SECRET, {}),
    Case("replayWebhookDelivery", Action.WEBHOOK_REPLAY),
    Case("createFeedback", None, {"category": "bug", "message": "It fails."}, {"message": "It fails again."}, None),
    Case("saveActiveOrganization", None, {"organizationId": "{otherOrganizationId}"}, role=None),
    Case("revokeSession", None, role=None),
)
# The usual request of each operation.
USUAL = {case.name: case for case in reversed(CASES)}
# Operations that a person of another organization can perform there.
CREATING = {"createOrganization", "createProject", "createApiKey", "createInvitation", "createWebhookEndpoint"}
CHANGING = {
    operation.route.operation_id: operation
    for operation in operations()
    if operation.requires_session is None and operation.method not in {"GET", "OPTIONS"}
}


def valid_body(operation: Operation) -> Any:
    """Returns the body that the document shows, whose IDs are unknown, so that a test reaches later checks.

    None: the operation has no body.
    """
    if operation.route.body_field is None:
        return None
    described = find_operation(operation.method, operation.path)
    assert described
    (media,) = described.content["requestBody"]["content"].values()
    # A key is limited only to projects that exist.
    return {name: value for name, value in samples().of(media["schema"]).items() if name != "projectIds"}
