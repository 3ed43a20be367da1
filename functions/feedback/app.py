"""Wiring of `feedback`."""

import controlplane.diet  # noqa: F401 (before FastAPI)  # isort: split

from controlplane.app import create_app
from controlplane.lambda_handler import create_handler
from feedback.routes import router

app = create_app(router)
handler = create_handler(app)
