"""Defines one request for every route of the project, and creates the items that it needs.

A route of the template without a request here is reported as not measured.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from benchmarks import entities
from benchmarks.world import World
from controlplane.code_host import repositories
from controlplane.notify import webhooks
from controlplane.organizations import store as organizations
from controlplane.people import credential_index, sessions, users
from controlplane.people import tokens as user_tokens
from controlplane.platform.core.ids import MemberId, RepositoryId
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.table.table import table
from tests.support.table import PREPARED

type Request = dict[str, Any]

# Routes without credentials. Their limits, if any, apply per client address.
PUBLIC = {
    "/health",
    "/openapi.json",
    "/llms.txt",
    "/docs",
    "/docs/{fileName}",
    "/.well-known/oauth-authorization-server",
    "/.well-known/agent-feedback.json",
    "/v1/regions",
    "/v1/auth/device/code",
    "/v1/auth/device/token",
    "/v1/auth/device/revoke",
    "/",
    "/signed-out",
    "/assets/{fileName}",
}
# Routes that require a web session.
PAGES = {
    "/account",
    "/account/export",
    "/account/delete",
    "/sign-out",
    "/device",
    "/device/approve",
    "/device/deny",
    "/invitations",
    "/invitations/accept",
    "/invitations/decline",
    "/sessions",
    "/sessions/revoke",
    "/sessions/revoke-others",
    "/invitations/block",
    "/invitations/blocked",
    "/invitations/unblock",
    "/organizations",
    "/organizations/new",
    "/organizations/{organizationSlug}",
    "/organizations/{organizationSlug}/settings",
    "/organizations/{organizationSlug}/inbox",
    "/organizations/{organizationSlug}/inbox/{itemId}",
    "/organizations/{organizationSlug}/inbox/{itemId}/issue",
    "/organizations/{organizationSlug}/inbox/{itemId}/vendor",
    "/organizations/{organizationSlug}/delete",
    "/organizations/{organizationSlug}/projects/{projectSlug}",
    "/organizations/{organizationSlug}/projects/{projectSlug}/consent",
    "/organizations/{organizationSlug}/projects",
    "/organizations/{organizationSlug}/projects/new",
    "/organizations/{organizationSlug}/projects/{projectSlug}/settings",
    "/organizations/{organizationSlug}/projects/{projectSlug}/delete",
    "/organizations/{organizationSlug}/projects/{projectSlug}/vendors",
    "/organizations/{organizationSlug}/keys",
    "/organizations/{organizationSlug}/keys/{keyId}",
    "/organizations/{organizationSlug}/keys/{keyId}/roll",
    "/organizations/{organizationSlug}/keys/{keyId}/revoke",
    "/organizations/{organizationSlug}/webhooks",
    "/organizations/{organizationSlug}/webhooks/{webhookId}",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/status",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/rotate",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/delete",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}/replay",
    "/organizations/{organizationSlug}/members",
    "/organizations/{organizationSlug}/members/change",
    "/organizations/{organizationSlug}/members/resend",
    "/organizations/{organizationSlug}/members/withdraw",
    "/organizations/{organizationSlug}/billing",
    "/organizations/{organizationSlug}/scans",
    "/organizations/{organizationSlug}/scans/{scanId}",
    "/organizations/{organizationSlug}/scans/{scanId}/unlock",
    "/organizations/{organizationSlug}/scans/{scanId}/findings.sarif",
    "/organizations/{organizationSlug}/scans/{scanId}/findings.csv",
    "/organizations/{organizationSlug}/repositories",
    "/organizations/{organizationSlug}/repositories/{repositoryId}",
    "/organizations/{organizationSlug}/repositories/{repositoryId}/links",
    "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect",
}
# These call the sign-in service, which isn't part of the project.
EXTERNAL = {
    ("GET", "/sign-in"),
    ("GET", "/sign-in/callback"),
    # These lead to GitHub, and connect what it offers.
    ("GET", "/organizations/{organizationSlug}/github"),
    ("GET", "/github/callback"),
    ("POST", "/organizations/{organizationSlug}/repositories"),
    # Runs once per organization, and reads all of its keys and members.
    ("POST", "/organizations/{organizationSlug}/delete"),
}


def _empty(_world: World) -> Request:
    return {}


def _email(world: World) -> str:
    return f"guest-{next(world.numbers)}@example.com"


def _member(world: World) -> Request:
    """Returns the membership id of a new member."""
    person = users.create_user(_email(world), "Benchmark Member")
    membership = organizations.Membership(
        organization_id=world.organization_id, slug="benchmark", name="Benchmark", role="member"
    )
    for put in organizations.membership_legs(membership, person):
        table.put(put, PREPARED)
    return {"path": {"memberId": MemberId.of_user(world.organization_id, person.user_id)}}


def _new_organization(world: World) -> Request:
    """Uses another person's token, so that the owner's requests still have only one organization to choose from."""
    n = next(world.numbers)
    return {"body": {"name": f"Founded {n}", "slug": f"founded-{n}"}, "user_token": _founder(world)}


@lru_cache
def _founder(world: World) -> str:
    person = users.create_user(_email(world), "Benchmark Founder")
    return user_tokens.create_token(person.user_id, sorted(SCOPES), 3600)


def _organization(world: World) -> Request:
    return {"path": {"organizationId": world.organization_id}}


def _invitation(world: World) -> Request:
    made = world.call("POST", "/v1/invitations", body={"email": _email(world), "role": "member"})
    return {"path": {"invitationId": made["id"]}}


def _project(world: World) -> Request:
    return {"path": {"projectId": world.projects[0]}}


def _new_project(world: World) -> Request:
    n = next(world.numbers)
    return {"body": {"name": f"Another {n}", "region": "eu-central", "websites": [f"https://another-{n}.example.com"]}}


def _changed_project(world: World) -> Request:
    return {**_project(world), "body": {"description": f"Changed {next(world.numbers)}"}}


def _renamed_project(world: World) -> Request:
    return {**_project(world), "body": {"projectName": f"Renamed {next(world.numbers)}"}}


def _deletable_project(world: World) -> Request:
    return {"path": {"projectId": world.create_project()["id"]}}


def _website(world: World) -> Request:
    project = world.create_project()
    return {"path": {"projectId": project["id"], "websiteId": project["websites"][1]["id"]}}


def _vendor(world: World) -> Request:
    n = next(world.numbers)
    return {"path": {"projectId": world.projects[0], "vendorId": f"vendor-{n}"}, "body": {"decision": "approve"}}


def _key(world: World) -> Request:
    made = world.call("POST", "/v1/api-keys", body={"name": "doomed"})
    return {"path": {"keyId": made["keyId"]}}


def _fifty(_world: World) -> Request:
    return {"query": {"limit": "50"}}


def _linked_file(world: World, page: str, address: str) -> Request:
    """Returns the first file that the page links to."""
    html = world.answer("GET", page, headers={"Accept": "text/html"})["body"]
    found = re.search(rf'"{address}([^"/]+)"', html)
    return {"path": {"fileName": found[1] if found else "none"}}


def _device_code(_world: World) -> Request:
    body = {"clientId": entities.CLIENT, "codeChallenge": entities.CHALLENGE, "codeChallengeMethod": "S256"}
    return {"body": body}


def _redemption(world: World) -> Request:
    issued = entities.request_code(world, approved=True)
    body = {"deviceCode": issued.device_code, "codeVerifier": entities.VERIFIER, "clientId": entities.CLIENT}
    return {"body": body}


def _poll(world: World) -> Request:
    issued = entities.request_code(world)
    body = {"deviceCode": issued.device_code, "codeVerifier": entities.VERIFIER, "clientId": entities.CLIENT}
    return {"body": body}


def _refresh(world: World) -> Request:
    return {"body": {"refreshToken": entities.redeem(world).refresh_token}}


def _revocation(world: World) -> Request:
    return {"body": {"token": entities.redeem(world).refresh_token}}


def _feedback(world: World) -> Request:
    message = f"Creating a project with a wildcard website answers 400, for the {next(world.numbers)}th time."
    return {"body": {"category": "bug", "message": message}}


def _scans(world: World) -> Request:
    return {"query": {"repositoryId": entities.sample_scan(world).repository_id, "limit": "50"}}


def _new_scan(world: World) -> Request:
    return {"body": {"repositoryId": entities.connect_repository(world).repository_id}}


def _repository(world: World) -> Request:
    return {"path": {"repositoryId": entities.connect_repository(world).repository_id}}


def _new_link(world: World) -> Request:
    return {**_repository(world), "body": {"projectId": world.create_project()["id"]}}


def _link(world: World) -> Request:
    repository = entities.connect_repository(world)
    return {"path": {"repositoryId": repository.repository_id, "projectId": repository.links[0].project_id}}


def _changed_link(world: World) -> Request:
    return {**_link(world), "body": {"schedule": "daily"}}


def _scan(world: World) -> Request:
    return {"path": {"scanId": entities.sample_scan(world).scan_id}}


def _locked_scan(world: World) -> Request:
    return {"path": {"scanId": entities.scan(world).scan_id}}


def _scan_request(world: World) -> Request:
    repository, request_id = entities.request_scan(world)
    return {"path": {"preparationId": request_id}, "query": {"repositoryId": repository.repository_id}}


def _inbox(world: World) -> Request:
    entities.filled_inbox(world)
    return {"query": {"limit": "50"}}


def _webhook(world: World) -> Request:
    return {"path": {"webhookId": entities.delivery(world).webhook_id}}


def _new_webhook(_world: World) -> Request:
    return {"body": {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["key.created"]}}


def _changed_webhook(world: World) -> Request:
    return {**_webhook(world), "body": {"name": "Others"}}


def _delivery(world: World) -> Request:
    delivery = entities.delivery(world)
    return {"path": {"webhookId": delivery.webhook_id, "eventId": delivery.event_id}}


def _item(world: World) -> Request:
    return {"path": {"itemId": entities.publish_item(world).item_id}}


def _changed_item(world: World) -> Request:
    item = entities.publish_item(world)
    return {"path": {"itemId": item.item_id}, "body": {"status": "accepted", "version": item.version}}


def _shown(world: World) -> Request:
    return {"headers": entities.session(world)}


def _form(world: World, session: dict[str, str], **fields: str) -> Request:
    token = {"form_token": entities.form_token(world, session)}
    return {"headers": session, "form": {**token, **fields}}


def _submitted(world: World, **fields: str) -> Request:
    return _form(world, entities.session(world), **fields)


def _sign_out(world: World) -> Request:
    return _form(world, entities.new_session(world.user_id))


def _revoke_others(world: World) -> Request:
    """By a new person: the owner's session is used by other requests."""
    person = users.create_user(_email(world), "Benchmark Guest")
    return _form(world, entities.new_session(person.user_id))


