"""Projects: one item each, which includes the websites and the consent instance, and items for the slugs.

Changes use an optimistic lock: a write is conditional on the `version` (a random write id) that was read, so no update
is lost. The transaction that creates or deletes a project also changes the organization's project count, which enforces
the plan's limit.

Each slug is one item, which names its project. The item of a former slug is marked, so that links to a project keep
working after a rename: any project may claim that slug, which ends the redirect.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from controlplane.organizations.store import UnknownOrganization, admin_check
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import NotFound, PlanLimitReached, PlanRequired, RoleRequired, known
from controlplane.platform.core.ids import InstanceId, ProjectId
from controlplane.platform.core.naming import slugify
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.queues import deletion_items
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, QueryPage, Recorded, Update, table
from controlplane.projects.items import NO_BRANDING, Address, ConsentItem, ProjectItem, WebsiteItem

# Deleting a project also deletes its audits, two items each, in one transaction of at most 100 items.
MAX_AUDITS = 40

_SLUG_LENGTH = 48
_SUFFIX_LENGTH = 4
_NEUTRAL_SLUG = "project"
# The pages of projects have these paths.
_PAGES = frozenset({"new"})
_ABSENT = "attribute_not_exists(pk)"


class UnknownProject(NotFound):
    """The project doesn't exist or was deleted."""


class BrandingNotIncluded(PlanRequired):
    message = "Removing the branding requires the Pro plan or higher. Ask {operator} to change the plan."


class ProjectLimitReached(PlanLimitReached):
    message = (
        "The organization has reached its plan's project limit. Delete a project, or ask {operator} to change the plan."
    )

    def __init__(self, plan: str, current: int) -> None:
        super().__init__(details={"limit": PLANS[plan].projects, "current": current, "plan": plan})


def list_projects(
    organization_id: str, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[ProjectItem]:
    """Returns one page of the organization's projects, newest first."""
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.PROJECT_PREFIX,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    ).read(ProjectItem.from_item)


def find_project(project_id: ProjectId) -> ProjectItem | None:
    """Returns the project, with a consistent read, or None."""
    return table.find(keys.project(*project_id.location), ProjectItem.from_item)


def get_project(project_id: ProjectId) -> ProjectItem:
    """Returns the project, with a consistent read. Raises UnknownProject."""
    return known(find_project(project_id), UnknownProject)


def get_project_by_slug(organization_id: str, slug: str) -> tuple[ProjectItem, str]:
    """Returns the organization's project that has that slug, or had it before a rename, and the organization's plan.

    All reads are consistent. Raises UnknownProject.
    """
    project_id, plan = resolve_slug(organization_id, slug)
    return get_project(project_id), plan


def resolve_slug(organization_id: str, slug: str) -> tuple[ProjectId, str]:
    """Returns the ID of the project that has or had that slug, and the organization's plan. Raises UnknownProject."""
    holder, organization = table.batch_get(
        [keys.project_slug(organization_id, slug), keys.organization(organization_id)]
    )
    if holder is None or organization is None:
        raise UnknownProject
    return ProjectId.stored(holder["projectId"]), organization["plan"]


def slug_of(name: str) -> str:
    """Returns the preferred slug for a project name, or a neutral slug if the name has no Latin letters."""
    slug = slugify(name)[:_SLUG_LENGTH].strip("-") or _NEUTRAL_SLUG
    return f"{slug}-{_NEUTRAL_SLUG}" if slug in _PAGES else slug


def distinct_slug(slug: str) -> str:
    """Returns the slug with a random ending, so that hardly any other project has it."""
    # The end of a new local id is random: 20 bits are enough for the few projects with the same name.
    return f"{slug}-{ids.new_local()[-_SUFFIX_LENGTH:]}"


def slug_item(project: ProjectItem, slug: str) -> dict[str, Any]:
    """Returns the item of one of the project's slugs, without the mark of a former one."""
    key = keys.project_slug(project.project_id.organization_id, slug)
    return {**key._asdict(), "projectId": project.project_id}


def claim_slug(project: ProjectItem) -> Put:
    """Returns a leg that makes the project's slug its own. It fails if the slug is another project's current one."""
    return Put(slug_item(project, project.slug), "attribute_not_exists(pk) OR attribute_exists(#former)")


def delete_own_slug(organization_id: str, slug: str, project_id: str) -> Delete:
    """Returns a leg that deletes the slug of the project. It fails if it is another project's by then."""
    return Delete(keys.project_slug(organization_id, slug), "#projectId = :project", {"project": project_id})


def _names(item: Mapping[str, Any] | None, project: ProjectItem) -> bool:
    """Returns True if this slug's item names the project."""
    return item is not None and item["projectId"] == project.project_id


def create_websites(addresses: Iterable[Address]) -> list[WebsiteItem]:
    """Returns the addresses as new consent entries."""
    return [WebsiteItem(website_id=ids.within(ids.WEBSITE), origin=it.origin, kind=it.kind) for it in addresses]


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
    consent = ConsentItem(instance_id=InstanceId.of(organization_id, local), slug=base, name=name, branding=branding)
    project = ProjectItem(
        project_id=ProjectId.of(organization_id, local),
        name=name,
        slug=base,
        description=None,
        region=region,
        created_at=clock.timestamp(),
        version="",
        websites=tuple(create_websites(addresses)),
        consent=consent,
    ).with_new_version()

    def create() -> ProjectItem:
        nonlocal project
        legs: dict[str, Leg] = {
            **(extra_legs or {}),
            "organization": _increment_count(organization_id, branding),
            "slug": claim_slug(project),
            "project": Put(project.to_item(), _ABSENT),
        }
        try:
            table.transact(legs, recorded(Action.PROJECT_CREATE, None, project))
        except LegFailed as failure:
            if _names(failure.items.get("slug"), project):
                return project  # our own write, whose response was lost
            if failure.leg == "organization":
                raise _plan_error(failure.item, branding) from None
            if failure.leg != "slug":
                raise
            slug = distinct_slug(base)
            project = replace(project, slug=slug, consent=consent._replace(slug=slug))
            raise WriteConflict from None
        return project

    return retry_on_conflict(create, "the slug")


