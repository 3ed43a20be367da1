"""The models of responses. Made from docs/openapi.json by `make sdk`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel

from openassent._base import Model


class ActiveOrganization(Model):
    """The person's default organization."""

    active_organization_id: Annotated[str, Field(alias="activeOrganizationId")]
    """The organization used if a request doesn't name one."""


class AppliedDecision(Model):
    """A project's decision on a vendor, applied to a finding about that vendor."""

    vendor_id: Annotated[str, Field(alias="vendorId")]
    """The project's ID of the vendor."""
    state: Literal["approved", "ignored"] | str
    """The decision."""
    decided_at: Annotated[datetime, Field(alias="decidedAt")]
    """The time of the decision."""


class AuthorizationServerMetadata(Model):
    """The authorization server metadata of RFC 8414, with the device grant of RFC 8628."""

    issuer: str
    """The address of the authorization server."""
    device_authorization_endpoint: str
    """Where a device requests a code."""
    token_endpoint: str
    """Where a device redeems the code and refreshes its tokens."""
    revocation_endpoint: str
    """Where a device revokes its tokens."""
    grant_types_supported: list[str]
    """The grants that the token endpoint supports."""
    response_types_supported: list[str]
    """`none`: there is no authorization endpoint."""
    scopes_supported: list[str]
    """The scopes that a device can request."""
    code_challenge_methods_supported: list[str]
    """The methods of hashing the code verifier."""
    token_endpoint_auth_methods_supported: list[str]
    """`none`: clients are public."""
    revocation_endpoint_auth_methods_supported: list[str]
    """`none`: clients are public."""
    service_documentation: str
    """The documentation for people."""


class BillingPlan(Model):
    """The organization's plan."""

    id: Literal["free", "starter", "pro", "enterprise"] | str
    """The plan's identifier, for use in programs."""
    name: str
    """The plan's display name."""


class CallingPrincipal(Model):
    """The identity of the caller."""

    type: Literal["session", "api_key", "oauth"] | str
    """The kind of credential."""
    user_id: Annotated[str | None, Field(alias="userId")] = None
    """The user's ID. Session and oauth principals only."""
    key_id: Annotated[str | None, Field(alias="keyId")] = None
    """The key's ID. API keys only."""
    organization_id: Annotated[str | None, Field(alias="organizationId")] = None
    """The organization that the key belongs to. API keys only."""
    created_by: Annotated[str | None, Field(alias="createdBy")] = None
    """The user who created the key, for attribution only. API keys only."""
    project_ids: Annotated[list[str] | None, Field(alias="projectIds")] = None
    """The projects that the key is limited to. Only for API keys that are."""
    expires_at: Annotated[datetime | None, Field(alias="expiresAt")] = None
    """The time from which the key is rejected. Only for API keys that expire."""
    active_organization_id: Annotated[str | None, Field(alias="activeOrganizationId")]
    """The organization used if a request doesn't name one."""


class CodeLocation(Model):
    """A range of lines in a file."""

    path: str
    """The path of the file, relative to the repository's root."""
    start_line: Annotated[int | None, Field(alias="startLine")]
    """The first line, starting at 1."""
    end_line: Annotated[int | None, Field(alias="endLine")]
    """The last line."""
    snippet: str | None
    """The code on these lines."""


class Consent(Model):
    """A consent instance in the current shape."""

    trusted_origins: Annotated[list[str], Field(alias="trustedOrigins")]
    """The consent entries alone. Deprecated since 2026-11-01; works until at least 2028-01-01. Use `websites`
    instead. Send the same addresses in `websites`. In a `PATCH`, that is the complete list, so include websites
    that are only audited.
    """
    branding: Literal["assent", "openassent", "none"] | str
    """The branding of the banner. While the plan doesn't include `removeBranding`, `assent` replaces `none`."""
    backend_url: Annotated[str | None, Field(alias="backendUrl")]
    """The URL at which the consent runtime serves the instance."""
    dashboard_url: Annotated[str, Field(alias="dashboardUrl")]
    """The page in the dashboard."""
    version: str
    """The version of the consent runtime."""


class CoveredKind(Model):
    """The files of one kind."""

    name: str
    """The kind of file."""
    analyzed_files: Annotated[int, Field(alias="analyzedFiles")]
    """The number of files that were analyzed."""
    unassessed_files: Annotated[int, Field(alias="unassessedFiles")]
    """The number of files that weren't: the analysis doesn't read this kind, or skipped them."""


class Credits(Model):
    """The credits with which scans are unlocked."""

    balance: int
    """The number of credits left."""


class Database(Model):
    """The health of the database."""

    ok: bool
    """True: the database responded."""


class DeletedInvitation(Model):
    """The result of canceling an invitation."""

    deleted: bool
    """True: the invitation can no longer be accepted."""


class DeletedKey(Model):
    """The result of revoking a key."""

    deleted: bool
    """True: the secret no longer works."""


class DeletedLink(Model):
    """The result of unlinking a project."""

    deleted: bool
    """True: the project was unlinked."""
    project_id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""


class DeletedMember(Model):
    """The result of removing a member."""

    deleted: bool
    """True: the member was removed."""


class DeletedProject(Model):
    """The result of deleting a project."""

    deleted: bool
    """True: the project was deleted."""
    project_id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""
    deleted_websites: Annotated[int, Field(alias="deletedWebsites")]
    """The number of websites deleted with the project."""
    deleted_audits: Annotated[int, Field(alias="deletedAudits")]
    """The number of audits deleted with the websites."""


class DeletedWebhookEndpoint(Model):
    """The result of deleting an endpoint."""

    deleted: bool
    """True: nothing is sent to it anymore."""


class DeletedWebsite(Model):
    """The result of deleting a website."""

    website_id: Annotated[str, Field(alias="websiteId")]
    """The website's ID."""
    deleted_audits: Annotated[int, Field(alias="deletedAudits")]
    """The number of audits deleted with the website."""


class DeliveryAttempt(Model):
    """One attempt at a delivery."""

    at: datetime
    """The time of the attempt."""
    response_status: Annotated[int | None, Field(alias="responseStatus")]
    """The status of the response, if there was one."""
    error: str | None
    """Why it failed: `status` (not 2xx), `redirect`, `timeout`, `connection`, `tls`, `dns`, `address` (not public),
    `secret` (unreadable; rotate it), or, without an attempt, `disabled` or `expired`. Null if it succeeded.
    """
    duration_ms: Annotated[int, Field(alias="durationMs")]
    """How long it took, in milliseconds."""


class DeviceCode(Model):
    """The codes of a device authorization."""

    device_code: Annotated[str, Field(alias="deviceCode", repr=False)]
    """The code that the device redeems, once."""
    user_code: Annotated[str, Field(alias="userCode")]
    """The code that the user enters or compares."""
    verification_uri: Annotated[str, Field(alias="verificationUri")]
    """The page on which the user approves or denies the device."""
    verification_uri_complete: Annotated[str, Field(alias="verificationUriComplete")]
    """The same page with the code filled in."""
    expires_in: Annotated[int, Field(alias="expiresIn")]
    """Seconds until both codes expire."""
    interval: int
    """Seconds to wait between polls."""