def _deleted_account(world: World) -> Request:
    email = _email(world)
    person = users.create_user(email, "Benchmark Guest")
    return _form(world, entities.new_session(person.user_id), confirmation=email)


def _submitted_organization(world: World) -> Request:
    n = next(world.numbers)
    person = users.create_user(_email(world), "Benchmark Founder")
    return _form(world, entities.new_session(person.user_id), name=f"Founded {n}", slug=f"founded-{n}")


def _session_id(world: World) -> str:
    """Returns the id of a session that can be revoked."""
    sessions.create(world.user_id)
    return credential_index.list_credentials(world.user_id, 1).credentials[0].session_id


def _revoked_session(world: World) -> Request:
    return {"path": {"sessionId": _session_id(world)}, "user_token": world.token}


def _decided(world: World, action: str) -> Request:
    """Returns the request with the fields of the previous page."""
    asked = _submitted(world, user_code=entities.request_code(world).user_code)
    review = world.answer("POST", "/device", **asked)["body"]
    return _submitted(world, **entities.fields_of(review, action))


def _invited(world: World) -> Request:
    """Invites a new person."""
    email = _email(world)
    person = users.create_user(email, "Benchmark Guest")
    made = world.call("POST", "/v1/invitations", body={"email": email, "role": "member"})
    return _form(world, entities.new_session(person.user_id), invitation_id=made["id"])


