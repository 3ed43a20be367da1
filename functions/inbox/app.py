"""Wiring of `inbox`. A module of routes is imported at the first request for one of its paths."""

import controlplane.platform.core.lazy_imports  # isort: split  # noqa: F401 (before FastAPI is imported)
from controlplane.platform.http.app import create_app, create_handler
from controlplane.platform.http.route import RouteGroup

app = create_app(
    RouteGroup("inbox.routes", "/v1/inbox"),
    RouteGroup(
        "inbox.item_routes",
        "/v1/inbox/{itemId}",
        "/v1/inbox/{itemId}/comments",
        "/v1/inbox/{itemId}/comments/{commentId}",
    ),
    RouteGroup("inbox.issue_routes", "/v1/inbox/{itemId}/github-issue"),
)
handler = create_handler(app)
