"""Wiring of `projects`. A module of routes is imported at the first request for one of its paths."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from controlplane.platform.http.route import RouteGroup

app = create_app(
    RouteGroup(
        "projects.routes",
        "/v1/projects",
        "/v1/projects/{projectId}",
        "/v1/projects/{projectId}/consent",
        "/v1/projects/{projectId}/websites/{websiteId}",
    ),
    RouteGroup(
        "projects.vendor_routes",
        "/v1/projects/{projectId}/vendors",
        "/v1/projects/{projectId}/vendors/privacy-table",
        "/v1/projects/{projectId}/vendors/{vendorId}/decision",
    ),
    RouteGroup(
        "projects.audit_routes",
        "/v1/projects/{projectId}/audits",
        "/v1/projects/{projectId}/audits/{auditId}",
        "/v1/projects/{projectId}/audits/{auditId}/runs",
        "/v1/projects/{projectId}/audits/{auditId}/runs/{runId}",
    ),
)
handler = create_handler(app)