class DisconnectedRepository(Model):
    """The result of disconnecting a repository."""

    deleted: bool
    """True: the repository was disconnected."""
    repository_id: Annotated[str, Field(alias="repositoryId")]
    """The repository's ID."""


class Evidence(Model):
    """A piece of evidence for a finding."""

    description: str
    """A description of the evidence."""
    url: str | None
    """A link to the evidence. For code, the permalink of the lines."""
    location: CodeLocation | None
    """The location in the repository, for code."""


class Endpoints(Model):
    """The endpoints."""

    feedback: str
    """Accepts reports."""


class RateLimits(Model):
    """How many new reports are accepted."""

    submissions_per_hour: int
    """New reports in the window."""
    window: str
    """The period in which reports are counted."""
    counted_by: str
    """Whose reports count together."""
    exceeded: str
    """The response to a report above the limit."""


class Auth(Model):
    """What a report must be authenticated with."""

    required: bool
    """Whether a report needs a credential."""
    schemes: list[str]
    """The authentication schemes."""
    scopes: list[str]
    """The scopes it must have."""
    authorization_server: str
    """The metadata of the authorization server."""


class FieldLimits(Model):
    """The limits of one field."""

    required: bool
    """Whether the field is required."""
    min_length: int
    """Minimum length, after trimming."""
    max_length: int
    """Maximum length, after trimming."""


class Deduplication(Model):
    """When two reports count as duplicates."""

    window: str
    """The period in which duplicates are recognized."""
    scope: str
    """What two duplicates have in common."""
    repeated: str
    """The response to a duplicate."""


class Guidance(Model):
    """How to write a report."""

    report: list[str]
    """What to report."""
    rules: list[str]
    """What makes a report useful."""
    never_include: list[str]
    """What a report must not contain."""
    documentation: str
    """Describes the API."""


class FeedbackDiscovery(Model):
    """The discovery document of the feedback.now protocol."""

    schema_version: str
    """The version of the protocol."""
    name: str
    """The name of the service."""
    description: str
    """What to report on."""
    endpoints: Endpoints
    """The endpoints."""
    categories: list[str]
    """The values of `category`."""
    surfaces: list[str]
    """The values of `surface`."""
    rate_limits: RateLimits
    """How many new reports are accepted."""
    auth: Auth
    """What a report must be authenticated with."""
    field_limits: dict[str, FieldLimits]
    """The limits of each text field of a report, by its name."""
    deduplication: Deduplication
    """When two reports count as duplicates."""
    guidance: Guidance
    """How to write a report."""


class FeedbackReceipt(Model):
    """The receipt for a report."""

    reference: str
    """The report's reference. Quote it in questions about the report."""
    already_submitted: Annotated[bool, Field(alias="alreadySubmitted")]
    """Whether the same report was already submitted on this UTC day."""


class FindingVendor(Model):
    """A vendor that code loads."""

    id: str
    """The vendor's ID in the catalog of the analysis."""
    name: str
    """The vendor's name."""
    domain: str
    """The vendor's main domain."""


class Fix(Model):
    """Code that fixes a finding in this project."""

    summary: str
    """What the code does."""
    language: str
    """The language of the code, as in a Markdown code block."""
    code: str
    """The code to paste. Its placeholders are in capital letters."""
    packages: list[str]
    """The npm packages that the code needs, with the version that it was written for."""


class GithubIssue(Model):
    """The GitHub issue that was opened for a finding, or linked to it."""

    number: int
    """The issue's number in the repository."""
    url: str
    """The issue's page on GitHub."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the issue was opened."""
    state: Literal["open", "closed"] | str
    """Whether the issue is open. A closed issue doesn't resolve the item: the next scan decides."""


class Health(Model):
    """The health of the service."""

    ok: bool
    """True: the service and its dependencies responded."""
    database: Database


class InboxItemChange(Model):
    """A change of one of the items."""

    status: Literal["open", "accepted", "dismissed", "resolved"] | str
    """The new status."""
    version: str
    """The `version` of the item as you read it."""
    reason: str | None = None
    """The reason for the change, shown with the item."""
    id: str
    """The item's ID."""


class InboxItemFailure(Model):
    """Why an item wasn't changed: the error that changing this item alone would return."""

    code: str
    """The error code, for programs."""
    message: str
    """A message for people that says what to do next."""
    details: dict[str, Any]
    """Details by code, `docsUrl`, where the error is documented, and `hint`, the next step."""


class InventoryLanguage(Model):
    """A language of the repository."""

    name: str
    """The language's name."""
    files: int
    """The number of its files."""
    bytes: int
    """The total size of its files."""


class InventoryPackage(Model):
    """A package of a vendor in a manifest of the repository."""

    name: str
    """The package's name."""
    version: str | None
    """The version as the manifest names it, which may be a range. Null if it names none."""
    path: str
    """The manifest, relative to the repository's root."""


class InventoryTechnology(Model):
    """A framework or a package manager that the repository uses."""

    id: str
    """The ID in the service's list."""
    name: str
    """The name."""
    version: str | None
    """The version as a manifest names it, which may be a range. Null if none does."""
    path: str
    """The file that shows it, relative to the repository's root. If there are several, the one nearest to the root."""


class InventoryVendor(Model):
    """A third party whose code the repository uses."""

    id: str
    """The vendor's ID in the service's catalog."""
    name: str
    """The vendor's name."""
    category: str
    """What the vendor's code is for."""
    packages: list[InventoryPackage]
    """Up to three of its packages that manifests name."""
    hosts: list[str]
    """Up to three hosts that the code loads it from. Empty unless `access` is `full`."""
    loading_files: Annotated[int | None, Field(alias="loadingFiles")]
    """The number of analyzed files that load it, whether or not they wait for consent. Null until the stage
    `analyze` is completed, unless `access` is `full`, and for kinds of vendors that the analysis doesn't look
    for, such as payment providers.
    """
    ungated_files: Annotated[int | None, Field(alias="ungatedFiles")]
    """The number of those files that load it without waiting for consent. Null whenever `loadingFiles` is null."""


class Inviter(Model):
    """The user who sent the invitation, as of the time it was sent."""

    id: str
    """The user's ID."""
    name: str
    """The user's name."""
    email: str
    """The user's email address."""


class KeyMeta(Model):
    """The origin of a key, for attribution only. It grants no permissions."""

    created_by: Annotated[str, Field(alias="createdBy")]
    """The user who created the key."""
    created_from: Annotated[str, Field(alias="createdFrom")]
    """Where the key was created: `api`, `dashboard`, or `operator`."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the key was created."""


class LimitsInForce(Model):
    """The limits of the caller when the request was refused, as far as the request got to know them."""

    requests_per_minute: Annotated[int, Field(alias="requestsPerMinute")]
    """The credential's limit."""
    requests: int
    """The credential's requests in that minute, with this one."""
    plan: str | None
    """The organization's plan, if it was read."""
    role: str | None
    """The caller's role, if it was read."""
    scopes: list[str] | None
    """The credential's scopes, if one was missing."""


