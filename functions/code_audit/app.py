"""Wiring of `code_audit`."""

import controlplane.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from code_audit.routes import router
from controlplane.http.app import create_app
from controlplane.http.lambda_handler import create_handler

app = create_app(router)
handler = create_handler(app)
