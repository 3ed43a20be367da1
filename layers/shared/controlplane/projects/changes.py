"""Changes of a project's fields: its name with its slug, its description, its branding, and its websites.

A website is a consent entry, or audited, or both. Every website loads consent, and `trustedOrigins` lists the entries
alone. A new list never deletes an audit. After a rename, the former slug keeps leading to the project.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from controlplane.organizations.store import admin_check
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, InvalidPayload, NotFound, RoleRequired, known
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, table
from controlplane.projects.items import NO_BRANDING, Address, ProjectItem, WebsiteItem
from controlplane.projects.store import (
    BrandingNotIncluded,
    audit_deletions,
    claim_slug,
    create_websites,
    delete_own_slug,
    distinct_slug,
    existing,
    plan_check,
    recorded,
    slug_item,
    slug_of,
)

MAX_WEBSITES = 50
# A project keeps that many of its latest former slugs.
MAX_FORMER = 10
# The leg that removes the oldest former slug. It fails if another project has claimed the slug.
_FORGOTTEN = "forgotten slug"


class UnknownWebsite(NotFound):
    """The project doesn't have this website, or it was deleted."""


class LastTrustedWebsite(Conflict):
    message = "This is the last website that consent trusts. Add another one first, or delete the project."

    def __init__(self) -> None:
        super().__init__(details={"reason": "last_trusted_website"})


class WebsiteRemovalNeedsAdmin(RoleRequired):
    def __init__(self, removed: Sequence[WebsiteItem]) -> None:
        more = f" (and {len(removed) - 1} more)" if len(removed) > 1 else ""
        super().__init__(
            "admin",
            "member",
            f"This list omits {removed[0].origin}{more}. Only an admin or owner can remove a website.",
            reason="removes_websites",
            websites=[{"id": website.website_id, "origin": website.origin} for website in removed],
        )


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
        _require_permitted(before, after, may_remove=may_remove_websites)
        legs = _renaming_legs(before, after)
        if not forgets:
            legs.pop(_FORGOTTEN, None)
        if change.get("branding") == NO_BRANDING:
            legs["plan"] = plan_check(project.project_id.organization_id, NO_BRANDING)
        return after, legs

    def adapt(failed_leg: str) -> bool:
        nonlocal new_slug, forgets
        if failed_leg == "slug":
            new_slug = distinct_slug(base)
        elif failed_leg == _FORGOTTEN:
            forgets = False  # another project has claimed the oldest former slug
        else:
            return False
        return True

    return change_until_written(project, Action.PROJECT_UPDATE, changed, adapt)


def change_until_written(
    project: ProjectItem,
    action: Action,
    change: Callable[[ProjectItem], tuple[ProjectItem, Mapping[str, Leg]]],
    adapt: Callable[[str], bool] = lambda _: False,
) -> ProjectItem:
    """Applies `change` under an optimistic lock, retrying on the current item. Returns the changed project.

    change: maps the project to its changed state (with a new version) and the legs of the same transaction.
    adapt: gets the name of another leg that failed. Returns whether `change` now returns other legs, to be tried again.
    Raises UnknownProject, BrandingNotIncluded if the leg `plan` fails, RoleRequired if the leg `caller` fails, and any
    error that `change` raises.
    """

    def write() -> ProjectItem:
        nonlocal project
        after, extra_legs = change(project)
        try:
            record = recorded(action, project, after)
            table.transact({"project": put_changed(project, after), **extra_legs}, record)
        except LegFailed as failure:
            if "project" in failure.items:
                project = existing(failure.items["project"])
                if project.version == after.version:
                    return after  # our own write, whose response was lost
                raise WriteConflict from None
            if failure.leg == "plan":
                raise BrandingNotIncluded from None
            if failure.leg == "caller":
                raise RoleRequired from None
            if adapt(failure.leg):
                raise WriteConflict from None
            raise
        return after

    return retry_on_conflict(write, "the project")


def put_changed(before: ProjectItem, after: ProjectItem) -> Put:
    """Returns a leg that writes `after` if the project still has the version of `before`."""
    return Put(after.to_item(), "#version = :expected", {"expected": before.version})


def vendors_leg(before: ProjectItem, after: ProjectItem) -> Leg:
    """Returns the leg for a transaction that changes a vendor: it writes the project with its list of vendors changed.

    It fails if the project was deleted, or, unless both are the same, if it has changed.
    """
    return Check(before.key, "attribute_exists(pk)") if after is before else put_changed(before, after)