class LinkedProject(Model):
    """A project that a repository is linked to."""

    project_id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""
    project_slug: Annotated[str, Field(alias="projectSlug")]
    """The name used in URLs."""
    project_name: Annotated[str, Field(alias="projectName")]
    """The display name."""
    production_branch: Annotated[str | None, Field(alias="productionBranch")]
    """The branch to scan. Null means the repository's default branch."""
    root_directory: Annotated[str | None, Field(alias="rootDirectory")]
    """The folder to scan. Null means the whole repository."""
    pull_request_scans_enabled: Annotated[bool, Field(alias="pullRequestScansEnabled")]
    """Whether pull requests are to be scanned."""
    scan_on_push: Annotated[bool, Field(alias="scanOnPush")]
    """Whether a push to the production branch starts a scan."""
    schedule: Literal["daily", "weekly"] | str | None
    """How often a scan starts by itself: `daily`, `weekly`, or null for never."""
    failure_threshold: Annotated[Literal["P0", "P1", "P2", "P3"] | str, Field(alias="failureThreshold")]
    """The lowest priority of a new finding that fails the check of a pull request."""
    next_scheduled_scan_at: Annotated[datetime | None, Field(alias="nextScheduledScanAt")]
    """The time the next scheduled scan starts, or null without a `schedule`. The minute depends on the link, so that
    scans are spread over the day or the week.
    """


class ListedConsent(Model):
    """A consent instance in the older shape."""

    instance_id: Annotated[str, Field(alias="instanceId")]
    """The instance's ID."""
    instance_slug: Annotated[str, Field(alias="instanceSlug")]
    """The name used in URLs."""
    instance_name: Annotated[str, Field(alias="instanceName")]
    """The display name."""
    trusted_origins: Annotated[list[str], Field(alias="trustedOrigins")]
    """The consent entries alone. Consent loads on audited websites too."""
    branding: Literal["assent", "openassent", "none"] | str
    """The branding of the banner. While the plan doesn't include `removeBranding`, `assent` replaces `none`."""
    backend_url: Annotated[str | None, Field(alias="backendURL")]
    """The URL at which the consent runtime serves the instance."""
    dashboard_url: Annotated[str, Field(alias="dashboardURL")]
    """The page in the dashboard."""
    backend_version: Annotated[str, Field(alias="backendVersion")]
    """The version of the consent runtime."""


class Location(Model):
    """The location of a finding in the repository."""

    path: str
    """The path of the file, relative to the repository's root."""
    start_line: Annotated[int, Field(alias="startLine")]
    """The first line, starting at 1."""
    end_line: Annotated[int, Field(alias="endLine")]
    """The last line."""
    start_column: Annotated[int, Field(alias="startColumn")]
    """The first column, starting at 1."""
    end_column: Annotated[int, Field(alias="endColumn")]
    """The column after the last character."""
    snippet: str
    """The code at this location."""
    permalink: str
    """A link to the lines at the scanned commit."""


class LockedFindings(Model):
    """The new findings of a repository that are locked. Unlock the scan's report to see them."""

    scan_id: Annotated[str, Field(alias="scanId")]
    """The ID of the scan to unlock."""
    new_count: Annotated[int, Field(alias="newCount")]
    """The number of new findings that are locked."""
    unlock_credits: Annotated[int, Field(alias="unlockCredits")]
    """The price of unlocking them, in credits."""


class LogActor(Model):
    """The actor that made a change."""

    type: Literal["person", "api_key", "operator", "service"] | str
    """A person, an API key, the operator, or the service itself."""
    id: str
    """The ID of the person or the API key, `operator`, or the name of a part of the service."""


class LogChange(Model):
    """A field with its values before and after a change. Long texts and lists are cut, and end with `…`."""

    field: str
    """The field's name."""
    before: Any
    """The value before, or null."""
    after: Any
    """The value after, or null."""


class LogResource(Model):
    """The resource that was changed."""

    id: str
    """The resource's ID."""
    name: str | None
    """The resource's name at that time, or null."""


class MemberUser(Model):
    """The user that a membership belongs to."""

    id: str
    """The user's ID."""
    name: str
    """The user's name."""
    email: str
    """The user's email address."""
    image: str | None
    """The URL of the user's picture, or null."""


class Organization(Model):
    """An organization, with the role of the calling credential."""

    id: str
    """The organization's ID."""
    slug: str
    """The name used in URLs."""
    name: str
    """The display name."""
    role: Literal["owner", "admin", "member"] | str
    """The role of the calling credential."""


class OrganizationListItem(Model):
    """An organization in a list."""

    id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    slug: Annotated[str, Field(alias="organizationSlug")]
    """The name used in URLs."""
    name: Annotated[str, Field(alias="organizationName")]
    """The display name."""
    role: Literal["owner", "admin", "member"] | str
    """The role of the calling credential."""


class OverLimit(Model):
    """A limit of the plan that the organization exceeds, after a change to a smaller plan."""

    limit: Literal["apiKeys", "projects"] | str
    """The name of the limit."""
    current: int
    """The number that the organization has."""
    maximum: int
    """The number that the plan allows: no API keys on a plan without API access."""


class PlanFeatures(Model):
    """The features of the plan."""

    api_access: Annotated[bool, Field(alias="apiAccess")]
    """Whether API keys can be created and used."""
    remove_branding: Annotated[bool, Field(alias="removeBranding")]
    """Whether a project can use the branding `none`."""


class PlanLimits(Model):
    """The limits of the plan."""

    requests_per_minute: Annotated[int, Field(alias="requestsPerMinute")]
    """The rate limit of a key created now. 0 on a plan without API access."""
    api_keys: Annotated[int, Field(alias="apiKeys")]
    """The maximum number of API keys."""
    projects: int
    """The maximum number of projects."""


class PlanUsage(Model):
    """The number of things that the organization has and the plan limits."""

    api_keys: Annotated[int, Field(alias="apiKeys")]
    """The number of API keys."""
    projects: int
    """The number of projects."""


class PreviousSecret(Model):
    """The secret of the key that was rolled, in its grace period."""

    key_id: Annotated[str, Field(alias="keyId")]
    """The ID of the key that was rolled."""
    start: str
    """The first characters of the secret, for identification."""
    expires_at: Annotated[datetime, Field(alias="expiresAt")]
    """The end of the grace period, from which the secret is rejected."""
    last_used_at: Annotated[datetime | None, Field(alias="lastUsedAt")]
    """The last use of the old secret since the roll, accurate to the minute."""


class Problem(Model):
    """One problem with the request."""

    code: str
    """The kind of problem."""
    message: str
    """The problem in words."""
    path: list[str]
    """The path to the field; empty if the problem concerns the whole request."""
    known: list[str] | None = None
    """For an unknown query parameter: the parameters that the operation accepts."""
    docs_url: Annotated[str | None, Field(alias="docsUrl")] = None
    """Where the error is documented. In a list of problems, only the first one has it."""
    hint: str | None = None
    """What to do next, by code. In a list of problems, only the first one has it."""


class Products(Model):
    """The products that a project uses, in the older shape."""

    consent: ListedConsent | None
    """The consent instance."""


