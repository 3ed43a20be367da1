"""The pages' menus, and the pages that a sign-in can lead back to."""

import re
from typing import NamedTuple

from controlplane.organizations.store import Membership
from controlplane.platform.core.settings import settings

_AREAS = (
    ("overview", "Overview", ""),
    ("inbox", "Inbox", "/inbox"),
    ("projects", "Projects", "/projects"),
    ("scans", "Scans", "/scans"),
    ("repositories", "Repositories", "/repositories"),
    ("keys", "Keys", "/keys"),
    ("webhooks", "Webhooks", "/webhooks"),
    ("members", "Members", "/members"),
    ("billing", "Billing", "/billing"),
    ("audit-log", "Audit log", "/audit-log"),
    ("settings", "Settings", "/settings"),
)
# Areas that members don't see.
_OF_ADMINS = {"audit-log"}
_DEVICE = "/device"


class Tab(NamedTuple):
    """A link of a menu. A template marks it as current by `{% set area = name %}`, or its page by `current=path`."""

    name: str
    label: str
    path: str


_ACCOUNT = (
    Tab("profile", "Profile", "/account"),
    Tab("notifications", "Notifications", "/account/notifications"),
    Tab("sessions", "Devices and sessions", "/sessions"),
    Tab("device", "Add a device", _DEVICE),
    Tab("invitations", "Invitations", "/invitations"),
)
# Further links of the person's menu.
_MORE = (
    Tab("export", "Export my data", "/account#export"),
    Tab("delete", "Delete my account", "/account/delete"),
)
# Paths that a sign-in can return to.
_PAGES = {tab.path for tab in _ACCOUNT} | {
    "/",
    "/account/delete",
    "/account/export",
    "/github/callback",
    "/organizations",
}
_SLUG = r"[a-z0-9-]{1,64}"
_PATTERNS = (
    # A page or download of an organization, such as …/acme/projects/shop/audits/aud_1/runs/run_1 or …/findings.csv.
    re.compile(rf"/organizations/{_SLUG}(?:/[a-z0-9_-]{{1,64}}){{0,6}}(?:\.[a-z]{{1,8}})?"),
    # The link of an invitation's email.
    re.compile(r"/invitations/[a-z0-9_]{1,64}"),
    re.compile(r"/device\?user_code=[A-Za-z]{4}-?[A-Za-z]{4}"),
)


def list_areas(organization: Membership) -> list[Tab]:
    """Returns the menu of the organization, as the role of this member sees it."""
    own = f"/organizations/{organization.slug}"
    hidden = _OF_ADMINS if organization.role == "member" else set()
    return [Tab(name, label, own + path) for name, label, path in _AREAS if name not in hidden]


def list_account_tabs() -> list[Tab]:
    """Returns the menu of the account's pages."""
    return [tab for tab in _ACCOUNT if tab.path != _DEVICE or settings.device_authorization_enabled]


def list_account_links() -> list[Tab]:
    """Returns the links of the person's menu."""
    return [*list_account_tabs(), *_MORE]


def own_page(target: str | None) -> str:
    """Returns the target if it is a dashboard page, or else `/`, which prevents open redirects."""
    if target is not None and (target in _PAGES or any(pattern.fullmatch(target) for pattern in _PATTERNS)):
        return target
    return "/"