def delete_website(project: ProjectItem, website_id: str, caller_id: str | None = None) -> int:
    """Deletes a website with its audits and their schedules. Returns the number of audits. Their runs are kept.

    caller_id: the user who must be an admin at commit; None for an API key or the operator.
    Raises UnknownProject, UnknownWebsite, LastTrustedWebsite, RoleRequired.
    """
    deleted_audits = 0

    def without(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal deleted_audits
        website = known(before.find_website(website_id), UnknownWebsite)
        after = replace(before, websites=tuple(other for other in before.websites if other is not website))
        _require_trusted(before, after)
        deleted_audits = len(website.audits)
        admin = admin_check(caller_id, project.project_id.organization_id)
        return after.with_new_version(), {**admin, **audit_deletions(before, [website])}

    change_until_written(project, Action.WEBSITE_DELETE, without)
    return deleted_audits


def set_badge(project: ProjectItem, *, exists: bool, caller_id: str) -> ProjectItem:
    """Creates the project's badge at a new address, or revokes it. Raises UnknownProject, RoleRequired.

    caller_id: the user who must be an admin at commit, because the address is public.
    """
    secret = secrets.token_urlsafe(16) if exists else None

    def changed(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        after = replace(before, badge=secret).with_new_version()
        return after, admin_check(caller_id, project.project_id.organization_id)

    return change_until_written(project, Action.PROJECT_UPDATE, changed)


def _with_change(project: ProjectItem, change: ProjectChange, new_slug: str) -> ProjectItem:
    """Returns the project with the change applied; it gets `new_slug` if its name changes."""
    after = project
    if "name" in change and change["name"] != project.name:
        after = _rename(after, change["name"], new_slug)
    if "description" in change:
        after = replace(after, description=change["description"])
    if "websites" in change:
        after = replace(after, websites=_replace_websites(project.websites, change["websites"]))
    if "trusted_origins" in change:
        after = replace(after, websites=_replace_entries(project.websites, change["trusted_origins"]))
    if "added_websites" in change:
        after = replace(after, websites=_add_entries(project.websites, change["added_websites"]))
    if "first_website" in change:
        after = replace(after, websites=_move_to_front(project.websites, change["first_website"]))
    if "branding" in change:
        if project.consent is None:
            raise LookupError("there is no consent to brand")
        after = replace(after, consent=project.consent._replace(branding=change["branding"]))
    return after


def _rename(project: ProjectItem, name: str, slug: str) -> ProjectItem:
    """Returns the project with that name and slug, and with its previous slug as the latest of its former ones."""
    if slug == project.slug:
        return replace(project, name=name)
    former = [*(it for it in project.former_slugs if it != slug), project.slug]
    return replace(project, name=name, slug=slug, former_slugs=tuple(former[-MAX_FORMER:]))


def _renaming_legs(before: ProjectItem, after: ProjectItem) -> dict[str, Leg]:
    """Returns the legs `slug`, `former slug`, and _FORGOTTEN of the transaction that renames the project, if any."""
    if after.slug == before.slug:
        return {}
    legs: dict[str, Leg] = {
        "slug": claim_slug(after),
        "former slug": Put({**slug_item(before, before.slug), "former": True}),
    }
    for slug in set(before.former_slugs) - {*after.former_slugs, after.slug}:
        legs[_FORGOTTEN] = delete_own_slug(before.project_id.organization_id, slug, before.project_id)
    return legs


def _replace_websites(existing: Sequence[WebsiteItem], addresses: Collection[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites after a new list of websites: distinct addresses, in order.

    A website that isn't a consent entry doesn't become one by being listed, so a client that knows only `websites`
    doesn't change the entries by sending what it read. If no entry would be left, all listed websites become entries.
    """
    listed = _listed(existing, addresses)
    if not any(website.trusted for website in listed):
        return _replace_entries(existing, addresses)
    return _with_omitted(existing, listed)


def _replace_entries(existing: Sequence[WebsiteItem], addresses: Collection[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites after a new list of consent entries: distinct addresses, in order."""
    return _with_omitted(existing, [website._replace(trusted=True) for website in _listed(existing, addresses)])


def _add_entries(existing: Sequence[WebsiteItem], addresses: Sequence[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites with these distinct addresses as consent entries. New ones come last."""
    added = {address.origin for address in addresses}
    kept = [website._replace(trusted=True) if website.origin in added else website for website in existing]
    known = {website.origin for website in existing}
    return (*kept, *create_websites(address for address in addresses if address.origin not in known))


def _move_to_front(existing: Sequence[WebsiteItem], website_id: str) -> tuple[WebsiteItem, ...]:
    """Returns the websites with this one first. Raises UnknownWebsite."""
    first = [website for website in existing if website.website_id == website_id]
    if not first:
        raise UnknownWebsite
    return (*first, *(website for website in existing if website.website_id != website_id))


def _listed(existing: Iterable[WebsiteItem], addresses: Iterable[Address]) -> list[WebsiteItem]:
    """Returns the websites with these addresses. Existing ones keep their ids and audits."""
    kept = {website.origin: website for website in existing}
    return [kept.get(website.origin, website) for website in create_websites(addresses)]


def _with_omitted(existing: Iterable[WebsiteItem], listed: list[WebsiteItem]) -> tuple[WebsiteItem, ...]:
    """Returns the listed websites and the audited ones that the list omits, which keep their positions."""
    origins = {website.origin for website in listed}
    websites = [*listed]
    for position, website in enumerate(existing):
        if website.audits and website.origin not in origins:
            websites.insert(position, website._replace(trusted=False))
    return tuple(websites)


def _require_permitted(before: ProjectItem, after: ProjectItem, *, may_remove: bool) -> None:
    """Raises WebsiteRemovalNeedsAdmin, or InvalidPayload if the project would have too many websites."""
    entries = set(after.trusted_origins)
    removed = [website for website in before.websites if website.trusted and website.origin not in entries]
    if removed and not may_remove:
        raise WebsiteRemovalNeedsAdmin(removed)
    if len(after.websites) > MAX_WEBSITES:
        text = f"A project has at most {MAX_WEBSITES} websites, including the audited ones that this list omits."
        raise InvalidPayload.at([], text, "too_many_websites")


def _require_trusted(before: ProjectItem, after: ProjectItem) -> None:
    """Raises LastTrustedWebsite if the project has consent and would lose its last consent entry."""
    if before.consent is not None and before.trusted_origins and not after.trusted_origins:
        raise LastTrustedWebsite