def _blocked(world: World) -> Request:
    """Returns a new user who has blocked the organization."""
    asked = _invited(world)
    world.answer("POST", "/invitations/block", **asked)
    return {**asked, "form": {**asked["form"], "organization_id": world.organization_id}}


def _project_page(world: World) -> Request:
    project = world.call("GET", "/v1/projects/{projectId}", path={"projectId": world.projects[0]})
    return {**_shown(world), "path": {"organizationSlug": "benchmark", "projectSlug": project["slug"]}}


def _organization_page(world: World) -> Request:
    return {**_shown(world), "path": {"organizationSlug": "benchmark"}}


def _submitted_in(world: World, **fields: str) -> Request:
    return {**_submitted(world, **fields), "path": {"organizationSlug": "benchmark"}}


def _once() -> str:
    return secrets.token_urlsafe(24)


def _submitted_project(world: World) -> Request:
    fields = {"name": f"Shop {next(world.numbers)}", "region": "eu-central", "websites": "shop.example.com"}
    return _submitted_in(world, once=_once(), **fields)


def _of_new_project(world: World, **fields: str) -> Request:
    path = {"organizationSlug": "benchmark", "projectSlug": world.create_project()["slug"]}
    return {**_submitted(world, **fields), "path": path}


def _submitted_settings(world: World) -> Request:
    return _of_new_project(world, action="add-websites", websites="another.example.com")


