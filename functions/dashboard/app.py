"""Wiring of `dashboard`."""

import controlplane.diet  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.app import create_app
from controlplane.lambda_handler import create_handler
from dashboard.routes import router

app = create_app(router)
handler = create_handler(app)
