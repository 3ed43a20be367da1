"""A button of every form that changes something of an organization, or creates one.

Braces name a part of the `Subject`, as the parameters of paths do.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urljoin

from controlplane.code_host.github.connecting import GrantedRepository
from controlplane.platform.core.actions import Action
from controlplane.platform.core.roles import Role
from dashboard.code_host import connecting
from tests.support.api import Reply
from tests.support.browser import Browser
from tests.support.endpoints import URL
from tests.support.operations import Operation
from tests.support.page import Entry, Page
from tests.support.subject import Subject, filled
from tests.support.valid_requests import NOTHING, OPERATIONS
from tests.support.world import Person, hosted_repository


class PostedForm(NamedTuple):
    """The fields that a page's button sends. Others than the owner send the token of their own session.

    has_offers: whether it also has what GitHub offers, sealed for the session that sends it.
    """

    subject: Subject
    path: str
    fields: Mapping[str, str]
    has_offers: bool

    def send(self, browser: Browser) -> Reply:
        fields = {**self.fields}
        if "form_token" in fields and browser is not self.subject.browser:
            del fields["form_token"]
        if self.has_offers:
            fields |= {"repository": "77", "offers": _offers(self.subject, browser)}
        return browser.forge(self.path, fields)

    def of(self, person: Person) -> Callable[[], Reply]:
        return partial(self.send, Browser(self.subject.api).signed_in(person.user_id))


def _offers(subject: Subject, browser: Browser) -> str:
    hosted = hosted_repository("blog", hosted_id=77)
    return connecting._seal_offers(subject.organization_id, [GrantedRepository(hosted, "")], browser.secret).sealed


class Form(NamedTuple):
    """A page, and the button that is pressed after entering something. Without a label, no page has it.

    page: below the organization's address, if the form is of one. near: a text near the button. action, role, held: as
    those of `Case`.
    """

    name: str
    action: Action | None
    page: str
    label: str = ""
    entered: Mapping[str, Entry] = NOTHING
    near: str = ""
    role: Role | None = "admin"
    held: Role = "member"

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.name]

    def prepared(self, subject: Subject) -> PostedForm:
        """Returns the form that the owner's browser sends when the button is pressed."""
        subject.held = self.held
        path, label, near = (filled(it, subject) for it in (self.page, self.label, self.near))
        entered = filled(self.entered, subject)
        path = f"/organizations/{subject.company.slug}{path}" if self.role else path
        if not label:
            return PostedForm(subject, path, entered, has_offers=self.name == "connectRepository")
        page = Page(subject.browser.get(path).text)
        _, action, sent = page.send(page.control(label, near), entered)
        return PostedForm(subject, urljoin(path, action), dict(sent), has_offers=False)


_PROJECT, _REPOSITORY, _WEBHOOK = "/projects/{projectSlug}", "/repositories/{repositoryId}", "/webhooks/{webhookId}"
_AUDIT = f"{_PROJECT}/audits/{{auditId}}"
_ENTERED: dict[str, Entry] = {"Name": "Alerts", "URL": f"{URL}/canary", "key.created": True}
_THRESHOLD: dict[str, Entry] = {"A pull request's check fails for new findings of": "P2 or more urgent"}
_INVITED: dict[str, Entry] = {"Email address": "canary@example.com"}
_IMPORTED: dict[str, Entry] = {"once": "once" * 8, "name": "Blog", "region": "eu-central"}

