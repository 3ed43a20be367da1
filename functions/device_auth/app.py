"""Wiring of `device_auth`."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from device_auth import routes, session_routes

app = create_app(routes.router, session_routes.router)
handler = create_handler(app)
