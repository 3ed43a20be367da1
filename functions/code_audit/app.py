"""Wiring of `code_audit`."""

import controlplane.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from code_audit import link_routes, report_routes, routes
from controlplane.http.app import create_app
from controlplane.http.lambda_handler import create_handler

app = create_app(routes.router, link_routes.router, report_routes.router)
handler = create_handler(app)
