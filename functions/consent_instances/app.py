"""Wiring of `consent_instances`."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from consent_instances.routes import router
from controlplane.platform.http.app import create_app, create_handler

app = create_app(router)
handler = create_handler(app)
