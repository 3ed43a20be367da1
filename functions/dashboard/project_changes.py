"""Business rules of the forms that create, change, and delete projects, and decide on their vendors."""

from collections.abc import Mapping

from controlplane.findings import vendors
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Leg
from controlplane.projects import rules
from controlplane.projects import store as projects
from controlplane.projects.changes import ProjectChange
from controlplane.projects.items import Address, ProjectItem
from controlplane.projects.websites import MAX_WEBSITES
from dashboard.forms import NotAcceptable, read_name
from dashboard.organizations import require_admin
from dashboard.projects import FoundVendor, is_vendor


class NotProjectAdmin(Forbidden):
    message = "Only admins and owners can delete projects, remove websites, and decide on vendors. Ask one of them."


class NotConfirmed(InvalidPayload):
    message = "That isn't the project's name or slug. Nothing was deleted."


def read_addresses(text: str) -> list[Address]:
    """Returns the addresses of a text with one on each line. Raises NotAcceptable."""
    listed = [line.strip() for line in text.splitlines() if line.strip()]
    if len(listed) > MAX_WEBSITES:
        raise NotAcceptable(f"A project has at most {MAX_WEBSITES} websites.")
    try:
        return rules.parse_addresses([], listed)
    except rules.UnusableOrigin as error:
        problems = [f"{listed[int(it['path'][-1])][:100]}: {it['message']}" for it in error.details]
        raise NotAcceptable(" ".join(problems[:5])) from None


def create_project(organization: Membership, form: Mapping[str, str], legs: Mapping[str, Leg]) -> str:
    """Creates the project of the form, and returns its slug.

    Raises NotAcceptable, UnsupportedRegion, and ProjectLimitReached.
    """
    name, region, addresses = read_name(form, "name"), form.get("region", ""), read_addresses(form.get("websites", ""))
    rules.require_region(region)
    made = projects.create_project(
        organization.organization_id,
        name,
        region=region,
        addresses=addresses,
        branding=settings.service_brand,
        extra_legs=legs,
    )
    return made.slug


def change_project(
    organization: Membership, project: ProjectItem, form: Mapping[str, str], user_id: str
) -> tuple[str, str]:
    """Applies the change of the form. Returns the project's slug, and the code of the confirmation.

    Raises NotAcceptable, NotProjectAdmin, Forbidden, NoConsent, BrandingNotIncluded, UnknownWebsite,
    LastTrustedWebsite, and UnknownProject if the project was deleted.
    """
    action, website_id = form.get("action", ""), form.get("website_id", "")
    if action == "remove-website":
        require_admin(organization, NotProjectAdmin)
        projects.delete_website(project, website_id, user_id)
        return project.slug, "website-removed"
    change, done = _read_change(project, action, form)
    return rules.update_project(project, organization.role, change).slug, done


def _read_change(project: ProjectItem, action: str, form: Mapping[str, str]) -> tuple[ProjectChange, str]:
    match action:
        case "describe":
            description = form.get("description", "").strip()
            if len(description) > rules.MAX_DESCRIPTION:
                raise NotAcceptable(f"A description has at most {rules.MAX_DESCRIPTION} characters.")
            return ProjectChange(name=read_name(form, "name"), description=description or None), "described"
        case "brand":
            branding = form.get("branding", "")
            if branding not in rules.BRANDINGS:
                raise NotAcceptable("Choose one of the brandings.")
            rules.get_consent(project)
            return ProjectChange(branding=branding), "branded"
        case "add-websites":
            addresses = read_addresses(form.get("websites", ""))
            if not addresses:
                raise NotAcceptable("Enter at least one address, for example shop.example.com.")
            return ProjectChange(added_websites=addresses), "websites-added"
        case "make-primary":
            return ProjectChange(first_website=form.get("website_id", "")), "primary-changed"
    raise NotAcceptable("Choose what to change.")


def delete_project(organization: Membership, project: ProjectItem, confirmation: str, user_id: str) -> None:
    """Deletes the project if the user typed its name or slug.

    Raises NotProjectAdmin, NotConfirmed, Forbidden, UnknownProject.
    """
    require_admin(organization, NotProjectAdmin)
    if confirmation.strip() not in (project.name.strip(), project.slug):
        raise NotConfirmed
    projects.delete_project(project, user_id)


def decide_vendor(found: FoundVendor, vendor_id: str, decision: str, user_id: str) -> str:
    """Stores the decision, and resolves the vendor's finding. Returns the code of the confirmation.

    Raises NotProjectAdmin, NotAcceptable, Forbidden, UnknownProject.
    """
    require_admin(found.organization, NotProjectAdmin)
    if not is_vendor(vendor_id):
        raise NotAcceptable("Enter the vendor's ID, for example segment.")
    state = vendors.STATES.get(decision)
    if state is None:
        raise NotAcceptable("Choose whether to approve or to ignore the vendor.")
    vendors.decide_vendor(found.project, vendor_id, state, user_id, found.seen)
    return state