FORMS = (
    Form(
        "submitNewProject",
        Action.PROJECT_CREATE,
        "/projects/new",
        "Create the project",
        {"Name": "Shop", "Websites": "example.com"},
        role="member",
    ),
    Form(
        "changeProject",
        Action.PROJECT_UPDATE,
        f"{_PROJECT}/settings",
        "Save",
        {"Name": "Store"},
        "Description",
        role="member",
    ),
    Form("changeProject", Action.WEBSITE_DELETE, f"{_PROJECT}/settings", "Remove the website", near="{websiteAddress}"),
    Form(
        "deleteProjectOnPage",
        Action.PROJECT_DELETE,
        f"{_PROJECT}/delete",
        "Delete this project",
        {"Name of the project": "{projectSlug}"},
    ),
    Form("decideVendorOnPage", Action.VENDOR_DECIDE, f"{_PROJECT}/vendors", "Approve", {"Vendor ID": "segment"}),
    # It creates the audit, and starts its first run.
    Form("submitAudit", None, f"{_PROJECT}/audits", "Audit this website", {"How often": "Weekly"}, role="member"),
    Form("scheduleAudit", Action.AUDIT_UPDATE, _AUDIT, "Save", {"How often": "Daily"}, role="member"),
    Form("startAuditRunOnPage", Action.AUDIT_RUN, _AUDIT, "Start a run", role="member"),
    Form("deleteAuditOnPage", Action.AUDIT_DELETE, _AUDIT, "Delete this audit"),
    Form("submitKey", Action.API_KEY_CREATE, "/keys", "Create key", {"Name of a new key": "deploy"}),
    Form("submitKeyRoll", Action.API_KEY_ROLL, "/keys/{keyId}", "Roll this key"),
    Form("submitKeyRevocation", Action.API_KEY_DELETE, "/keys/{keyId}", "Revoke this key"),
    Form("submitInvitation", Action.INVITATION_CREATE, "/members", "Invite", _INVITED),
    Form(
        "submitInvitation", Action.INVITATION_CREATE, "/members", "Invite", {**_INVITED, "Role": "Owner"}, role="owner"
    ),
    Form("submitResend", Action.INVITATION_RESEND, "/members", "Renew", near="{invitedAddress}"),
    Form("submitWithdrawal", Action.INVITATION_CANCEL, "/members", "Withdraw", near="{invitedAddress}"),
    Form("submitMember", Action.MEMBER_CHANGE_ROLE, "/members", "Change", {"Role of {memberName}": "Admin"}),
    Form("submitMember", Action.MEMBER_REMOVE, "/members", "Remove {memberName}", role="owner", held="owner"),
    Form(
        "decideFindings",
        Action.INBOX_CHANGE_STATUS,
        "/inbox",
        "Accept",
        {"Select {itemTitle}": True, "Reason": "Canary"},
        role="member",
    ),
    Form("decideFinding", Action.INBOX_CHANGE_STATUS, "/inbox/{itemId}", "Accept", {"Reason": "Canary"}, role="member"),
    Form(
        "commentOnFinding",
        Action.INBOX_ADD_COMMENT,
        "/inbox/{itemId}",
        "Comment",
        {"Add a comment": "Canary"},
        role="member",
    ),
    Form("openIssue", Action.ISSUE_REQUEST, "/inbox/{itemId}", "Open an issue"),
    Form("decideFindingVendor", Action.VENDOR_DECIDE, "/inbox/{vendorItemId}", "Approve"),
    Form("saveRepositoryLink", Action.LINK_UPDATE, _REPOSITORY, "Save", _THRESHOLD),
    Form("saveRepositoryLink", Action.LINK_DELETE, _REPOSITORY, "Unlink"),
    Form(
        "saveRepositoryLink",
        Action.LINK_CREATE,
        "/repositories/{unlinkedRepositoryId}",
        "Link this project",
        _THRESHOLD,
    ),
    Form(
        "confirmDisconnection", Action.REPOSITORY_DISCONNECT, f"{_REPOSITORY}/disconnect", "Disconnect this repository"
    ),
    # Only those who come back from GitHub have this form.
    Form("connectRepository", None, "/repositories", entered=_IMPORTED),
    Form("connectRepository", None, "/repositories", entered=_IMPORTED, near="{connectedBlogId}"),
    Form("beginScan", Action.SCAN_REQUEST, "/scans?repository={repositoryId}", "Start scan", role="member"),
    Form("stopScan", Action.SCAN_CANCEL, "/scans/{openScanId}", "Cancel this scan", role="member"),
    Form("unlockFindings", Action.SCAN_UNLOCK, "/scans/{scanId}/unlock", "Unlock for 50 credits", role="owner"),
    Form(
        "createOrganizationOfForm",
        Action.ORGANIZATION_CREATE,
        "/organizations/new",
        "Create the organization",
        {"Name": "Second"},
        role=None,
    ),
    Form("submitWebhook", Action.WEBHOOK_CREATE, "/webhooks", "Create endpoint", _ENTERED),
    Form("submitWebhookChange", Action.WEBHOOK_UPDATE, _WEBHOOK, "Save", _ENTERED),
    Form("submitWebhookStatus", Action.WEBHOOK_UPDATE, _WEBHOOK, "Disable this endpoint"),
    Form("submitWebhookRotation", Action.WEBHOOK_ROTATE_SECRET, _WEBHOOK, "Rotate the secret"),
    Form("submitWebhookDeletion", Action.WEBHOOK_DELETE, _WEBHOOK, "Delete this endpoint"),
    Form("submitWebhookReplay", Action.WEBHOOK_REPLAY, f"{_WEBHOOK}/deliveries/{{eventId}}", "Replay"),
    # The page of the default organization doesn't offer it.
    Form("makeOrganizationDefault", None, "/settings", role="member"),
    Form(
        "deleteOrganization",
        Action.ORGANIZATION_DELETE,
        "/delete",
        "Delete this organization",
        {"Name of the organization": "{organizationSlug}"},
        role="owner",
    ),
)
