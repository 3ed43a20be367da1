"""Routes of `dashboard`, one module per subject: HTML pages that work without scripts. Errors are HTML pages, too.

A GET changes nothing except during sign-in. Every change is a POST of a form with the session's CSRF token.
"""

from dashboard import (
    device_routes,
    github_routes,
    invitation_routes,
    organization_routes,
    overview_routes,
    project_routes,
    repository_routes,
    scan_routes,
    session_routes,
    sign_in_routes,
)

ROUTERS = (
    overview_routes.router,
    sign_in_routes.router,
    device_routes.router,
    invitation_routes.router,
    session_routes.router,
    organization_routes.router,
    project_routes.router,
    scan_routes.router,
    repository_routes.router,
    github_routes.router,
)
