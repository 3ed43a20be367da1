"""The pages' menus: the areas of an organization, and those of a person's account."""

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


def list_areas(organization: Membership) -> list[Tab]:
    """Returns the menu of the organization, as the role of this member sees it."""
    own = f"/organizations/{organization.slug}"
    hidden = _OF_ADMINS if organization.role == "member" else set()
    return [Tab(name, label, own + path) for name, label, path in _AREAS if name not in hidden]


def list_account_tabs() -> list[Tab]:
    """Returns the menu of the account's pages."""
    return [tab for tab in _ACCOUNT if _is_offered(tab)]


def list_account_links() -> list[Tab]:
    """Returns the links of the person's menu."""
    return [tab for tab in (*_ACCOUNT, *_MORE) if _is_offered(tab)]


def _is_offered(tab: Tab) -> bool:
    return tab.path != _DEVICE or settings.device_authorization_enabled