def _plans_with(branding: str) -> list[str]:
    return [plan.id for plan in PLANS.values() if plan.remove_branding or branding != NO_BRANDING]


def _increment_count(organization_id: str, branding: str) -> Update:
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


def _plan_error(organization: Mapping[str, Any] | None, branding: str) -> Exception:
    """Returns the reason why the count of that organization wasn't incremented."""
    if organization is None:
        return UnknownOrganization()
    if organization["plan"] not in _plans_with(branding):
        return BrandingNotIncluded()
    return ProjectLimitReached(organization["plan"], organization["projects"])


def plan_check(organization_id: str, branding: str) -> Check:
    """Returns a leg that fails if the organization's plan doesn't include the branding."""
    allowing = _plans_with(branding)
    return Check(
        keys.organization(organization_id),
        f"#plan IN ({', '.join(f':{plan}' for plan in allowing)})",
        {plan: plan for plan in allowing},
    )


def audit_deletions(project: ProjectItem, deleted: Iterable[WebsiteItem], *, settles: bool = True) -> dict[str, Leg]:
    """Returns legs that delete the websites' audits and the entries of their schedules. Audit runs are kept.

    settles: leave their open findings to the sweep, which resolves them. Those of a deleted project are deleted.

    The legs are unconditional: the project's item lists the audits, and the same transaction checks its version. The
    sweep drops the entry of a schedule that is changed at the same time.
    """
    project_id = project.project_id
    audit_ids = [audit_id for website in deleted for audit_id in website.audits]
    found = [keys.audit(*project_id.location, audit_id) for audit_id in audit_ids]
    legs: dict[str, Leg] = {}
    for audit_id, key, item in zip(audit_ids, found, table.batch_get(found), strict=True):
        legs[audit_id] = Delete(key)
        if settles:
            subject_id = f"{audit_id}{deletion_items.IN_PROJECT}{project_id}"
            legs[f"{audit_id} findings"] = deletion_items.work_item(subject_id)
        if entry := audit_schedule_key(audit_id, project_id, item["schedule"] if item else None):
            legs[f"{audit_id} schedule"] = Delete(entry)
    return legs


def audit_schedule_key(audit_id: str, project_id: str, schedule: Schedule | None) -> Key | None:
    """Returns the key of the sweep's entry for the audit's next scheduled run. None: it has no schedule."""
    if schedule is None:
        return None
    at = next_run(schedule, audit_id, project_id, clock.now())
    return keys.scheduled_audit(clock.timestamp(at), audit_id)


def existing(item: Mapping[str, Any] | None) -> ProjectItem:
    """Returns the project with which a failed condition answered. Raises UnknownProject if it was deleted."""
    if item is None:
        raise UnknownProject from None
    return ProjectItem.from_item(item)


def recorded(action: Action, before: ProjectItem | None, after: ProjectItem | None) -> Recorded:
    """Returns the entry of a change in the audit log."""
    project = after or before
    if project is None:
        raise LookupError("there is no project")
    shown = [_shown(state) if state else {} for state in (before, after)]
    return Recorded(action, project.project_id.organization_id, project.project_id, project.name, *shown)


def _shown(project: ProjectItem) -> dict[str, Any]:
    """Returns the project's fields that the audit log shows."""
    return {
        "name": project.name,
        "slug": project.slug,
        "description": project.description,
        "branding": project.consent.branding if project.consent else None,
        "websites": [website.origin for website in project.websites],
        "trustedOrigins": project.trusted_origins,
        "audits": project.audit_count,
        "badge": project.badge is not None,
    }


def delete_project(project: ProjectItem, caller_id: str | None = None) -> ProjectItem:
    """Deletes the project with its consent instance, websites, audits, and schedules. Returns the deleted project.

    caller_id: the user who must be an admin at commit; None for an API key or the operator.
    Raises UnknownProject, RoleRequired. Its scans, inbox items, links, vendors, and audit runs are deleted in the
    background, through a work item that the same transaction writes.
    """
    organization_id = project.project_id.organization_id

    def delete() -> ProjectItem:
        nonlocal project
        legs: dict[str, Leg] = {
            **admin_check(caller_id, organization_id),
            "project": Delete(project.key, "#version = :expected", {"expected": project.version}),
            "slug": Delete(keys.project_slug(organization_id, project.slug)),
            "organization": Update(
                keys.organization(organization_id),
                "SET #projects = #projects - :one",
                "attribute_exists(pk)",
                {"one": 1},
            ),
            "deletion": deletion_items.work_item(project.project_id),
            **audit_deletions(project, project.websites, settles=False),
        }
        try:
            # It is deleted with its organization.
            errors = {"caller": RoleRequired, "organization": UnknownProject}
            table.transact(legs, recorded(Action.PROJECT_DELETE, project, None), errors)
        except LegFailed as failure:
            if failure.leg != "project":
                raise
            project = existing(failure.item)
            raise WriteConflict from None
        return project

    return retry_on_conflict(delete, "the project")