class Progress(Model):
    """The progress of a scan."""

    stage: Literal["fetch", "inventory", "analyze", "publish"] | str
    """The current stage. Stages run in the order listed: `fetch` downloads the commit, `inventory` lists what the
    repository is made of, `analyze` searches for findings, and `publish` stores them.
    """
    stage_status: Annotated[
        Literal["pending", "running", "completed", "failed"] | str | None,
        Field(alias="stageStatus"),
    ]
    """The status of the stage."""
    completed_stages: Annotated[int | None, Field(alias="completedStages")]
    """The number of stages that have been completed. If the scan is interrupted, its stages run again; this number
    doesn't decrease.
    """
    total_stages: Annotated[int | None, Field(alias="totalStages")]
    """The total number of stages."""
    analyzed_files: Annotated[int | None, Field(alias="analyzedFiles")]
    """While the stage `analyze` runs for more than a few seconds: the number of files that it is done with.
    Otherwise null.
    """
    files_to_analyze: Annotated[int | None, Field(alias="filesToAnalyze")]
    """The total for `analyzedFiles`. Null whenever that is null."""


class ReachableOrganization(Model):
    """An organization, under the field names of both API generations: `id` and `organizationId`, and so on."""

    id: str
    """The organization's ID."""
    slug: str
    """The name used in URLs."""
    name: str
    """The display name."""
    role: Literal["owner", "admin", "member"] | str
    """The role of the calling credential."""


class Reason(Model):
    """The reason for a failure."""

    code: str
    """The error code, for use in programs."""
    message: str
    """The explanation, for people."""


class RefusedProblem(Model):
    """One problem of an invalid request."""

    code: str
    """The kind of problem."""
    field: str | None
    """The field or parameter, or null if the operation declares none of that name."""


class Region(Model):
    """A region in which consent instances run."""

    id: str
    """The `region` to send when creating a project."""
    label: str
    """The display name."""


class Repository(Model):
    """A source code repository that is connected to the organization."""

    id: str
    """The repository's ID."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    owner: str
    """The account that owns the repository on the code host."""
    name: str
    """The repository's name on the code host."""
    html_url: Annotated[str, Field(alias="htmlUrl")]
    """The repository's page on the code host."""
    default_branch: Annotated[str | None, Field(alias="defaultBranch")]
    """The default branch on the code host."""
    visibility: str
    """The visibility on the code host: `public`, `private`, or `internal`."""
    connected_at: Annotated[datetime | None, Field(alias="connectedAt")]
    """The time the repository was connected."""
    access_lost_at: Annotated[datetime | None, Field(alias="accessLostAt")]
    """The time since which the GitHub App can no longer read the repository, or null if it can."""
    projects: list[LinkedProject]
    """The projects that the repository is linked to."""


class RequestChange(Model):
    """A change that the request made."""

    id: str
    """The entry in the audit log."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time of the change."""
    action: str
    """What was done."""
    resource_id: Annotated[str, Field(alias="resourceId")]
    """What was changed."""


class ResolvedBy(Model):
    """The scan that resolved an item."""

    scan_id: Annotated[str, Field(alias="scanId")]
    """The scan's ID."""


class Revocation(Model):
    """The result of a revocation."""

    revoked: bool
    """True: the token doesn't work. Also true for an unknown token."""


class RevokedSession(Model):
    """The result of revoking a session."""

    deleted: bool
    """True: its tokens no longer work."""


class RolledKey(Model):
    """A new API key that replaces another."""

    key_id: Annotated[str, Field(alias="keyId")]
    """The key's ID."""
    name: str
    """The key's display name."""
    start: str
    """The first characters of the secret, for identification."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the key was created."""
    rate_limit: Annotated[int, Field(alias="rateLimit")]
    """Requests per minute, set by the plan at creation."""
    meta: KeyMeta
    description: str | None
    """What the key is for."""
    scopes: list[str]
    """The key's scopes, sorted."""
    project_ids: Annotated[list[str] | None, Field(alias="projectIds")]
    """The projects that the key is limited to. Null: all."""
    allowed_ips: Annotated[list[str] | None, Field(alias="allowedIps")]
    """The networks (CIDR) that the key accepts requests from. Null: all."""
    expires_at: Annotated[datetime | None, Field(alias="expiresAt")]
    """The time from which the key is rejected. Null: it doesn't expire."""
    key: Annotated[str, Field(repr=False)]
    """The secret. Send it as the bearer token. Save it now: it isn't stored and can't be shown again."""
    replaced_key_id: Annotated[str, Field(alias="replacedKeyId")]
    """The ID of the replaced key. Its secret works only in the grace period, if there is one."""
    previous: PreviousSecret | None
    """The secret of the replaced key, if it still works. Null: it was revoked."""


class RuntimeVendor(Model):
    """The vendor of a runtime finding. `projectId` and `vendorId` are the path parameters of the decision."""

    project_id: Annotated[str, Field(alias="projectId")]
    """The project on which the vendor was seen."""
    vendor_id: Annotated[str, Field(alias="vendorId")]
    """The vendor's ID."""
    name: str
    """The vendor's name."""
    domain: str
    """The domain that the vendor was loaded from."""


class ScanInventory(Model):
    """The contents of a scanned repository: its languages, frameworks, package managers, and vendors."""

    files: int
    """The number of files in the scanned folder."""
    languages: list[InventoryLanguage]
    """The programming and template languages, those with the most files first. Counts all files except vendored and
    generated ones, also those in languages that aren't analyzed.
    """
    frameworks: list[InventoryTechnology]
    """The frameworks, by name."""
    package_managers: Annotated[list[InventoryTechnology], Field(alias="packageManagers")]
    """The package managers, by name."""
    vendors: list[InventoryVendor]
    """The third parties that manifests name, in the order of their names. If the scan's `access` is `full`, also
    those that only the code loads, because they can reveal findings.
    """
    truncated: bool
    """Whether the repository has more manifests or vendors than an inventory lists."""


class ScanNotStarted(Model):
    """A scan request that failed because the branch couldn't be read. There will be no scan."""

    status: Literal["failed"]
    """Identifies the variant of this response."""
    preparation_id: Annotated[str, Field(alias="preparationId")]
    """The scan request's ID."""
    repository_id: Annotated[str, Field(alias="repositoryId")]
    """The repository's ID."""
    error: Reason


class ScanStarting(Model):
    """A scan request whose scan doesn't exist yet. Poll it."""

    status: Literal["starting"]
    """Identifies the variant of this response."""
    preparation_id: Annotated[str, Field(alias="preparationId")]
    """The ID for `GET /v1/code-audit/scan-requests/{preparationId}`."""
    repository_id: Annotated[str, Field(alias="repositoryId")]
    """The repository's ID."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the scan was requested."""
    retry_after_seconds: Annotated[int, Field(alias="retryAfterSeconds")]
    """Seconds to wait before polling again."""


