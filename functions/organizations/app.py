"""Wiring of `organizations`. A module of routes is imported at the first request for one of its paths."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from controlplane.platform.http.route import RouteGroup

app = create_app(
    RouteGroup(
        "organizations.routes",
        "/v1/organizations",
        "/v1/organizations/{organizationId}",
        "/v1/me/active-organization",
    ),
    RouteGroup("organizations.log_routes", "/v1/audit-log"),
    RouteGroup("organizations.request_routes", "/v1/requests/{requestId}"),
    RouteGroup(
        "organizations.webhook_routes",
        "/v1/webhook-endpoints",
        "/v1/webhook-endpoints/{webhookId}",
        "/v1/webhook-endpoints/{webhookId}/rotate-secret",
        "/v1/webhook-endpoints/{webhookId}/deliveries",
        "/v1/webhook-endpoints/{webhookId}/deliveries/{eventId}/replay",
    ),
)
handler = create_handler(app)
