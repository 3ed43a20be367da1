"""Routes of `dashboard`, one module per group of pages: HTML that works without scripts. Errors are HTML pages, too.

A GET changes nothing except during sign-in. Every change is a POST of a form with the session's CSRF token. A module is
imported at the first request for one of its paths, which are listed here.
"""

from controlplane.platform.http.route import RouteGroup

# Imports of all pages run in advance, when Lambda gives a function more processor time.
from dashboard import parameters  # noqa: F401

_ORGANIZATION = "/organizations/{organizationSlug}"


def _below(*paths: str) -> list[str]:
    """Returns the paths, and all below them."""
    return [*paths, *(f"{path}/{{rest:path}}" for path in paths)]


GROUPS = (
    RouteGroup("dashboard.account.invitations", "/", *_below("/invitations")),
    RouteGroup("dashboard.notify.emails", *_below("/account/notifications", "/account/unsubscribe")),
    RouteGroup("dashboard.account.pages", "/account", "/account/export", "/account/delete"),
    RouteGroup("dashboard.account.sessions", *_below("/sessions")),
    RouteGroup("dashboard.account.devices", *_below("/device")),
    RouteGroup("dashboard.access.pages", *_below("/sign-in"), "/sign-up", "/login", "/sign-out", "/signed-out"),
    RouteGroup("dashboard.visitors.pages", "/check", "/pricing", "/status"),
    RouteGroup(
        "dashboard.code_host.pages",
        "/github/callback",
        *_below(f"{_ORGANIZATION}/repositories"),
        f"{_ORGANIZATION}/github",
    ),
    RouteGroup("dashboard.projects.badge", "/badges/{badge}"),
    RouteGroup(
        "dashboard.projects.report",
        *(f"{_ORGANIZATION}/projects/{{projectSlug}}/{page}" for page in ("report", "privacy-table")),
    ),
    RouteGroup("dashboard.audits.pages", *_below(f"{_ORGANIZATION}/projects/{{projectSlug}}/audits")),
    RouteGroup("dashboard.projects.pages", *_below(f"{_ORGANIZATION}/projects")),
    RouteGroup("dashboard.findings.pages", *_below(f"{_ORGANIZATION}/inbox")),
    RouteGroup("dashboard.scans.pages", *_below(f"{_ORGANIZATION}/scans")),
    RouteGroup("dashboard.api_keys.pages", *_below(f"{_ORGANIZATION}/keys")),
    RouteGroup("dashboard.notify.webhooks", *_below(f"{_ORGANIZATION}/webhooks")),
    RouteGroup("dashboard.organizations.members", *_below(f"{_ORGANIZATION}/members")),
    RouteGroup("dashboard.billing.pages", f"{_ORGANIZATION}/billing"),
    RouteGroup(
        "dashboard.organizations.audit_log", *(f"{_ORGANIZATION}/audit-log{kind}" for kind in ("", ".csv", ".json"))
    ),
    RouteGroup(
        "dashboard.organizations.pages",
        "/organizations",
        "/organizations/new",
        f"{_ORGANIZATION}/settings",
    ),
    RouteGroup("dashboard.organizations.overview", _ORGANIZATION),
    RouteGroup("dashboard.organizations.deletion", f"{_ORGANIZATION}/delete"),
    # Last: it has the addresses that no other route has.
    RouteGroup("dashboard.other_addresses", "/{rest:path}"),
)