class Session(Model):
    """A session, device, or token that can act as the user."""

    id: str
    """The session's ID. It isn't a secret."""
    kind: Literal["session", "device", "token"] | str
    """`session`: a sign-in to the dashboard. `device`: approved by user code. `token`: created by the operator."""
    client: str
    """The OAuth client of a device, `dashboard` for a session, or `assent-ops` for an operator's token."""
    device_name: Annotated[str | None, Field(alias="deviceName")]
    """The name that the device reported."""
    ip_address: Annotated[str | None, Field(alias="ipAddress")]
    """The IP address of the sign-in or of the device's request. Null if unknown."""
    created_at: Annotated[datetime | None, Field(alias="createdAt")]
    """The time it was approved or created. Null if it predates this list."""
    last_used_at: Annotated[datetime | None, Field(alias="lastUsedAt")]
    """The last use, accurate to the hour. Null if unknown."""
    expires_at: Annotated[datetime, Field(alias="expiresAt")]
    """The time it expires. For a device, each refresh extends this."""
    current: bool
    """Whether this session made the request."""
    scopes: list[str]
    """The scopes, sorted."""


class Token(Model):
    """An access token and the refresh token for the next one."""

    access_token: Annotated[str, Field(alias="accessToken", repr=False)]
    """Send it as the bearer token."""
    token_type: Annotated[str, Field(alias="tokenType")]
    """The type of the access token."""
    expires_in: Annotated[int, Field(alias="expiresIn")]
    """Seconds until the access token expires."""
    refresh_token: Annotated[str, Field(alias="refreshToken", repr=False)]
    """The token for the next refresh. Works once, within 30 days."""
    scope: str
    """The scopes of the access token. The user may have approved fewer than requested."""


class TopUp(Model):
    """The settings of the automatic top-up, which only the operator can change."""

    enabled: bool
    """Whether credits are added automatically."""
    threshold: int | None
    """Credits are added when unlocking a scan would leave fewer than this."""
    amount: int | None
    """The number of credits that a top-up adds."""
    monthly_limit: Annotated[int | None, Field(alias="monthlyLimit")]
    """The maximum number of top-ups in a calendar month (UTC)."""
    used_this_month: Annotated[int, Field(alias="usedThisMonth")]
    """The number of top-ups in this month so far."""


class Unlocked(Model):
    """The result of unlocking a scan."""

    status: Literal["unlocked", "already-unlocked"] | str
    """`already-unlocked` if the scan, or another one of the same report, was unlocked before; nothing was charged."""


class UpdatedMember(Model):
    """The result of a role change."""

    updated: bool
    """False if the member already had the role."""


class VendorDecision(Model):
    """The result of a decision about a vendor."""

    inbox_item_id: Annotated[str | None, Field(alias="inboxItemId")]
    """The runtime finding that the decision resolved, or null if there is no such finding."""
    project_id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""
    review_state: Annotated[
        Literal["accepted", "suggested", "rejected", "needs_review"] | str,
        Field(alias="reviewState"),
    ]
    """The decision in the terms of the vendor review."""
    state: Literal["approved", "ignored"] | str
    """The state of the vendor."""
    vendor_id: Annotated[str, Field(alias="vendorId")]
    """The vendor's ID."""


class VendorEvidence(Model):
    """A summary of the evidence for a vendor. The vendor's inbox item has all of it."""

    count: int
    """The number of pieces of evidence. Only the newest 20 are kept."""
    pages: list[str]
    """The pages on which the vendor was seen, newest first. At most five."""
    before_consent: Annotated[bool, Field(alias="beforeConsent")]
    """Whether the latest detection saw the vendor load before consent."""


class WebhookDelivery(Model):
    """The delivery of an event to an endpoint. It is kept for 30 days."""

    event_id: Annotated[str, Field(alias="eventId")]
    """The event's ID, which deliveries have in the header `webhook-id`."""
    event: str
    """The name of the event."""
    status: Literal["pending", "succeeded", "failed"] | str
    """`pending` until an attempt succeeds, or all attempts of a day have failed."""
    attempts: int
    """The number of attempts that were made."""
    next_attempt_at: Annotated[datetime | None, Field(alias="nextAttemptAt")]
    """When the next attempt is due, give or take a minute."""
    latest: list[DeliveryAttempt]
    """The latest attempts, oldest first."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the delivery was created."""


class WebhookEndpoint(Model):
    """An endpoint that an organization's webhooks are sent to, without its secret."""

    id: str
    """The endpoint's ID."""
    name: str
    """The endpoint's display name."""
    url: str
    """Where events are sent."""
    events: list[
        Literal[
            "finding.opened",
            "finding.resolved",
            "scan.completed",
            "key.created",
            "key.leaked",
            "member.joined",
            "credits.low",
        ]
        | str
    ]
    """The events that are sent to the endpoint."""
    format: Literal["standard", "slack"] | str
    """What is sent: `standard` is the event as JSON, `slack` a text for Slack's incoming webhooks."""
    status: Literal["enabled", "disabled"] | str
    """Whether events are sent to the endpoint."""
    disabled_reason: Annotated[Literal["person", "failing"] | str | None, Field(alias="disabledReason")]
    """Why it is disabled: a `person` did it, or it was `failing` for a day."""
    disabled_at: Annotated[datetime | None, Field(alias="disabledAt")]
    """When it was disabled."""
    failing_since: Annotated[datetime | None, Field(alias="failingSince")]
    """When the first delivery failed since the last one that succeeded. After a day, it is disabled."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the endpoint was created."""


class WebhookEndpointWithSecret(Model):
    """An endpoint with its new secret, which no other response includes."""

    id: str
    """The endpoint's ID."""
    name: str
    """The endpoint's display name."""
    url: str
    """Where events are sent."""
    events: list[
        Literal[
            "finding.opened",
            "finding.resolved",
            "scan.completed",
            "key.created",
            "key.leaked",
            "member.joined",
            "credits.low",
        ]
        | str
    ]
    """The events that are sent to the endpoint."""
    format: Literal["standard", "slack"] | str
    """What is sent: `standard` is the event as JSON, `slack` a text for Slack's incoming webhooks."""
    status: Literal["enabled", "disabled"] | str
    """Whether events are sent to the endpoint."""
    disabled_reason: Annotated[Literal["person", "failing"] | str | None, Field(alias="disabledReason")]
    """Why it is disabled: a `person` did it, or it was `failing` for a day."""
    disabled_at: Annotated[datetime | None, Field(alias="disabledAt")]
    """When it was disabled."""
    failing_since: Annotated[datetime | None, Field(alias="failingSince")]
    """When the first delivery failed since the last one that succeeded. After a day, it is disabled."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the endpoint was created."""
    secret: Annotated[str, Field(repr=False)]
    """The secret that deliveries are signed with. Save it now: it can't be shown again."""


class Website(Model):
    """An address that a project runs on."""

    id: str
    """The website's ID."""
    origin: str
    """The address in normalized form."""
    kind: Literal["domain", "wildcard", "any", "app", "development"] | str
    """The kind of address. Only `domain` websites can be audited."""
    primary: bool
    """Whether this is the first domain, shown as the project's site."""
    audited: bool
    """Whether an audit uses this website. Deleting the website deletes the audit."""


