"""The organization on which tests perform operations."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast

from controlplane.audits import store as audits
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import conversations, intake
from controlplane.findings.discoveries import Discovery
from controlplane.findings.items import InboxItem
from controlplane.notify.webhooks import DeliveryItem, WebhookItem
from controlplane.organizations import members
from controlplane.platform.core.roles import Role
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import get_project
from controlplane.scans.items import ScanItem
from tests.support.api import Api
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.endpoints import delivered, endpoint
from tests.support.populated_organization import detection
from tests.support.world import Company, Person, World

INVITED = "invited@example.com"


class Subject:
    """An organization with its owner. Its other parts are created when a case first asks for them."""

    # The role of `member`.
    held: Role = "member"

    def __init__(self, world: World, api: Api) -> None:
        self.world = world
        self.api = api
        self.company: Company = world.company()

    def __getitem__(self, name: str) -> str:
        """Returns the part with that name in the paths of routes, and in what requests send."""
        return _PARTS[name](self)

    @property
    def organization_id(self) -> str:
        return self.company.organization_id

    @property
    def owner(self) -> Person:
        return self.company.owner

    @cached_property
    def browser(self) -> Browser:
        """The owner's browser."""
        return Browser(self.api).signed_in(self.owner.user_id)

    @cached_property
    def member(self) -> Person:
        return self.world.member(self.company, self.held, self.world.person(name="Grace Hopper"))

    @cached_property
    def invitation_id(self) -> str:
        return str(self.post("/v1/invitations", {"email": INVITED, "role": "member"})["id"])

    @cached_property
    def key_id(self) -> str:
        return str(self.post("/v1/api-keys", {"name": "deploy"})["keyId"])

    @cached_property
    def repository(self) -> RepositoryItem:
        return self.world.connected_repository(self.company)

    @property
    def project(self) -> ProjectItem:
        return get_project(self.repository.links[0].project_id)

    @cached_property
    def website_id(self) -> str:
        """The first of two websites."""
        body = {"websites": ["example.com", "example.org"]}
        self.api.patch(f"/v1/projects/{self.project.project_id}", self.owner.token, json_body=body)
        return self.project.websites[0].website_id

    @cached_property
    def audit_id(self) -> str:
        return str(
            self.post(f"/v1/projects/{self.project.project_id}/audits", {"websiteId": self.website_id})["auditId"]
        )

    @cached_property
    def run_id(self) -> str:
        return audits.start_run(audits.get_audit(self.project.project_id, self.audit_id)).run_id

    @cached_property
    def item(self) -> InboxItem:
        return self.world.finding(self.company, self.repository)

    @cached_property
    def scan(self) -> ScanItem:
        """A locked scan, which the organization can pay for."""
        self.world.credits(self.company, 80)
        return make_scan(self.repository, issues=[make_issue(number) for number in range(1, 6)])

    @cached_property
    def webhook(self) -> WebhookItem:
        return endpoint(self.company)

    @cached_property
    def delivery(self) -> DeliveryItem:
        return delivered(self.company, self.webhook)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.api.post(path, self.owner.token, json_body=body).data


def _detect(subject: Subject) -> Discovery:
    """Detects a vendor on a website."""
    made = detection(subject.project.project_id)
    intake.record_detection(made)
    return made.as_discovery()


# Parts that no test reads are created with each use.
_PARTS: dict[str, Callable[[Subject], str]] = {
    "organizationId": lambda it: it.organization_id,
    "organizationSlug": lambda it: it.company.slug,
    "otherOrganizationId": lambda it: it.world.company(owner=it.owner).organization_id,
    "sessionId": lambda it: it.api.get("/v1/me/sessions", it.owner.token).data[0]["id"],
    "memberId": lambda it: members.get_member(it.organization_id, it.member.user_id).member_id,
    "memberName": lambda it: it.member.name,
    "invitationId": lambda it: it.invitation_id,
    "invitedAddress": lambda it: it.invitation_id and INVITED,
    "keyId": lambda it: it.key_id,
    "repositoryId": lambda it: it.repository.repository_id,
    "otherRepositoryId": lambda it: it.world.connected_repository(it.company).repository_id,
    # `project` can be linked to it.
    "unlinkedRepositoryId": lambda it: (
        it.world.connected_repository(it.company, linked=not it.project.slug).repository_id
    ),
    # The one that the form to connect a repository names.
    "connectedBlogId": lambda it: it.world.connected_repository(it.company, name="blog").repository_id,
    "projectId": lambda it: it.project.project_id,
    "projectSlug": lambda it: it.project.slug,
    "otherProjectId": lambda it: it.post("/v1/projects", {"name": "Second", "region": "eu-central"})["id"],
    "websiteId": lambda it: it.website_id,
    "auditId": lambda it: it.audit_id,
    "runId": lambda it: it.run_id,
    "websiteAddress": lambda it: it.website_id and "example.com",
    "vendorId": lambda _: "segment",
    "itemId": lambda it: it.item.item_id,
    "itemTitle": lambda it: it.item.title,
    "version": lambda it: it.item.version,
    "commentId": lambda it: conversations.add_comment(it.item, "Canary", it.owner.user_id, {}).id,
    "vendorItemId": lambda it: _detect(it).item_id,
    "scanId": lambda it: it.scan.scan_id,
    "openScanId": lambda it: make_scan(it.world.connected_repository(it.company), status="queued").scan_id,
    "webhookId": lambda it: it.webhook.webhook_id,
    "eventId": lambda it: it.delivery.event_id,
}


def filled[Value](value: Value, parts: Any) -> Value:
    """Returns the value with the parts that braces in its texts name."""
    if isinstance(value, str):
        return cast("Value", value.format_map(parts))
    if isinstance(value, Mapping):
        return cast("Value", {filled(name, parts): filled(part, parts) for name, part in value.items()})
    return cast("Value", [filled(part, parts) for part in value]) if isinstance(value, list) else value
