"""Routes of `system`: health, regions, the calling credential, and the documents that describe the service."""

import json
from typing import Annotated, Any

from fastapi import Header, Path, Response

from controlplane.access.access import Access, Requires
from controlplane.code_host.signed_requests import Delivery, SignedByGithub
from controlplane.platform.core.errors import RouteNotFound, UnknownCursor
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Page
from controlplane.platform.http.negotiation import IfNoneMatch
from controlplane.platform.http.pagination import Cursor, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table.health import DatabaseUnreachable, check_database
from system import documents, service, webhooks
from system.schemas import (
    CallingCredential,
    CallingPrincipal,
    Database,
    Health,
    ReachableOrganization,
    ReceivedWebhook,
    Region,
)

router = ControlRouter(tags=["System"])

_KEPT_A_WHILE = {"Cache-Control": "public, max-age=300"}

AnyCredential = Annotated[Access[None], Requires(projects="untouched")]
# Content negotiation isn't documented per operation.
Accept = Annotated[str, Header(include_in_schema=False)]


@router.get("/health", summary="Check the service's health")
@refuses(DatabaseUnreachable)
async def get_health() -> Health:
    """Checks that the service and its database respond."""
    check_database()
    return Health(ok=True, database=Database(ok=True))


@router.get("/v1/regions", summary="List regions")
async def list_regions(limit: Limit = 50, cursor: Cursor = None) -> Page[Region]:
    """Lists the regions of this deployment, in which a project can be created."""
    regions = [Region.showing(region) for region in settings.regions]
    # The list isn't a secret, so its cursors aren't signed: each is the last region's ID.
    starts = {region.id: place for place, region in enumerate(regions, 1)}
    if cursor is not None and cursor not in starts:
        raise UnknownCursor
    start = starts[cursor] if cursor else 0
    page = regions[start : start + limit]
    return Page(page, page[-1].id if start + limit < len(regions) else None)


@router.get("/v1/me", summary="Show the calling credential")
async def get_me(access: AnyCredential) -> CallingCredential:
    """Returns the identity of the calling credential, its scopes, and the organizations it can access."""
    principal = access.principal
    reachable, active = service.list_reachable(principal)
    active_id = active.organization_id if active else None
    readable = reachable if "organizations.read" in principal.scopes else []
    public_principal = CallingPrincipal(
        type=principal.kind,
        user_id=principal.user_id,
        key_id=principal.key_id,
        organization_id=principal.organization_id,
        created_by=principal.created_by,
        project_ids=None if access.project_ids is None else [*access.project_ids],
        expires_at=principal.key.restrictions.expires_at_text if principal.key else None,
        active_organization_id=active_id,
    )
    return CallingCredential(
        principal=public_principal,
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


_VERSION: dict[str, Any] = {"headers": {"ETag": {}}}


@router.get(
    "/openapi.json",
    summary="Get the OpenAPI document",
    responses={200: _VERSION, 304: {**_VERSION, "description": "The client's copy is current."}},
)
async def get_openapi(if_none_match: IfNoneMatch = None) -> Response:
    """Returns the OpenAPI document of the whole API, generated when this version was built."""
    return documents.get_document("openapi.json", if_none_match)


@router.get("/.well-known/oauth-authorization-server", summary="Get the authorization server metadata")
@refuses(RouteNotFound)
async def get_authorization_server() -> Response:
    """Returns the authorization server metadata (RFC 8414), which tells a device how to get a user token."""
    metadata = service.describe_authorization_server()
    return Response(json.dumps(metadata), media_type="application/json", headers=_KEPT_A_WHILE)


@router.get("/.well-known/oauth-protected-resource", include_in_schema=False)
async def get_protected_resource() -> Response:
    """Returns the protected resource metadata (RFC 9728), which names the authorization server."""
    metadata = service.describe_protected_resource()
    return Response(json.dumps(metadata), media_type="application/json", headers=_KEPT_A_WHILE)


@router.get("/.well-known/security.txt", include_in_schema=False)
async def get_security_contact() -> Response:
    """Returns whom to tell about a vulnerability (RFC 9116)."""
    return Response(service.describe_security_contact(), media_type="text/plain", headers=_KEPT_A_WHILE)


@router.get("/.well-known/agent-feedback.json", summary="Get the feedback discovery document")
async def get_agent_feedback() -> Response:
    """Returns the feedback.now discovery document, which tells agents how to send feedback on this service."""
    described = service.describe_feedback()
    return Response(json.dumps(described), media_type="application/json", headers=_KEPT_A_WHILE)


@router.post("/v1/github/webhooks", status_code=202, include_in_schema=False)
async def receive_webhook(delivery: Annotated[Delivery, SignedByGithub()]) -> ReceivedWebhook:
    """Receives a webhook of the GitHub App. Events that nothing follows from are acknowledged and ignored."""
    return ReceivedWebhook(accepted=webhooks.receive(delivery))


@router.get("/docs", include_in_schema=False)
async def show_reference(accept: Accept = "", if_none_match: IfNoneMatch = None) -> Response:
    """Returns the reference as HTML, or its introduction as Markdown if the client prefers that."""
    return documents.show_reference(accept, if_none_match)


@router.get("/docs/{fileName}", include_in_schema=False)
async def get_reference_file(
    file_name: Annotated[str, Path(alias="fileName")], accept: Accept = "", if_none_match: IfNoneMatch = None
) -> Response:
    """Returns a file of the reference: an operation (`createProject.md`), the errors, rules, a script, or a style."""
    return documents.get_file(file_name, accept, if_none_match)


@router.get("/docs/rules/{ruleId}", include_in_schema=False)
async def show_rule(rule_id: Annotated[str, Path(alias="ruleId")], if_none_match: IfNoneMatch = None) -> Response:
    """Returns the page of a rule of the code audit."""
    return documents.get_rule(rule_id, if_none_match)


@router.get("/llms.txt", include_in_schema=False)
async def list_for_agents(if_none_match: IfNoneMatch = None) -> Response:
    """Returns an index of the documentation for agents (llmstxt.org)."""
    return documents.get_document("llms.txt", if_none_match)
