"""HTTP of `system`: health, regions, me, and the documents that describe the service."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import Response

from controlplane.access import Access, Requires
from controlplane.app import ControlRouter
from controlplane.regions import REGIONS
from system import service
from system.schemas import CallingCredential, CallingPrincipal, Database, Health, ReachableOrganization, Region

router = ControlRouter(tags=["System"])

_KEPT_A_WHILE = {"Cache-Control": "public, max-age=300"}

AnyCredential = Annotated[Access[None], Requires()]


@router.get("/health", operation_id="getHealth")
async def get_health() -> Health:
    """Whether the service and its database answer. 503 `SERVICE_UNAVAILABLE` when the database does not."""
    service.check_database()
    return Health(ok=True, database=Database(ok=True))


@router.get("/v1/regions", operation_id="listRegions")
async def list_regions() -> list[Region]:
    """The regions a project can be created in."""
    return [Region(id=region, label=label) for region, label in REGIONS.items()]


@router.get("/v1/me", operation_id="getMe")
async def get_me(access: AnyCredential) -> CallingCredential:
    """The calling credential: who it is, what it may do, and which organizations it reaches."""
    principal = access.principal
    reachable, active = service.list_reachable(principal)
    active_id = active.organization_id if active else None
    readable = reachable if "organizations.read" in principal.scopes else []
    shown = CallingPrincipal(
        type=principal.kind,
        user_id=principal.user_id,
        key_id=principal.key_id,
        organization_id=principal.organization_id,
        created_by=principal.created_by,
        active_organization_id=active_id,
    )
    return CallingCredential(
        principal=shown,
        active_organization_id=active_id,
        scopes=sorted(principal.scopes),
        organizations=[
            ReachableOrganization(
                id=found.organization_id,
                slug=found.slug,
                name=found.name,
                organization_id=found.organization_id,
                organization_slug=found.slug,
                organization_name=found.name,
                role=found.role,
            )
            for found in readable
        ],
    )


@cache
def _description() -> bytes:
    return (Path(__file__).parent / "openapi.json").read_bytes()


@router.get("/openapi.json", operation_id="getOpenapi")
async def get_openapi() -> Response:
    """The machine-readable description of the whole API, as it was generated when this version was built."""
    return Response(_description(), media_type="application/json", headers=_KEPT_A_WHILE)


@router.get("/.well-known/oauth-authorization-server", operation_id="getAuthorizationServer")
async def get_authorization_server() -> Response:
    """Where and how a device gets a user token, as RFC 8414 has it. 404 where device authorization is switched off."""
    metadata = service.describe_authorization_server()
    return Response(json.dumps(metadata), media_type="application/json", headers=_KEPT_A_WHILE)


@router.get("/.well-known/agent-feedback.json", operation_id="getAgentFeedback")
async def get_agent_feedback() -> Response:
    """Where and how agents report on this service, as the feedback.now protocol has it."""
    described = service.describe_feedback()
    return Response(json.dumps(described), media_type="application/json", headers=_KEPT_A_WHILE)