class ApiKey(Model):
    """An API key, without its secret."""

    key_id: Annotated[str, Field(alias="keyId")]
    """The key's ID."""
    name: str
    """The key's display name."""
    start: str
    """The first characters of the secret, for identification."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the key was created."""
    rate_limit: Annotated[int, Field(alias="rateLimit")]
    """Requests per minute, set by the plan at creation."""
    meta: KeyMeta
    description: str | None
    """What the key is for."""
    scopes: list[str]
    """The key's scopes, sorted."""
    project_ids: Annotated[list[str] | None, Field(alias="projectIds")]
    """The projects that the key is limited to. Null: all."""
    allowed_ips: Annotated[list[str] | None, Field(alias="allowedIps")]
    """The networks (CIDR) that the key accepts requests from. Null: all."""
    expires_at: Annotated[datetime | None, Field(alias="expiresAt")]
    """The time from which the key is rejected. Null: it doesn't expire."""
    last_used_at: Annotated[datetime | None, Field(alias="lastUsedAt")]
    """The last use, accurate to the hour. Null if the key was never used."""
    previous: PreviousSecret | None
    """The secret of the key that was rolled, while it still works. Null: the key has no other."""


class AuditLogEntry(Model):
    """A change in an organization."""

    id: str
    """The entry's ID."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time of the change."""
    action: str
    """What was done."""
    actor: LogActor
    source: Literal["page", "api", "operator", "worker"] | str
    """Where it was done: on a web page, with the API, by the operator, or in the background."""
    resource: LogResource
    request_id: Annotated[str | None, Field(alias="requestId")]
    """The `X-Request-Id` of the request, or null if no request made the change."""
    changes: list[LogChange]
    """What changed. Empty if the action has no values."""


class Billing(Model):
    """The plan, credits, and limits of an organization."""

    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    plan: BillingPlan
    credits: Credits
    top_up: Annotated[TopUp, Field(alias="topUp")]
    limits: PlanLimits
    features: PlanFeatures
    usage: PlanUsage
    over_limit: Annotated[list[OverLimit], Field(alias="overLimit")]
    """The exceeded limits. What exceeds a limit stays readable and can be deleted, but no more can be created, and
    API keys are rejected until an upgrade.
    """


class CallingCredential(Model):
    """The credential that authenticated the request."""

    principal: CallingPrincipal
    active_organization_id: Annotated[str | None, Field(alias="activeOrganizationId")]
    """The organization used if a request doesn't name one."""
    scopes: list[str]
    """The credential's scopes, sorted."""
    organizations: list[ReachableOrganization]
    """The organizations that the credential can access. Empty without the scope organizations.read."""


class Coverage(Model):
    """The files that a scan covered."""

    files: int
    """The number of files in the scanned folder, or in the part of it that was read: see `incomplete`."""
    analyzed_files: Annotated[int, Field(alias="analyzedFiles")]
    """The number of files that were analyzed."""
    skipped: dict[str, int]
    """The number of skipped files by reason."""
    kinds: list[CoveredKind]
    """The kinds of files that can load something in a browser or an app, those with the most files first. A scan
    without findings says nothing about files that weren't assessed.
    """
    incomplete: str | None
    """What the scan left out because the repository is larger than a scan reads, for people. Null if it left out
    nothing. Findings in files that weren't analyzed stay as they are.
    """


class CreatedKey(Model):
    """A new API key with its secret, which no other response includes."""

    key_id: Annotated[str, Field(alias="keyId")]
    """The key's ID."""
    name: str
    """The key's display name."""
    start: str
    """The first characters of the secret, for identification."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the key was created."""
    rate_limit: Annotated[int, Field(alias="rateLimit")]
    """Requests per minute, set by the plan at creation."""
    meta: KeyMeta
    description: str | None
    """What the key is for."""
    scopes: list[str]
    """The key's scopes, sorted."""
    project_ids: Annotated[list[str] | None, Field(alias="projectIds")]
    """The projects that the key is limited to. Null: all."""
    allowed_ips: Annotated[list[str] | None, Field(alias="allowedIps")]
    """The networks (CIDR) that the key accepts requests from. Null: all."""
    expires_at: Annotated[datetime | None, Field(alias="expiresAt")]
    """The time from which the key is rejected. Null: it doesn't expire."""
    key: Annotated[str, Field(repr=False)]
    """The secret. Send it as the bearer token. Save it now: it isn't stored and can't be shown again."""


class CreatedProject(Model):
    """A newly created project."""

    id: str
    """The project's ID."""
    slug: str
    """The name used in URLs, derived from the display name."""
    name: str
    """The display name."""
    description: str | None
    """The project's description."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    organization_slug: Annotated[str, Field(alias="organizationSlug")]
    """The organization's name used in URLs."""
    dashboard_url: Annotated[str, Field(alias="dashboardUrl")]
    """The page in the dashboard."""
    websites: list[Website]
    """The addresses the project runs on, in order. The consent runtime allows these origins."""
    consent: Consent | None
    """The consent instance."""


class InboxItem(Model):
    """A finding in lists and after changes."""

    id: str
    """The item's ID."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    title: str
    """A short description of the finding."""
    summary: str | None
    """A longer description, in one or two sentences."""
    priority: Literal["P0", "P1", "P2", "P3"] | str | None
    """The priority. P0 is the most urgent."""
    status: Literal["open", "accepted", "dismissed", "resolved"] | str
    """The status of the finding."""
    source: Literal["advisory", "code-audit", "runtime"] | str
    """The source of the finding."""
    project_id: Annotated[str | None, Field(alias="projectId")]
    """The project that the finding concerns."""
    repository_name: Annotated[str | None, Field(alias="repositoryName")]
    """The repository of a code finding."""
    github_issue: Annotated[GithubIssue | None, Field(alias="githubIssue")]
    """The issue that was opened for the finding, or linked to it."""
    runtime_vendor: Annotated[RuntimeVendor | None, Field(alias="runtimeVendor")]
    """The vendor to decide about, for a runtime finding."""
    updated_at: Annotated[datetime, Field(alias="updatedAt")]
    """The time of the last change."""
    version: str
    """The item's version. Required to change the status."""


class InboxItemDetail(Model):
    """A finding with its details and evidence."""

    id: str
    """The item's ID."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    title: str
    """A short description of the finding."""
    summary: str | None
    """A longer description, in one or two sentences."""
    priority: Literal["P0", "P1", "P2", "P3"] | str | None
    """The priority. P0 is the most urgent."""
    status: Literal["open", "accepted", "dismissed", "resolved"] | str
    """The status of the finding."""
    source: Literal["advisory", "code-audit", "runtime"] | str
    """The source of the finding."""
    project_id: Annotated[str | None, Field(alias="projectId")]
    """The project that the finding concerns."""
    repository_name: Annotated[str | None, Field(alias="repositoryName")]
    """The repository of a code finding."""
    github_issue: Annotated[GithubIssue | None, Field(alias="githubIssue")]
    """The issue that was opened for the finding, or linked to it."""
    runtime_vendor: Annotated[RuntimeVendor | None, Field(alias="runtimeVendor")]
    """The vendor to decide about, for a runtime finding."""
    updated_at: Annotated[datetime, Field(alias="updatedAt")]
    """The time of the last change."""
    version: str
    """The item's version. Required to change the status."""
    description: str | None
    """The meaning of the finding and why it matters."""
    confidence: Literal["high", "medium", "low"] | str | None
    """How sure the analysis is of a code finding. `low` means that it can't tell whether the code runs without
    consent: the description says what is unknown. Null for other sources, and for items that no scan has found
    since this attribute exists.
    """
    fix: Fix | None
    """Code that fixes a code finding, or null if none fits every such finding."""
    remediation: str | None
    """How to fix the finding."""
    references: list[str]
    """Links to further reading."""
    evidence: list[Evidence]
    """The evidence for the finding."""
    status_reason: Annotated[str | None, Field(alias="statusReason")]
    """The reason for the last change of status."""
    resolved_by: Annotated[ResolvedBy | None, Field(alias="resolvedBy")]
    """The scan that resolved the item, if a scan did."""
    decisions: list[AppliedDecision]
    """The decisions on the vendors of a code finding. Empty unless all of them are decided on, in which case the
    finding isn't raised as open.
    """
    locked_findings: Annotated[LockedFindings | None, Field(alias="lockedFindings")]
    """Set for the item that announces a repository's locked findings, and null for every finding."""


