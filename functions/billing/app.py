"""Wiring of `billing`."""

import controlplane.diet  # isort: split  # noqa: F401 (before FastAPI is imported)
from billing.routes import router
from controlplane.app import create_app
from controlplane.lambda_handler import create_handler

app = create_app(router)
handler = create_handler(app)