def _submitted_deletion(world: World) -> Request:
    made = _of_new_project(world)
    return {**made, "form": {**made["form"], "confirmation": made["path"]["projectSlug"]}}


def _submitted_decision(world: World) -> Request:
    return _of_new_project(world, vendor_id="segment", decision="approve")


def _of_key(world: World) -> Request:
    return {"path": {"organizationSlug": "benchmark", **_key(world)["path"]}}


def _key_page(world: World) -> Request:
    return {**_shown(world), **_of_key(world)}


def _submitted_key(world: World) -> Request:
    return {**_submitted(world, once=_once()), **_of_key(world)}


def _submitted_new_webhook(world: World) -> Request:
    # An organization can have ten, which other requests have created.
    for webhook in webhooks.list_webhooks(world.organization_id)[9:]:
        webhooks.delete_webhook(webhook, world.user_id)
    return _submitted_in(world, once=_once(), **_ENDPOINT)


def _webhook_page(world: World) -> Request:
    return {**_shown(world), "path": {"organizationSlug": "benchmark", **_delivery(world)["path"]}}


def _submitted_webhook(world: World, **fields: str) -> Request:
    path = {"organizationSlug": "benchmark", **_delivery(world)["path"]}
    return {**_submitted(world, once=_once(), **fields), "path": path}


_ENDPOINT = {"name": "Alerts", "url": "https://hooks.example.com/", "format": "standard", "key.created": "yes"}


def _scan_page(world: World) -> Request:
    scan = entities.sample_scan(world)
    return {**_shown(world), "path": {"organizationSlug": "benchmark", "scanId": scan.scan_id}}


def _inbox_page(world: World) -> Request:
    entities.filled_inbox(world)
    return _organization_page(world)


def _submitted_findings(world: World) -> Request:
    items = [entities.publish_item(world) for _ in range(3)]
    return _submitted_in(world, action="accepted", **{f"item-{item.item_id}": item.version for item in items})


