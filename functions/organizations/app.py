"""Wiring of `organizations`."""

import controlplane.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.http.app import create_app
from controlplane.http.lambda_handler import create_handler
from organizations import log_routes, request_routes, routes, webhook_routes

app = create_app(routes.router, log_routes.router, request_routes.router, webhook_routes.router)
handler = create_handler(app)
