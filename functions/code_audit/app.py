"""Wiring of `code_audit`. A module of routes is imported at the first request for one of its paths."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from controlplane.platform.http.route import RouteGroup

app = create_app(
    RouteGroup(
        "code_audit.routes",
        "/v1/code-audit/repositories",
        "/v1/code-audit/scans",
        "/v1/code-audit/scans/{scanId}/cancel",
        "/v1/code-audit/scans/{scanId}/unlock",
        "/v1/code-audit/scan-requests/{preparationId}",
    ),
    RouteGroup("code_audit.scan_routes", "/v1/code-audit/scans/{scanId}"),
    RouteGroup(
        "code_audit.link_routes",
        "/v1/code-audit/repositories/{repositoryId}",
        "/v1/code-audit/repositories/{repositoryId}/links",
        "/v1/code-audit/repositories/{repositoryId}/links/{projectId}",
    ),
    RouteGroup(
        "code_audit.finding_routes",
        "/v1/code-audit/scans/{scanId}/issues",
        "/v1/code-audit/scans/{scanId}/sarif",
        "/v1/code-audit/scans/{scanId}/diff",
    ),
)
handler = create_handler(app)