def _finding_page(world: World) -> Request:
    return {**_shown(world), "path": {"organizationSlug": "benchmark", **_item(world)["path"]}}


def _submitted_finding(world: World) -> Request:
    item = entities.publish_item(world)
    path = {"organizationSlug": "benchmark", "itemId": item.item_id}
    return {**_submitted(world, action="accepted", version=item.version), "path": path}


def _submitted_issue(world: World) -> Request:
    return {**_submitted(world), "path": _finding_page(world)["path"]}


def _submitted_finding_vendor(world: World) -> Request:
    path = {"organizationSlug": "benchmark", "itemId": entities.detect_vendor(world)}
    return {**_submitted(world, decision="approve"), "path": path}


def _scans_page(world: World) -> Request:
    entities.sample_scan(world)
    return {**_shown(world), "path": {"organizationSlug": "benchmark"}}


def _started_scan(world: World) -> Request:
    body = _new_scan(world)["body"]
    repository = repositories.get_repository(RepositoryId.stored(body["repositoryId"]))
    subject = f"{repository.repository_id} {repository.links[0].project_id}"
    return {**_submitted(world, subject=subject), "path": {"organizationSlug": "benchmark"}}


def _unlocked_scan(world: World) -> Request:
    path = {"organizationSlug": "benchmark", **_locked_scan(world)["path"]}
    return {**_submitted(world), "path": path}


def _repository_page(world: World) -> Request:
    return {**_shown(world), **_of_repository(world)}


def _saved_link(world: World) -> Request:
    fields = {"project_id": world.create_project()["id"], "failure_threshold": "P1"}
    return {**_submitted(world, **fields), **_of_repository(world)}


def _disconnected(world: World) -> Request:
    return {**_submitted(world), **_of_repository(world)}


def _of_repository(world: World) -> Request:
    repository = entities.connect_repository(world)
    return {"path": {"organizationSlug": "benchmark", "repositoryId": repository.repository_id}}


