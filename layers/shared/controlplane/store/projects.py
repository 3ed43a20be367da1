"""Projects: one item each, which includes the websites and the consent instance, and a second item for the slug.

Changes use an optimistic lock: a write is conditional on the `version` (a random write id) that was read, so no update
is lost. The transaction that creates or deletes a project also changes the organization's project count, which enforces
the plan's limit.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

from controlplane.core import clock, ids
from controlplane.core.naming import slugify
from controlplane.core.plans import PLANS
from controlplane.store import deletions, keys
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.project_items import (
    Address,
    ConsentItem,
    ProjectItem,
    WebsiteItem,
    read_project,
    written_project,
)
from controlplane.store.table import (
    Check,
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    Put,
    StoreError,
    Throttled,
    Update,
    table,
)

NO_BRANDING = "none"
# Deleting websites or a project also deletes their audits, two items each, in one transaction of at most 100 items.
MAX_WEBSITES = 50
MAX_AUDITS = 40

_TRIES = 8
_SLUG_LENGTH = 48
_SUFFIX_LENGTH = 4
_NEUTRAL_SLUG = "project"


class UnknownProject(StoreError):
    """The project doesn't exist or was deleted."""


class UnknownWebsite(StoreError):
    """The project doesn't have this website, or it was deleted."""


class LastTrustedWebsite(StoreError):
    """The website is the only one left that the consent instance trusts."""


class WebsitesWouldGo(StoreError):
    """The change removes websites, which the caller isn't allowed to do."""


class SlugTaken(StoreError):
    """Another project of the organization has the slug."""


class BrandingNotIncluded(StoreError):
    """The organization's plan does not include consent without branding."""


class ProjectLimitReached(StoreError):
    """The organization has as many projects as its plan allows."""

    def __init__(self, plan: str, current: int) -> None:
        super().__init__(f"{current} projects on {plan}")
        self.plan = plan
        self.current = current


class ProjectPage(NamedTuple):
    projects: list[ProjectItem]
    next_sk: str | None


class ProjectChange(TypedDict, total=False):
    """The fields to change; absent keys leave their fields unchanged. `websites` is the complete new list, in order."""

    name: str
    description: str | None
    branding: str
    websites: list[Address]


def list_projects(organization_id: str, limit: int, after: str | None) -> ProjectPage:
    """Returns one page of the organization's projects, newest first."""
    page = table.query(
        keys.organization_pk(organization_id), prefix=keys.PROJECT_PREFIX, newest_first=True, limit=limit, after=after
    )
    return ProjectPage([read_project(item) for item in page.items], page.next_sk)


def get_project(project_id: str) -> ProjectItem:
    """Returns the project, with a consistent read. Raises UnknownProject."""
    located = ids.locate(ids.PROJECT, project_id)
    item = table.get(keys.project(*located)) if located else None
    if item is None:
        raise UnknownProject
    return read_project(item)


def get_project_by_slug(organization_id: str, slug: str) -> ProjectItem:
    """Returns the organization's project with that slug. Consistent. Raises UnknownProject."""
    holder = table.get(keys.project_slug(organization_id, slug))
    if holder is None:
        raise UnknownProject
    return get_project(holder["projectId"])


def slug_of(name: str) -> str:
    """Returns the preferred slug for a project name, or a neutral slug if the name has no Latin letters."""
    return slugify(name)[:_SLUG_LENGTH].strip("-") or _NEUTRAL_SLUG


def _distinct(slug: str) -> str:
    # The end of a new local id is random: 20 bits are enough for the few projects with the same name.
    return f"{slug}-{ids.new_local()[-_SUFFIX_LENGTH:]}"


def _slug_item(project: ProjectItem) -> dict[str, Any]:
    key = keys.project_slug(project.location.organization_id, project.slug)
    return {**key._asdict(), "projectId": project.project_id}


def _is_own(item: Mapping[str, Any] | None, project: ProjectItem) -> bool:
    return item is not None and item["projectId"] == project.project_id


def _websites(addresses: Iterable[Address], existing: Iterable[WebsiteItem] = ()) -> tuple[WebsiteItem, ...]:
    """Returns the addresses as websites; an existing website keeps its id and audits."""
    kept = {website.origin: website for website in existing}
    return tuple(
        kept.get(address.origin) or WebsiteItem(ids.within(ids.WEBSITE), address.origin, address.kind)
        for address in addresses
    )


