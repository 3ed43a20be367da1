"""Wiring of `dashboard`."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from dashboard.errors import PageLook
from dashboard.routes import GROUPS

app = create_app(*GROUPS, error_page=PageLook().failure)
handler = create_handler(app)
