"""One request for every route of the project: what to send, and what must exist first.

A route of the template without a request here is reported as not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from benchmarks.world import World
from controlplane import ids
from controlplane.scopes import SCOPES
from controlplane.store import organizations, users
from controlplane.store.table import table

type Request = dict[str, Any]

PUBLIC = {"/health", "/openapi.json", "/v1/regions"}


def _nothing(_world: World) -> Request:
    return {}


def _email(world: World) -> str:
    return f"guest-{next(world.numbers)}@example.com"


def _member(world: World) -> Request:
    """Somebody new in the organization, by membership id."""
    person = users.create_user(_email(world), "Benchmark Member")
    for put in organizations.member_items(world.organization_id, "benchmark", "Benchmark", "member", person):
        table.put(put)
    return {"path": {"memberId": ids.member_id(world.organization_id, person["userId"])}}


def _new_organization(world: World) -> Request:
    """With a token of somebody else: the owner's own requests still have one organization to choose from."""
    n = next(world.numbers)
    return {"body": {"name": f"Founded {n}", "slug": f"founded-{n}"}, "user_token": _founder(world)}


@lru_cache
def _founder(world: World) -> str:
    person = users.create_user(_email(world), "Benchmark Founder")
    return users.create_token(person["userId"], sorted(SCOPES), 3600)


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


def _doomed_project(world: World) -> Request:
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


REQUESTS: dict[tuple[str, str], Callable[[World], Request]] = {
    ("GET", "/health"): _nothing,
    ("GET", "/openapi.json"): _nothing,
    ("GET", "/v1/regions"): _nothing,
    ("GET", "/v1/me"): _nothing,
    ("GET", "/v1/organizations"): _nothing,
    ("POST", "/v1/organizations"): _new_organization,
    ("GET", "/v1/organizations/{organizationId}"): _organization,
    ("GET", "/v1/members"): _fifty,
    ("PATCH", "/v1/members/{memberId}"): lambda world: {**_member(world), "body": {"role": "admin"}},
    ("DELETE", "/v1/members/{memberId}"): _member,
    ("GET", "/v1/invitations"): _fifty,
    ("POST", "/v1/invitations"): lambda world: {"body": {"email": _email(world), "role": "member"}},
    ("DELETE", "/v1/invitations/{invitationId}"): _invitation,
    ("GET", "/v1/projects"): _fifty,
    ("POST", "/v1/projects"): _new_project,
    ("GET", "/v1/projects/{projectId}"): _project,
    ("PATCH", "/v1/projects/{projectId}"): _changed_project,
    ("DELETE", "/v1/projects/{projectId}"): _doomed_project,
    ("GET", "/v1/projects/{projectId}/consent"): _project,
    ("DELETE", "/v1/projects/{projectId}/websites/{websiteId}"): _website,
    ("POST", "/v1/projects/{projectId}/vendors/{vendorId}/decision"): _vendor,
    ("GET", "/v1/api-keys"): _fifty,
    ("POST", "/v1/api-keys"): lambda world: {"body": {"name": f"key {next(world.numbers)}"}},
    ("DELETE", "/v1/api-keys/{keyId}"): _key,
    ("POST", "/v1/api-keys/{keyId}/roll"): _key,
    ("GET", "/v1/auth/keys"): _fifty,
    ("GET", "/v1/billing"): _nothing,
}

# The same route with another body that costs differently.
VARIANTS: dict[str, tuple[tuple[str, str], Callable[[World], Request]]] = {
    "new name": (("PATCH", "/v1/projects/{projectId}"), _renamed_project),
}

# The read that stands for a function's cold start; every one of them finds its caller in the table.
COLD = {
    "system": ("GET", "/v1/me"),
    "organizations": ("GET", "/v1/organizations/{organizationId}"),
    "members": ("GET", "/v1/members"),
    "projects": ("GET", "/v1/projects/{projectId}"),
    "api_keys": ("GET", "/v1/api-keys"),
    "billing": ("GET", "/v1/billing"),
}
# Refused to API keys, so started with a user token.
COLD_WITH_USER_TOKEN = {"members"}