REQUESTS: dict[tuple[str, str], Callable[[World], Request]] = {
    ("GET", "/health"): _empty,
    ("GET", "/openapi.json"): _empty,
    ("GET", "/v1/regions"): _empty,
    ("GET", "/v1/me"): _empty,
    ("GET", "/v1/me/sessions"): lambda world: {"user_token": world.token},
    ("DELETE", "/v1/me/sessions/{sessionId}"): _revoked_session,
    ("GET", "/v1/organizations"): _empty,
    ("POST", "/v1/organizations"): _new_organization,
    ("GET", "/v1/organizations/{organizationId}"): _organization,
    ("PUT", "/v1/me/active-organization"): lambda world: {"body": {"organizationId": world.organization_id}},
    ("GET", "/v1/members"): _fifty,
    ("PATCH", "/v1/members/{memberId}"): lambda world: {**_member(world), "body": {"role": "admin"}},
    ("DELETE", "/v1/members/{memberId}"): _member,
    ("GET", "/v1/invitations"): _fifty,
    ("POST", "/v1/invitations"): lambda world: {"body": {"email": _email(world), "role": "member"}},
    ("DELETE", "/v1/invitations/{invitationId}"): _invitation,
    ("POST", "/v1/invitations/{invitationId}/resend"): _invitation,
    ("GET", "/v1/projects"): _fifty,
    ("POST", "/v1/projects"): _new_project,
    ("GET", "/v1/projects/{projectId}"): _project,
    ("PATCH", "/v1/projects/{projectId}"): _changed_project,
    ("DELETE", "/v1/projects/{projectId}"): _deletable_project,
    ("GET", "/v1/projects/{projectId}/consent"): _project,
    ("DELETE", "/v1/projects/{projectId}/websites/{websiteId}"): _website,
    ("GET", "/v1/projects/{projectId}/vendors"): lambda world: {**_project(world), **_fifty(world)},
    ("POST", "/v1/projects/{projectId}/vendors/{vendorId}/decision"): _vendor,
    ("GET", "/v1/api-keys"): _fifty,
    ("POST", "/v1/api-keys"): lambda world: {"body": {"name": f"key {next(world.numbers)}"}},
    ("GET", "/v1/api-keys/{keyId}"): _key,
    ("PATCH", "/v1/api-keys/{keyId}"): lambda world: {**_key(world), "body": {"description": "For releases."}},
    ("DELETE", "/v1/api-keys/{keyId}"): _key,
    ("POST", "/v1/api-keys/{keyId}/roll"): _key,
    ("GET", "/v1/auth/keys"): _fifty,
    ("GET", "/v1/webhook-endpoints"): _empty,
    ("POST", "/v1/webhook-endpoints"): _new_webhook,
    ("GET", "/v1/webhook-endpoints/{webhookId}"): _webhook,
    ("PATCH", "/v1/webhook-endpoints/{webhookId}"): _changed_webhook,
    ("DELETE", "/v1/webhook-endpoints/{webhookId}"): _webhook,
    ("POST", "/v1/webhook-endpoints/{webhookId}/rotate-secret"): _webhook,
    ("GET", "/v1/webhook-endpoints/{webhookId}/deliveries"): _webhook,
    ("POST", "/v1/webhook-endpoints/{webhookId}/deliveries/{eventId}/replay"): _delivery,
    ("GET", "/v1/billing"): _empty,
    ("GET", "/.well-known/oauth-authorization-server"): _empty,
    ("GET", "/.well-known/agent-feedback.json"): _empty,
    ("GET", "/llms.txt"): _empty,
    ("GET", "/docs"): _empty,
    ("GET", "/docs/{fileName}"): lambda world: _linked_file(world, "/docs", "docs/"),
    ("POST", "/v1/auth/device/code"): _device_code,
    ("POST", "/v1/auth/device/token"): _redemption,
    ("POST", "/v1/auth/device/revoke"): _revocation,
    ("POST", "/v1/feedback"): _feedback,
    ("GET", "/v1/code-audit/repositories"): _fifty,
    ("DELETE", "/v1/code-audit/repositories/{repositoryId}"): _repository,
    ("GET", "/v1/code-audit/repositories/{repositoryId}/links"): _repository,
    ("POST", "/v1/code-audit/repositories/{repositoryId}/links"): _new_link,
    ("PATCH", "/v1/code-audit/repositories/{repositoryId}/links/{projectId}"): _changed_link,
    ("DELETE", "/v1/code-audit/repositories/{repositoryId}/links/{projectId}"): _link,
    ("GET", "/v1/code-audit/scans"): _scans,
    ("POST", "/v1/code-audit/scans"): _new_scan,
    ("GET", "/v1/code-audit/scans/{scanId}"): _scan,
    ("GET", "/v1/code-audit/scans/{scanId}/issues"): _scan,
    ("GET", "/v1/code-audit/scans/{scanId}/sarif"): _scan,
    ("GET", "/v1/code-audit/scans/{scanId}/diff"): _scan,
    ("POST", "/v1/code-audit/scans/{scanId}/unlock"): _locked_scan,
    ("GET", "/v1/code-audit/scan-requests/{preparationId}"): _scan_request,
    ("GET", "/v1/inbox"): _inbox,
    ("GET", "/v1/inbox/{itemId}"): _item,
    ("PATCH", "/v1/inbox/{itemId}"): _changed_item,
    ("POST", "/v1/inbox/{itemId}/github-issue"): _item,
    ("GET", "/"): _empty,
    ("POST", "/sign-out"): _sign_out,
    ("GET", "/signed-out"): _empty,
    ("GET", "/device"): _shown,
    ("POST", "/device"): lambda world: _submitted(world, user_code=entities.request_code(world).user_code),
    ("POST", "/device/approve"): lambda world: _decided(world, "/device/approve"),
    ("POST", "/device/deny"): lambda world: _decided(world, "/device/deny"),
    ("GET", "/invitations"): _shown,
    ("POST", "/invitations/accept"): _invited,
    ("POST", "/invitations/decline"): _invited,
    ("GET", "/sessions"): _shown,
    ("POST", "/sessions/revoke"): lambda world: _submitted(world, session_id=_session_id(world)),
    ("POST", "/sessions/revoke-others"): _revoke_others,
    ("POST", "/invitations/block"): _invited,
    ("GET", "/invitations/blocked"): _shown,
    ("POST", "/invitations/unblock"): _blocked,
    ("GET", "/organizations"): _shown,
    ("POST", "/organizations"): lambda world: _submitted(world, organization_id=world.organization_id),
    ("GET", "/organizations/{organizationSlug}/delete"): _organization_page,
    ("GET", "/organizations/{organizationSlug}"): _organization_page,
    ("GET", "/account"): _shown,
    ("GET", "/account/export"): _shown,
    ("GET", "/account/delete"): _shown,
    ("POST", "/account/delete"): _deleted_account,
    ("GET", "/organizations/new"): _shown,
    ("POST", "/organizations/new"): _submitted_organization,
    ("GET", "/organizations/{organizationSlug}/settings"): _organization_page,
    ("POST", "/organizations/{organizationSlug}/settings"): _submitted_in,
    ("GET", "/organizations/{organizationSlug}/inbox"): _inbox_page,
    ("POST", "/organizations/{organizationSlug}/inbox"): _submitted_findings,
    ("GET", "/organizations/{organizationSlug}/inbox/{itemId}"): _finding_page,
    ("POST", "/organizations/{organizationSlug}/inbox/{itemId}"): _submitted_finding,
    ("POST", "/organizations/{organizationSlug}/inbox/{itemId}/issue"): _submitted_issue,
    ("POST", "/organizations/{organizationSlug}/inbox/{itemId}/vendor"): _submitted_finding_vendor,
    ("GET", "/organizations/{organizationSlug}/projects/{projectSlug}"): _project_page,
    ("GET", "/organizations/{organizationSlug}/projects/{projectSlug}/consent"): _project_page,
    ("GET", "/organizations/{organizationSlug}/projects"): _organization_page,
    ("GET", "/organizations/{organizationSlug}/projects/new"): _organization_page,
    ("POST", "/organizations/{organizationSlug}/projects/new"): _submitted_project,
    ("GET", "/organizations/{organizationSlug}/projects/{projectSlug}/settings"): _project_page,
    ("POST", "/organizations/{organizationSlug}/projects/{projectSlug}/settings"): _submitted_settings,
    ("GET", "/organizations/{organizationSlug}/projects/{projectSlug}/delete"): _project_page,
    ("POST", "/organizations/{organizationSlug}/projects/{projectSlug}/delete"): _submitted_deletion,
    ("GET", "/organizations/{organizationSlug}/projects/{projectSlug}/vendors"): _project_page,
    ("POST", "/organizations/{organizationSlug}/projects/{projectSlug}/vendors"): _submitted_decision,
    ("GET", "/organizations/{organizationSlug}/keys"): _organization_page,
    ("POST", "/organizations/{organizationSlug}/keys"): lambda world: _submitted_in(
        world, once=_once(), name="Deploys"
    ),
    ("GET", "/organizations/{organizationSlug}/keys/{keyId}"): _key_page,
    ("POST", "/organizations/{organizationSlug}/keys/{keyId}/roll"): _submitted_key,
    ("POST", "/organizations/{organizationSlug}/keys/{keyId}/revoke"): _submitted_key,
    ("GET", "/organizations/{organizationSlug}/webhooks"): _organization_page,
    ("POST", "/organizations/{organizationSlug}/webhooks"): _submitted_new_webhook,
    ("GET", "/organizations/{organizationSlug}/webhooks/{webhookId}"): _webhook_page,
    ("POST", "/organizations/{organizationSlug}/webhooks/{webhookId}"): lambda world: _submitted_webhook(
        world, **_ENDPOINT
    ),
    ("POST", "/organizations/{organizationSlug}/webhooks/{webhookId}/status"): lambda world: _submitted_webhook(
        world, status="disabled"
    ),
    ("POST", "/organizations/{organizationSlug}/webhooks/{webhookId}/rotate"): _submitted_webhook,
    ("POST", "/organizations/{organizationSlug}/webhooks/{webhookId}/delete"): _submitted_webhook,
    ("GET", "/organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}"): _webhook_page,
    ("POST", "/organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}/replay"): _submitted_webhook,
    ("GET", "/organizations/{organizationSlug}/members"): _organization_page,
    ("POST", "/organizations/{organizationSlug}/members"): lambda world: _submitted_in(
        world, email=_email(world), role="member"
    ),
    ("POST", "/organizations/{organizationSlug}/members/change"): lambda world: _submitted_in(
        world, member_id=_member(world)["path"]["memberId"], role="admin"
    ),
    ("POST", "/organizations/{organizationSlug}/members/resend"): lambda world: _submitted_in(
        world, invitation_id=_invitation(world)["path"]["invitationId"]
    ),
    ("POST", "/organizations/{organizationSlug}/members/withdraw"): lambda world: _submitted_in(
        world, invitation_id=_invitation(world)["path"]["invitationId"]
    ),
    ("GET", "/organizations/{organizationSlug}/billing"): _organization_page,
    ("GET", "/organizations/{organizationSlug}/scans"): _scans_page,
    ("POST", "/organizations/{organizationSlug}/scans"): _started_scan,
    ("GET", "/organizations/{organizationSlug}/scans/{scanId}"): _scan_page,
    ("GET", "/organizations/{organizationSlug}/scans/{scanId}/unlock"): _scan_page,
    ("POST", "/organizations/{organizationSlug}/scans/{scanId}/unlock"): _unlocked_scan,
    ("GET", "/organizations/{organizationSlug}/scans/{scanId}/findings.sarif"): _scan_page,
    ("GET", "/organizations/{organizationSlug}/scans/{scanId}/findings.csv"): _scan_page,
    ("GET", "/organizations/{organizationSlug}/repositories"): _repository_page,
    ("GET", "/organizations/{organizationSlug}/repositories/{repositoryId}"): _repository_page,
    ("POST", "/organizations/{organizationSlug}/repositories/{repositoryId}/links"): _saved_link,
    ("GET", "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect"): _repository_page,
    ("POST", "/organizations/{organizationSlug}/repositories/{repositoryId}/disconnect"): _disconnected,
    ("GET", "/assets/{fileName}"): lambda world: _linked_file(world, "/", "/assets/"),
}

# The same route with another body that has a different cost.
VARIANTS: dict[str, tuple[tuple[str, str], Callable[[World], Request]]] = {
    "new name": (("PATCH", "/v1/projects/{projectId}"), _renamed_project),
    "poll": (("POST", "/v1/auth/device/token"), _poll),
    "refresh": (("POST", "/v1/auth/device/token"), _refresh),
}

# The request that represents a function's cold start: a read, if it has one, by an existing caller.
COLD = {
    "system": ("GET", "/v1/me"),
    "organizations": ("GET", "/v1/organizations/{organizationId}"),
    "members": ("GET", "/v1/members"),
    "projects": ("GET", "/v1/projects/{projectId}"),
    "api_keys": ("GET", "/v1/api-keys"),
    "billing": ("GET", "/v1/billing"),
    "device_auth": ("POST", "/v1/auth/device/revoke"),
    "dashboard": ("GET", "/organizations"),
    "code_audit": ("GET", "/v1/code-audit/scans/{scanId}"),
    "inbox": ("GET", "/v1/inbox/{itemId}"),
    "feedback": ("POST", "/v1/feedback"),
}
# These reject API keys, so they start with a user token.
COLD_WITH_USER_TOKEN = {"members", "code_audit"}