class InboxItemResult(Model):
    """The result for one item: the item, or the error."""

    id: str
    """The item's ID."""
    status_code: Annotated[int, Field(alias="statusCode")]
    """The status that changing this item alone would return: 200, 404, or 409."""
    item: InboxItem | None
    """The item after the change, or null if it failed."""
    error: InboxItemFailure | None
    """The error, or null if the item has the status."""


class InboxItemResults(Model):
    """The results of changing several items."""

    results: list[InboxItemResult]
    """A result for each item, in the order of the request."""


class Invitation(Model):
    """A pending invitation."""

    id: str
    """The invitation's ID."""
    email: str
    """The invited email address."""
    role: Literal["owner", "admin", "member"] | str
    """The role granted on acceptance."""
    status: str
    """Always `pending`: other invitations aren't returned."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the invitation was created."""
    expires_at: Annotated[datetime, Field(alias="expiresAt")]
    """The time the invitation expires, seven days after it was created or sent again."""
    invited_by: Annotated[Inviter, Field(alias="invitedBy")]


class Issue(Model):
    """A finding of a scan."""

    id: str
    """The finding's ID, unique to its scan."""
    scan_id: Annotated[str, Field(alias="scanId")]
    """The scan's ID."""
    fingerprint: str
    """Identifies the finding across scans of the repository, even if its lines move, its file is renamed, or an
    option of its code changes.
    """
    rule_id: Annotated[str, Field(alias="ruleId")]
    """The rule that reported the finding."""
    title: str
    """A short description of the finding."""
    description: str
    """The meaning of the finding and why it matters."""
    category: Literal["trackers", "cookies", "secrets", "banner", "personal-data", "outdated"] | str
    """The kind of finding."""
    severity: Literal["critical", "high", "medium", "low"] | str
    """The severity that the rule assigns."""
    priority: Literal["P0", "P1", "P2", "P3"] | str
    """The priority. Follows from severity and confidence: P0 is the most urgent."""
    confidence: Literal["high", "medium", "low"] | str
    """How sure the analysis is that the code runs, and that it runs without consent. `low` means that it can't tell:
    the description says what is unknown.
    """
    status: Literal["open", "accepted", "dismissed", "resolved"] | str
    """The status in the inbox."""
    inbox_item_id: Annotated[str | None, Field(alias="inboxItemId")]
    """The ID of the finding's inbox item, or null if it has none."""
    location: Location
    remediation: str
    """How to fix the finding."""
    fix: Fix | None
    """Code that fixes the finding, or null if none fits every such finding."""
    references: list[str]
    """Links to further reading."""
    first_seen_at: Annotated[datetime, Field(alias="firstSeenAt")]
    """The time a scan of the repository first found it."""
    vendor: FindingVendor | None
    """The vendor that the finding is about, if it is a single one."""
    decisions: list[AppliedDecision]
    """The decisions on the finding's vendors, if all are decided on. It isn't raised as open then."""


class ListedProject(Model):
    """A project in lists, and after a change."""

    id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""
    slug: Annotated[str, Field(alias="projectSlug")]
    """The name used in URLs. Regenerated when the name changes."""
    name: Annotated[str, Field(alias="projectName")]
    """The display name."""
    description: str | None
    """The project's description."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    organization_slug: Annotated[str, Field(alias="organizationSlug")]
    """The organization's name used in URLs."""
    dashboard_url: Annotated[str, Field(alias="dashboardURL")]
    """The page in the dashboard."""
    products: Products


class Member(Model):
    """A user's membership in an organization."""

    id: str
    """The membership's ID."""
    role: Literal["owner", "admin", "member"] | str
    """The member's role."""
    joined_at: Annotated[datetime, Field(alias="joinedAt")]
    """The time the member joined."""
    user: MemberUser


class Project(Model):
    """A project."""

    id: str
    """The project's ID."""
    slug: str
    """The name used in URLs, derived from the display name."""
    name: str
    """The display name."""
    description: str | None
    """The project's description."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    organization_slug: Annotated[str, Field(alias="organizationSlug")]
    """The organization's name used in URLs."""
    dashboard_url: Annotated[str, Field(alias="dashboardUrl")]
    """The page in the dashboard."""
    websites: list[Website]
    """The addresses the project runs on, in order. The consent runtime allows these origins."""
    consent: Consent | None
    """The consent instance."""
    products: Products
    region: str
    """The region in which the consent instance runs."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the project was created."""


class ProjectVendor(Model):
    """A vendor that was detected on a project or decided on. Until it is detected, it has only its decision."""

    vendor_id: Annotated[str, Field(alias="vendorId")]
    """The vendor's ID."""
    project_id: Annotated[str, Field(alias="projectId")]
    """The project's ID."""
    name: str | None
    """The vendor's name."""
    domain: str | None
    """The domain that the vendor was loaded from."""
    category: str | None
    """The vendor's purpose, if it is known."""
    state: Literal["approved", "ignored"] | str | None
    """The decision. Null until there is one."""
    review_state: Annotated[
        Literal["accepted", "suggested", "rejected", "needs_review"] | str,
        Field(alias="reviewState"),
    ]
    """The state of the vendor's review."""
    decided_at: Annotated[datetime | None, Field(alias="decidedAt")]
    """The time of the decision."""
    decided_by: Annotated[str | None, Field(alias="decidedBy")]
    """The ID of the user who decided."""
    inbox_item_id: Annotated[str | None, Field(alias="inboxItemId")]
    """The vendor's runtime finding. A resolved finding is deleted after a while."""
    evidence: VendorEvidence
    first_seen_at: Annotated[datetime | None, Field(alias="firstSeenAt")]
    """The time of the earliest detection."""
    last_seen_at: Annotated[datetime | None, Field(alias="lastSeenAt")]
    """The time of the latest detection."""


class Refusal(Model):
    """Why a request was refused."""

    status: int
    """The HTTP status of the response."""
    code: str
    """The error code of the response."""
    rule: str
    """The rule that refused it. Finer than `code`, and it may change."""
    operation: str
    """The method and the path of the operation."""
    docs_url: Annotated[str, Field(alias="docsUrl")]
    """Where the code is documented."""
    key_id: Annotated[str | None, Field(alias="keyId")]
    """The API key that sent the request, or null for a person."""
    problems: list[RefusedProblem]
    """The problems of an invalid request, at most ten."""
    details: dict[str, str | int | None]
    """The details of the response that are numbers, IDs, or names."""
    limits: LimitsInForce


