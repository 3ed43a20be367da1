"""Wiring of `api_keys`."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from api_keys.routes import router
from controlplane.platform.http.app import create_app
from controlplane.platform.http.lambda_handler import create_handler

app = create_app(router)
handler = create_handler(app)
