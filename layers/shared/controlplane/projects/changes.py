"""Changes of a project's fields: its name with its slug, its description, its branding, and its websites."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

from controlplane.platform.core.actions import Action
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Leg, LegFailed
from controlplane.projects import slugs as project_slugs
from controlplane.projects import websites
from controlplane.projects.items import NO_BRANDING, Address, ProjectItem
from controlplane.projects.store import SlugTaken, change_until_written, distinct_slug, plan_check, slug_of


class ProjectChange(TypedDict, total=False):
    """The fields to change; absent keys leave their fields unchanged.

    `websites` and `trusted_origins` are complete new lists, in order: of all websites, and of the consent entries.
    `added_websites` become consent entries after the existing ones. `first_website` is the ID of one to move to the
    front. These two keep what others change at the same time.
    """

    name: str
    description: str | None
    branding: str
    websites: list[Address]
    trusted_origins: list[Address]
    added_websites: list[Address]
    first_website: str


def update_project(project: ProjectItem, change: ProjectChange, *, may_remove_websites: bool) -> ProjectItem:
    """Updates and returns the project. Never deletes an audit.

    Raises UnknownProject, UnknownWebsite, WebsiteRemovalNeedsAdmin, BrandingNotIncluded, and InvalidPayload for too
    many websites.
    """
    base = new_slug = slug_of(change.get("name", project.name))
    forgets = True

    def changed(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        after = _with_change(before, change, new_slug).with_new_version()
        websites.require_permitted(before, after, may_remove=may_remove_websites)
        legs = project_slugs.renaming_legs(before, after)
        if not forgets:
            legs.pop(project_slugs.FORGOTTEN, None)
        if change.get("branding") == NO_BRANDING:
            legs["plan"] = plan_check(project.project_id.organization_id, NO_BRANDING)
        return after, legs

    def update() -> ProjectItem:
        nonlocal new_slug, forgets
        try:
            return change_until_written(project, Action.PROJECT_UPDATE, changed)
        except SlugTaken:
            new_slug = distinct_slug(base)
            raise WriteConflict from None
        except LegFailed as failure:
            if failure.leg != project_slugs.FORGOTTEN:
                raise
            forgets = False  # another project has claimed the oldest former slug
            raise WriteConflict from None

    return retry_on_conflict(update, "the slug")


def _with_change(project: ProjectItem, change: ProjectChange, new_slug: str) -> ProjectItem:
    """Returns the project with the change applied; it gets `new_slug` if its name changes."""
    after = project
    if "name" in change and change["name"] != project.name:
        after = project_slugs.rename(after, change["name"], new_slug)
    if "description" in change:
        after = replace(after, description=change["description"])
    if "websites" in change:
        after = replace(after, websites=websites.replace_websites(project.websites, change["websites"]))
    if "trusted_origins" in change:
        after = replace(after, websites=websites.replace_entries(project.websites, change["trusted_origins"]))
    if "added_websites" in change:
        after = replace(after, websites=websites.add_entries(project.websites, change["added_websites"]))
    if "first_website" in change:
        after = replace(after, websites=websites.move_to_front(project.websites, change["first_website"]))
    if "branding" in change:
        if project.consent is None:
            raise LookupError("there is no consent to brand")
        after = replace(after, consent=replace(project.consent, branding=change["branding"]))
    return after