class Scan(Model):
    """An analysis of a repository at a commit."""

    id: str
    """The scan's ID."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    repository_id: Annotated[str, Field(alias="repositoryId")]
    """The repository's ID."""
    repository_name: Annotated[str, Field(alias="repositoryName")]
    """The repository's name."""
    branch: str | None
    """The scanned branch."""
    head_commit_sha: Annotated[str | None, Field(alias="headCommitSha")]
    """The scanned commit."""
    pull_request_number: Annotated[int | None, Field(alias="pullRequestNumber")]
    """The scanned pull request, or null if the scan isn't of one."""
    scope: str
    """What was scanned: `repository` or `pull_request`. The scan of a pull request has only the findings that the
    pull request adds.
    """
    trigger: str
    """What triggered the scan: `manual`, `pull_request`, or `scheduled`, which is also a push to the production
    branch.
    """
    status: Literal["queued", "running", "completed", "failed", "canceled"] | str
    """The status of the scan."""
    access: Literal["full", "free-preview", "locked"] | str
    """Which findings are readable: all, the three most urgent, or none."""
    unlock_credits: Annotated[int | None, Field(alias="unlockCredits")]
    """The price of unlocking all findings, in credits: 0 if a completed scan hides none. Null if all are unlocked or
    have expired, and for a scan that failed or was canceled.
    """
    finding_count: Annotated[int | None, Field(alias="findingCount")]
    """The number of places in the code with findings. Null until the scan is completed."""
    issue_count: Annotated[int | None, Field(alias="issueCount")]
    """The number of distinct findings: the same code in several places of a file counts once. Null until the scan is
    completed.
    """
    progress: Progress | None
    """The progress of the scan."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the scan was created."""
    started_at: Annotated[datetime | None, Field(alias="startedAt")]
    """The time the first stage started."""
    completed_at: Annotated[datetime | None, Field(alias="completedAt")]
    """The time the scan ended, successfully or not."""
    failure: Reason | None
    """The reason the scan failed or was canceled, or null."""
    coverage: Coverage | None
    """The files that the scan covered. Null until the scan is completed."""
    findings_expire_at: Annotated[datetime | None, Field(alias="findingsExpireAt")]
    """The time the findings expire. Null until a later scan of the same project is completed."""


class ScanDetail(Model):
    """A scan, with the inventory of its repository."""

    id: str
    """The scan's ID."""
    organization_id: Annotated[str, Field(alias="organizationId")]
    """The organization's ID."""
    repository_id: Annotated[str, Field(alias="repositoryId")]
    """The repository's ID."""
    repository_name: Annotated[str, Field(alias="repositoryName")]
    """The repository's name."""
    branch: str | None
    """The scanned branch."""
    head_commit_sha: Annotated[str | None, Field(alias="headCommitSha")]
    """The scanned commit."""
    pull_request_number: Annotated[int | None, Field(alias="pullRequestNumber")]
    """The scanned pull request, or null if the scan isn't of one."""
    scope: str
    """What was scanned: `repository` or `pull_request`. The scan of a pull request has only the findings that the
    pull request adds.
    """
    trigger: str
    """What triggered the scan: `manual`, `pull_request`, or `scheduled`, which is also a push to the production
    branch.
    """
    status: Literal["queued", "running", "completed", "failed", "canceled"] | str
    """The status of the scan."""
    access: Literal["full", "free-preview", "locked"] | str
    """Which findings are readable: all, the three most urgent, or none."""
    unlock_credits: Annotated[int | None, Field(alias="unlockCredits")]
    """The price of unlocking all findings, in credits: 0 if a completed scan hides none. Null if all are unlocked or
    have expired, and for a scan that failed or was canceled.
    """
    finding_count: Annotated[int | None, Field(alias="findingCount")]
    """The number of places in the code with findings. Null until the scan is completed."""
    issue_count: Annotated[int | None, Field(alias="issueCount")]
    """The number of distinct findings: the same code in several places of a file counts once. Null until the scan is
    completed.
    """
    progress: Progress | None
    """The progress of the scan."""
    created_at: Annotated[datetime, Field(alias="createdAt")]
    """The time the scan was created."""
    started_at: Annotated[datetime | None, Field(alias="startedAt")]
    """The time the first stage started."""
    completed_at: Annotated[datetime | None, Field(alias="completedAt")]
    """The time the scan ended, successfully or not."""
    failure: Reason | None
    """The reason the scan failed or was canceled, or null."""
    coverage: Coverage | None
    """The files that the scan covered. Null until the scan is completed."""
    findings_expire_at: Annotated[datetime | None, Field(alias="findingsExpireAt")]
    """The time the findings expire. Null until a later scan of the same project is completed."""
    inventory: ScanInventory | None
    """What the repository is made of. Null until the stage `inventory` is completed."""


class ScanIssues(Model):
    """The findings of a scan."""

    issues: list[Issue]
    """The readable findings, most urgent first."""
    locked_count: Annotated[int, Field(alias="lockedCount")]
    """The number of locked findings."""
    unlock_credits: Annotated[int | None, Field(alias="unlockCredits")]
    """The price of unlocking them, in credits."""
    expired_count: Annotated[int, Field(alias="expiredCount")]
    """The number of expired findings. 0 until they expire."""
    findings_expire_at: Annotated[datetime | None, Field(alias="findingsExpireAt")]
    """The time the findings expire. Null until a later scan of the same project is completed."""


class ScanStarted(Model):
    """A scan request whose scan exists."""

    status: Literal["started"]
    """Identifies the variant of this response."""
    scan: Scan


class Comparison(Model):
    """The findings of a scan compared with those of a base."""

    base_scan_id: Annotated[str | None, Field(alias="baseScanId")]
    """The scan that it is compared with, or null if it is the first one of its branch."""
    new: list[Issue]
    """The readable findings that the base doesn't have, most urgent first."""
    fixed: list[Issue]
    """The readable findings that only the base has, most urgent first."""
    new_count: Annotated[int, Field(alias="newCount")]
    """The number of new findings."""
    fixed_count: Annotated[int, Field(alias="fixedCount")]
    """The number of fixed findings."""
    unchanged_count: Annotated[int, Field(alias="unchangedCount")]
    """The number of findings that both scans have."""


class DecidedRequest(Model):
    """The decision about a request."""

    request_id: Annotated[str, Field(alias="requestId")]
    """The request's `X-Request-Id`."""
    began_at: Annotated[datetime, Field(alias="beganAt")]
    """When the request began."""
    decision: Literal["refused", "changed"] | str
    """Whether the request was refused, or answered after it changed something."""
    refusal: Refusal | None
    """Why it was refused, or null."""
    changes: list[RequestChange]
    """What it changed in the organization."""


class ScanStart(RootModel[ScanStarted | ScanStarting | ScanNotStarted]):
    root: Annotated[ScanStarted | ScanStarting | ScanNotStarted, Field(discriminator="status")]
    """The state of a scan's start. `status` tells which."""
