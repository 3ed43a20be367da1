"""Describes what each operation of the API does in the model of `api_model.py`.

`MODELED` has one function for each operation of docs/openapi.json that a request alone completes. It returns the
request, what the response has to be, and what a success changes. A new operation fails a test until it has a function
here, or a reason in `NOT_MODELED`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from controlplane.core import clock
from controlplane.core.plans import PLANS
from controlplane.core.scopes import API_KEY_SCOPES
from controlplane.store import api_keys, webhooks
from controlplane.store.feedback import NEW_PER_HOUR
from tests.races.api_model import (
    ATTEMPTS,
    LEASE_SECONDS,
    MODELED,
    ApiModel,
    Caller,
    Key,
    Modeled,
    Org,
    Request,
    modeled,
)

_DEVICE = "Needs a device's codes and a person's approval: tests/races/test_device_requests.py."
_SCAN = "Needs the workers of a scan: tests/races/test_scans.py, test_scan_recovery.py, test_unlocks.py."
NOT_MODELED = {
    "createDeviceCode": _DEVICE,
    "createDeviceToken": _DEVICE,
    "revokeDeviceToken": _DEVICE,
    "revokeSession": _DEVICE,
    "startScan": _SCAN,
    "getScanRequest": _SCAN,
    "getScan": _SCAN,
    "compareScans": _SCAN,
    "listScanIssues": _SCAN,
    "getScanSarif": _SCAN,
    "unlockScan": _SCAN,
    "createGithubIssue": "Has a state machine of its own: tests/races/test_issue_states.py.",
    "replayWebhookDelivery": "Needs the worker's deliveries: tests/races/test_webhooks.py.",
    "getRequest": "Reads the record of a refusal, which is best effort: tests/races/test_refusals.py.",
}


def _chosen(ids: Any, pick: int) -> str | None:
    """Returns one of the IDs, or None. They are in order of creation, because a run must be repeatable."""
    listed = [*ids]
    return listed[pick % len(listed)] if listed else None


def _gone(org: Org, prefix: str) -> str:
    """Returns a well-formed ID of nothing."""
    return f"{prefix}_{org.org_id.removeprefix('org_')}{'0' * 18}"


# Operations without an organization


def _public(path: str) -> Modeled:
    return lambda model, caller, org, pick: Request(path, 200)


for _name, _path in {
    "getAgentFeedback": "/.well-known/agent-feedback.json",
    "getAuthorizationServer": "/.well-known/oauth-authorization-server",
    "getHealth": "/health",
    "getOpenapi": "/openapi.json",
    "listRegions": "/v1/regions",
    "getMe": "/v1/me",
    "listOrganizations": "/v1/organizations",
    "listSessions": "/v1/me/sessions",
}.items():
    MODELED[_name] = _public(_path)


@modeled
def create_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if len(model.orgs) > 4 or caller.person is None:
        return None
    person = caller.person
    body = {"name": "Acme", "slug": f"made-{next(model.numbers)}"}

    def apply(data: Any) -> None:
        model.orgs.append(Org(data["id"], "free", {person: "owner"}))

    def found() -> Any:
        listed = model.stage.api.get("/v1/organizations", model.tokens[person]["all"]).data
        (new,) = [item for item in listed if item["organizationSlug"] == body["slug"]]
        return {"id": new["organizationId"]}

    return Request("/v1/organizations", 201, body, apply, found=found)


@modeled
def save_active_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request("/v1/me/active-organization", 200, {"organizationId": org.org_id}, org=org)


@modeled
def create_feedback(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    hour, second = divmod(int(clock.now()), 3_600)
    if caller.person is None or second > 3_600 - ATTEMPTS * LEASE_SECONDS:
        return None
    quota = (caller.person, hour)

    def apply(data: Any) -> None:
        model.reports[quota] = model.reports.get(quota, 0) + 1

    status = 201 if model.reports.get(quota, 0) < NEW_PER_HOUR else 429
    return Request("/v1/feedback", status, {"category": "bug", "message": f"Bug {next(model.numbers)}"}, apply)


# Lists and single items


def _lists(path: str) -> Modeled:
    return lambda model, caller, org, pick: Request(path + org.query, 200, org=org)


for _name, _path in {
    "listApiKeys": "/v1/api-keys",
    "listAuthKeys": "/v1/auth/keys",
    "listAuditLog": "/v1/audit-log",
    "getBilling": "/v1/billing",
    "listRepositories": "/v1/code-audit/repositories",
    "listScans": "/v1/code-audit/scans",
    "listInboxItems": "/v1/inbox",
    "listInvitations": "/v1/invitations",
    "listMembers": "/v1/members",
    "listProjects": "/v1/projects",
    "listWebhookEndpoints": "/v1/webhook-endpoints",
}.items():
    MODELED[_name] = _lists(_path)


def _reads(path: str, prefix: str, ids: Callable[[Org], Any]) -> Modeled:
    """Returns the model of a read by ID: that of an item that exists, or sometimes of none."""

    def read(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request:
        found = _chosen(ids(org), pick) if pick % 5 else None
        return Request(path.format(found or _gone(org, prefix)), 200 if found else 404, org=org)

    return read


MODELED |= {
    "getApiKey": _reads("/v1/api-keys/{}", "key", lambda org: org.keys),
    "getInboxItem": _reads("/v1/inbox/{}", "inb", lambda org: org.versions),
    "getProject": _reads("/v1/projects/{}", "prj", lambda org: org.projects),
    "getProjectConsent": _reads("/v1/projects/{}/consent", "prj", lambda org: org.projects),
    "listVendors": _reads("/v1/projects/{}/vendors", "prj", lambda org: org.projects),
    "getWebhookEndpoint": _reads("/v1/webhook-endpoints/{}", "whk", lambda org: org.hooks),
    "listWebhookDeliveries": _reads("/v1/webhook-endpoints/{}/deliveries", "whk", lambda org: org.hooks),
    "listLinks": _reads(
        "/v1/code-audit/repositories/{}/links", "rep", lambda org: [org.repository] if org.repository else []
    ),
}


@modeled
def get_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request(f"/v1/organizations/{org.org_id}", 200, org=org)


# API keys


@modeled
def create_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    scopes = (*API_KEY_SCOPES,) if pick % 2 else ("projects.read",)

    def apply(data: Any) -> None:
        org.keys[data["keyId"]] = Key(data.get("key"), scopes)

    # The name that the tests set.
    full = len(org.keys) >= api_keys.API_KEYS_PER_ORGANIZATION  # type: ignore[attr-defined]
    status = 402 if not PLANS[org.plan].api_access else 409 if full else 201
    path = f"/v1/api-keys{org.query}"
    body = {"name": "deploy", "scopes": scopes}
    return Request(path, status, body, apply, org=org, found=partial(model.new_one, org, path, org.keys, "keyId"))


@modeled
def roll_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        rolled = org.keys.pop(key_id)
        model.kill(rolled)
        org.keys[data["keyId"]] = Key(data.get("key"), rolled.scopes)

    path = f"/v1/api-keys{org.query}"
    return Request(
        f"/v1/api-keys/{key_id}/roll{org.query}",
        200,
        {},
        apply,
        org=org,
        found=partial(model.new_one, org, path, org.keys, "keyId"),
    )


@modeled
def update_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        org.keys[key_id] = Key(org.keys[key_id].secret, ("inbox.read",))

    status = 200 if "inbox.read" in org.keys[key_id].scopes else 400
    return Request(f"/v1/api-keys/{key_id}", status, {"scopes": ["inbox.read"]}, apply, org=org)


@modeled
def delete_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        model.kill(org.keys.pop(key_id))

    return Request(f"/v1/api-keys/{key_id}{org.query}", 200, None, apply, 404, org)


# Members and invitations


@modeled
def update_member(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    number, role = [*org.roles][pick % len(org.roles)], ("member", "admin", "owner")[pick % 3]
    held = org.roles[number]
    is_owner = caller.person is not None and org.roles.get(caller.person) == "owner"
    is_last = held == "owner" != role and org.owners == 1
    is_refused = is_last or ("owner" in {held, role} and not is_owner)

    def apply(data: Any) -> None:
        org.roles[number] = role

    path = f"/v1/members/{model.member_id(org, number)}"
    # Who gave up the role isn't admitted again.
    repeated = 403 if number == caller.person else None
    return Request(path, 403 if is_refused else 200, {"role": role}, apply, repeated, org)


@modeled
def delete_member(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    number = [*org.roles][pick % len(org.roles)]
    is_owner = caller.person is not None and org.roles.get(caller.person) == "owner"
    is_refused = number == caller.person or (org.roles[number] == "owner" and not is_owner)

    def apply(data: Any) -> None:
        del org.roles[number]

    return Request(f"/v1/members/{model.member_id(org, number)}", 403 if is_refused else 200, None, apply, 404, org)


@modeled
def create_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    email = f"invited{pick % 3}@example.com"
    inviter = caller.person
    if inviter is None:
        return None

    def apply(data: Any) -> None:
        org.invitations[email] = (data["id"], inviter, clock.now() + 7 * 86_400)

    status = 409 if org.valid_invitation(email) else 201
    path, known = f"/v1/invitations{org.query}", [it[0] for it in org.invitations.values()]
    body = {"email": email, "role": "member"}
    return Request(path, status, body, apply, org=org, found=partial(model.new_one, org, path, known))


@modeled
def delete_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (email := _chosen(filter(org.valid_invitation, org.invitations), pick)) is None:
        return None

    def apply(data: Any) -> None:
        del org.invitations[email]

    return Request(f"/v1/invitations/{org.invitations[email][0]}", 200, None, apply, 404, org)


@modeled
def resend_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request(f"/v1/invitations/{_gone(org, 'inv')}/resend", 404, org=org)


# Projects


@modeled
def create_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    def apply(data: Any) -> None:
        org.projects[data["id"]] = [website["id"] for website in data["websites"]]

    body = {"name": "Shop", "region": "eu-central", "websites": ["a.example.com", "b.example.com"]}
    status = 201 if len(org.projects) < PLANS[org.plan].projects else 402
    path = f"/v1/projects{org.query}"

    def found() -> Any:
        project = model.new_one(org, path, org.projects, "projectId")["projectId"]
        return model.stage.api.get(f"/v1/projects/{project}", model.owner_token(org)).data

    return Request(path, status, body, apply, org=org, found=found)


@modeled
def update_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    return Request(f"/v1/projects/{project}", 200, {"description": f"Shop {pick}"}, org=org)


@modeled
def delete_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None

    def apply(data: Any) -> None:
        del org.projects[project]
        org.links = [link for link in org.links if link != project]

    return Request(f"/v1/projects/{project}", 200, None, apply, 404, org)


@modeled
def delete_website(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    websites = org.projects[project]
    website = websites[pick % len(websites)]

    def apply(data: Any) -> None:
        websites.remove(website)

    status = 200 if len(websites) > 1 else 409
    return Request(f"/v1/projects/{project}/websites/{website}", status, None, apply, 404, org)


@modeled
def decide_vendor(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    return Request(f"/v1/projects/{project}/vendors/segment/decision", 200, {"decision": "approve"}, org=org)


# Findings


@modeled
def update_inbox_item(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (item := _chosen(org.versions, pick)) is None:
        return None
    version = org.versions[item] if pick % 4 else "x"

    def apply(data: Any) -> None:
        org.versions[item] = data["version"]

    body = {"status": ("open", "accepted", "dismissed")[pick % 3], "version": version, "reason": f"{pick}"}
    return Request(f"/v1/inbox/{item}", 200 if pick % 4 else 409, body, apply, org=org)


@modeled
def update_inbox_items(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if not org.versions:
        return None

    def apply(data: Any) -> None:
        for result in data["results"]:
            assert result["statusCode"] == 200, result
            org.versions[result["id"]] = result["item"]["version"]

    def found() -> Any:
        items = model.stage.api.get(f"/v1/inbox{org.query}", model.owner_token(org)).data
        return {"results": [{"id": item["id"], "statusCode": 200, "item": item} for item in items]}

    changes = [{"id": item, "status": "accepted", "version": version} for item, version in org.versions.items()]
    return Request(f"/v1/inbox{org.query}", 200, {"items": changes}, apply, org=org, found=found)


# Repositories


@modeled
def disconnect_repository(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if org.repository is None or pick % 4:
        return None

    def apply(data: Any) -> None:
        org.repository = None
        org.links.clear()

    return Request(f"/v1/code-audit/repositories/{org.repository}", 200, None, apply, 404, org)


@modeled
def create_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    project = _chosen(org.projects, pick)
    if org.repository is None or project is None:
        return None

    def apply(data: Any) -> None:
        org.links.append(project)

    path, status = f"/v1/code-audit/repositories/{org.repository}/links", 409 if project in org.links else 201
    return Request(path, status, {"projectId": project}, apply, org=org)


def _link(org: Org, pick: int) -> tuple[str, str] | None:
    project = _chosen(org.links, pick)
    if org.repository is None or project is None:
        return None
    return f"/v1/code-audit/repositories/{org.repository}/links/{project}", project


@modeled
def update_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    found = _link(org, pick)
    return found and Request(found[0], 200, {"failureThreshold": "P1"}, org=org)


@modeled
def delete_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (found := _link(org, pick)) is None:
        return None
    return Request(found[0], 200, None, lambda data: org.links.remove(found[1]), 404, org)


# Webhooks


@modeled
def create_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    body = {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["credits.low"]}
    status = 201 if len(org.hooks) < webhooks.WEBHOOKS_PER_ORGANIZATION else 409
    path = f"/v1/webhook-endpoints{org.query}"
    found = partial(model.new_one, org, path, org.hooks)
    return Request(path, status, body, lambda data: org.hooks.append(data["id"]), org=org, found=found)


@modeled
def update_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}", 200, {"status": ("enabled", "disabled")[pick % 2]}, org=org)


@modeled
def delete_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}", 200, None, lambda data: org.hooks.remove(hook), 404, org)


@modeled
def rotate_webhook_secret(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}/rotate-secret", 200, {}, org=org)