def create_project(
    organization_id: str,
    name: str,
    *,
    region: str,
    addresses: Iterable[Address],
    branding: str,
    extra_legs: Mapping[str, Leg] | None = None,
) -> ProjectItem:
    """Creates a project with its consent instance. Raises BrandingNotIncluded, ProjectLimitReached.

    One transaction writes the slug, the project, and the organization's count. `extra_legs` precede these.
    Addresses must be distinct.
    """
    local = ids.new_local()
    base = slug_of(name)
    project = ProjectItem(
        ids.owned(ids.PROJECT, organization_id, local),
        name,
        base,
        None,
        region,
        clock.timestamp(),
        "",
        _websites(addresses),
        ConsentItem(ids.owned(ids.INSTANCE, organization_id, local), base, name, branding),
    ).rewritten()
    absent = "attribute_not_exists(pk)"
    for _ in range(_TRIES):
        legs: dict[str, Leg] = {
            **(extra_legs or {}),
            "organization": _count_one_more(organization_id, branding),
            "slug": Put(_slug_item(project), absent),
            "project": Put(written_project(project), absent),
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if _is_own(refusal.items.get("slug"), project):
                return project  # our own write, whose response was lost
            if refusal.leg == "organization":
                raise _refused_by_plan(refusal.item, branding) from None
            if refusal.leg != "slug":
                raise
            slug = _distinct(base)
            consent = ConsentItem(ids.owned(ids.INSTANCE, organization_id, local), slug, name, branding)
            project = project._replace(slug=slug, consent=consent)
        else:
            return project
    raise Throttled("every slug tried was taken")


def _plans_with(branding: str) -> list[str]:
    return [plan.id for plan in PLANS.values() if plan.remove_branding or branding != NO_BRANDING]


def _count_one_more(organization_id: str, branding: str) -> Update:
    """Returns a leg that increments the project count if the plan at the time of the write allows it."""
    allowing = _plans_with(branding)
    values: dict[str, Any] = {"one": 1}
    for plan in allowing:
        values |= {plan: plan, f"{plan}_limit": PLANS[plan].projects}
    return Update(
        keys.organization(organization_id),
        "SET #projects = #projects + :one",
        " OR ".join(f"(#plan = :{plan} AND #projects < :{plan}_limit)" for plan in allowing),
        values,
    )


def _refused_by_plan(organization: Mapping[str, Any] | None, branding: str) -> StoreError:
    if organization is None:
        return UnknownOrganization()
    if organization["plan"] not in _plans_with(branding):
        return BrandingNotIncluded()
    return ProjectLimitReached(organization["plan"], organization["projects"])


def _plan_check(organization_id: str, branding: str) -> Check:
    allowing = _plans_with(branding)
    return Check(
        keys.organization(organization_id),
        f"#plan IN ({', '.join(f':{plan}' for plan in allowing)})",
        {plan: plan for plan in allowing},
    )


def put_changed(before: ProjectItem, after: ProjectItem) -> Put:
    """Returns a leg that writes `after` if the project still has the version of `before`."""
    return Put(written_project(after), "#version = :seen", {"seen": before.version})


def audit_deletions(project: ProjectItem, websites: Iterable[WebsiteItem]) -> dict[str, Leg]:
    """Returns legs that delete the websites' audits and their schedules. Audit runs are kept.

    The legs are unconditional: the project's item lists the audits, and the same transaction checks its version.
    """
    legs: dict[str, Leg] = {}
    for audit_id in (audit_id for website in websites for audit_id in website.audits):
        legs[audit_id] = Delete(keys.audit(*project.location, audit_id))
        legs[f"{audit_id} schedule"] = Delete(keys.audit_schedule(*project.location, audit_id))
    return legs


def change_until_written(
    project: ProjectItem, change: Callable[[ProjectItem], tuple[ProjectItem, Mapping[str, Leg]]]
) -> ProjectItem:
    """Applies `change` under an optimistic lock, retrying on the current item. Returns the changed project.

    change: maps the project to its changed state (with a new version) and the legs of the same transaction.
    Raises UnknownProject, SlugTaken if the leg `slug` fails, BrandingNotIncluded if the leg `plan` fails, and any
    error that `change` raises.
    """
    for _ in range(_TRIES):
        after, extra_legs = change(project)
        try:
            _commit(put_changed(project, after), extra_legs)
        except LegFailed as refusal:
            if "project" in refusal.items:
                item = refusal.items["project"]
                if item is None:
                    raise UnknownProject from None
                if item["version"] == after.version:
                    return after  # our own write, whose response was lost
                project = read_project(item)
            elif refusal.leg == "slug":
                raise SlugTaken from None
            elif refusal.leg == "plan":
                raise BrandingNotIncluded from None
            else:
                raise
        else:
            return after
    raise Throttled("the project keeps changing")


def _commit(project: Put, extra_legs: Mapping[str, Leg]) -> None:
    if extra_legs:
        table.transact({"project": project, **extra_legs})
        return
    try:
        table.put(project)  # half the price of a transaction
    except ConditionFailed as failure:
        raise LegFailed({"project": failure.item}) from None


def update_project(project: ProjectItem, change: ProjectChange, *, may_remove_websites: bool) -> ProjectItem:
    """Updates and returns the project. Removing a website also deletes its audits and their schedules.

    Raises UnknownProject, WebsitesWouldGo, BrandingNotIncluded.
    """

    def changed(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        after = _with_change(before, change, new_slug).rewritten()
        removed = [website for website in before.websites if website not in after.websites]
        if removed and not may_remove_websites:
            raise WebsitesWouldGo
        legs = audit_deletions(before, removed)
        if after.slug != before.slug:
            legs["slug"] = Put(_slug_item(after), "attribute_not_exists(pk)")
            legs["oldSlug"] = Delete(keys.project_slug(before.location.organization_id, before.slug))
        if change.get("branding") == NO_BRANDING:
            legs["plan"] = _plan_check(before.location.organization_id, NO_BRANDING)
        return after, legs

    base = new_slug = slug_of(change.get("name", project.name))
    for _ in range(_TRIES):
        try:
            return change_until_written(project, changed)
        except SlugTaken:
            new_slug = _distinct(base)
    raise Throttled("every slug tried was taken")


def _with_change(project: ProjectItem, change: ProjectChange, new_slug: str) -> ProjectItem:
    """Returns the project with the change applied; it gets `new_slug` if its name changes."""
    after = project
    if "name" in change and change["name"] != project.name:
        after = after._replace(name=change["name"], slug=new_slug)
    if "description" in change:
        after = after._replace(description=change["description"])
    if "websites" in change:
        after = after._replace(websites=_websites(change["websites"], project.websites))
    if "branding" in change:
        if project.consent is None:
            raise LookupError("there is no consent to brand")
        after = after._replace(consent=project.consent._replace(branding=change["branding"]))
    return after


def delete_website(project: ProjectItem, website_id: str) -> int:
    """Deletes a website with its audits and their schedules. Returns the number of audits. Their runs are kept.

    Raises UnknownProject, UnknownWebsite, LastTrustedWebsite.
    """
    deleted_audits = 0

    def without(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal deleted_audits
        website = before.find_website(website_id)
        if website is None:
            raise UnknownWebsite
        if before.consent is not None and len(before.websites) == 1:
            raise LastTrustedWebsite
        deleted_audits = len(website.audits)
        after = before._replace(websites=tuple(other for other in before.websites if other is not website))
        # The check makes this a transaction, which can be retried with its token if the response is lost. Retrying a
        # conditional put would fail, and after another write it would look as if the website never existed.
        slug = Check(keys.project_slug(before.location.organization_id, before.slug), "attribute_exists(pk)")
        return after.rewritten(), {"own slug": slug, **audit_deletions(before, [website])}

    change_until_written(project, without)
    return deleted_audits


def delete_project(project: ProjectItem) -> ProjectItem:
    """Deletes the project with its consent instance, websites, audits, and schedules. Returns the deleted project.

    Raises UnknownProject. Audit runs are kept. Its scans, inbox items, links, and vendors are deleted in the
    background, through a work item that the same transaction writes.
    """
    for _ in range(_TRIES):
        location = project.location
        legs: dict[str, Leg] = {
            "project": Delete(project.key, "#version = :seen", {"seen": project.version}),
            "slug": Delete(keys.project_slug(location.organization_id, project.slug)),
            "organization": Update(
                keys.organization(location.organization_id),
                "SET #projects = #projects - :one",
                "attribute_exists(pk)",
                {"one": 1},
            ),
            "deletion": deletions.work_item(project.project_id),
            **audit_deletions(project, project.websites),
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg != "project":
                raise
            if refusal.item is None:
                raise UnknownProject from None
            project = read_project(refusal.item)
        else:
            return project
    raise Throttled("the project keeps changing")
