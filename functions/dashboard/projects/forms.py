"""The forms that create and change projects, and decide on their vendors."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from controlplane.access.web_session import WebSession
from controlplane.findings import vendors
from controlplane.findings.vendors import Seen
from controlplane.platform.core.errors import RoleRequired
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Leg
from controlplane.projects import changes, rules
from controlplane.projects import store as projects
from controlplane.projects.changes import MAX_WEBSITES, ProjectChange
from controlplane.projects.items import Address, ProjectItem
from dashboard.forms import NotAcceptable, read_choice, read_name

# The actions on a project's badge, and whether it exists after them.
_BADGES = {"badge-created": True, "badge-revoked": False}
_OF_ADMINS = {"remove-website", *_BADGES}
_VENDOR = re.compile(r"[a-z0-9._-]{1,100}")


class NewProject(NamedTuple):
    """A project that a form describes."""

    name: str
    region: str
    addresses: list[Address]


def read_new_project(form: Mapping[str, str]) -> NewProject:
    """Returns the project that the form describes. Raises NotAcceptable, UnsupportedRegion."""
    read = NewProject(read_name(form), form.get("region", ""), _read_addresses(form))
    rules.require_region(read.region)
    return read


def create_project(organization_id: str, new: NewProject, legs: Mapping[str, Leg]) -> ProjectItem:
    """Creates the project of a form. Raises ProjectLimitReached."""
    return projects.create_project(organization_id, **new._asdict(), branding=settings.service_brand, extra_legs=legs)


def change_project(session: WebSession, project: ProjectItem) -> tuple[str, str]:
    """Applies the change of the form. Returns the project's slug, and the code of the confirmation.

    Raises NotAcceptable, RoleRequired, Forbidden, NoConsent, BrandingNotIncluded, UnknownWebsite,
    LastTrustedWebsite, and UnknownProject if the project was deleted.
    """
    action, website_id = session.form.get("action", ""), session.form.get("website_id", "")
    if action in _OF_ADMINS and not session.is_admin:
        raise RoleRequired("admin", session.organization.role)
    if action in _BADGES:
        changes.set_badge(project, exists=_BADGES[action], caller_id=session.user_id)
        return project.slug, action
    if action == "remove-website":
        changes.delete_website(project, website_id, session.user_id)
        return project.slug, "website-removed"
    change, done = _read_change(project, action, session.form)
    may_remove = session.organization.role != "member"
    return changes.update_project(project, change, may_remove_websites=may_remove).slug, done


def _read_change(project: ProjectItem, action: str, form: Mapping[str, str]) -> tuple[ProjectChange, str]:
    match action:
        case "describe":
            description = form.get("description", "").strip()
            if len(description) > rules.MAX_DESCRIPTION:
                raise NotAcceptable(f"A description has at most {rules.MAX_DESCRIPTION} characters.")
            return ProjectChange(name=read_name(form), description=description or None), "described"
        case "brand":
            branding = read_choice(form, "branding", rules.BRANDINGS, "Choose one of the brandings.")
            rules.get_consent(project)
            return ProjectChange(branding=branding), "branded"
        case "add-websites":
            addresses = _read_addresses(form)
            if not addresses:
                raise NotAcceptable("Enter at least one address, for example shop.example.com.")
            return ProjectChange(added_websites=addresses), "websites-added"
        case "make-primary":
            return ProjectChange(first_website=form.get("website_id", "")), "primary-changed"
    raise NotAcceptable("Choose what to change.")


def _read_addresses(form: Mapping[str, str]) -> list[Address]:
    """Returns the addresses of the form, one on each line. Raises NotAcceptable."""
    listed = [line.strip() for line in form.get("websites", "").splitlines() if line.strip()]
    if len(listed) > MAX_WEBSITES:
        raise NotAcceptable(f"A project has at most {MAX_WEBSITES} websites.")
    try:
        return rules.parse_addresses([], listed)
    except rules.UnusableOrigin as error:
        problems = [f"{listed[int(it['path'][-1])][:100]}: {it['message']}" for it in error.details]
        raise NotAcceptable(" ".join(problems[:5])) from None


def read_vendor(form: Mapping[str, str]) -> str:
    """Returns the vendor's ID. Raises NotAcceptable."""
    vendor_id = form.get("vendor_id", "").strip().lower()
    if not _VENDOR.fullmatch(vendor_id):
        raise NotAcceptable("Enter the vendor's ID, for example segment.")
    return vendor_id


def decide_vendor(session: WebSession, project: ProjectItem, vendor_id: str, seen: Seen) -> str:
    """Stores the form's decision, and resolves the vendor's finding. Returns the vendor's state, which confirms it.

    Raises NotAcceptable, Forbidden, UnknownProject.
    """
    refusal = "Choose whether to approve or to ignore the vendor."
    state = vendors.STATES[read_choice(session.form, "decision", vendors.STATES, refusal)]
    vendors.decide_vendor(project, vendor_id, state, session.user_id, seen)
    return state
