"""Wiring of `system`."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from system.documents import show_error
from system.routes import router

app = create_app(router, error_page=show_error, below="/docs")
handler = create_handler(app)
