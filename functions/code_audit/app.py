"""Wiring of `code_audit`."""

import controlplane.diet  # isort: split  # noqa: F401 (before FastAPI is imported)
from code_audit.routes import router
from controlplane.app import create_app
from controlplane.lambda_handler import create_handler

app = create_app(router)
handler = create_handler(app)
