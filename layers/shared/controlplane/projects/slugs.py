"""Current and former slugs of projects, so that links to a project keep working after a rename.

Each slug is one item, which names its project. A former slug's item is marked: any project may claim its slug, which
ends the redirect. A project keeps its latest MAX_FORMER former slugs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Leg, Put
from controlplane.projects.items import ProjectItem

MAX_FORMER = 10
# The leg that removes the oldest former slug. It fails if another project has claimed the slug.
FORGOTTEN = "forgotten slug"


def claim(project: ProjectItem) -> Put:
    """Returns a leg that makes the project's slug its own. It fails if the slug is another project's current one."""
    return Put(_item(project, project.slug), "attribute_not_exists(pk) OR attribute_exists(#former)")


def rename(project: ProjectItem, name: str, slug: str) -> ProjectItem:
    """Returns the project with that name and slug, and with its previous slug as the latest of its former ones."""
    if slug == project.slug:
        return replace(project, name=name)
    former = [*(it for it in project.former_slugs if it != slug), project.slug]
    return replace(project, name=name, slug=slug, former_slugs=tuple(former[-MAX_FORMER:]))


def renaming_legs(before: ProjectItem, after: ProjectItem) -> dict[str, Leg]:
    """Returns the legs `slug`, `former slug`, and FORGOTTEN of the transaction that renames the project, if any."""
    if after.slug == before.slug:
        return {}
    legs: dict[str, Leg] = {
        "slug": claim(after),
        "former slug": Put({**_item(before, before.slug), "former": True}),
    }
    for slug in set(before.former_slugs) - {*after.former_slugs, after.slug}:
        legs[FORGOTTEN] = delete_if_own(before.project_id.organization_id, slug, before.project_id)
    return legs


def delete_if_own(organization_id: str, slug: str, project_id: str) -> Delete:
    """Returns a leg that deletes the slug of the project. It fails if it is another project's by then."""
    return Delete(keys.project_slug(organization_id, slug), "#projectId = :project", {"project": project_id})


def is_held_by(item: Mapping[str, Any] | None, project: ProjectItem) -> bool:
    """Returns True if this slug's item names the project."""
    return item is not None and item["projectId"] == project.project_id


def _item(project: ProjectItem, slug: str) -> dict[str, Any]:
    key = keys.project_slug(project.project_id.organization_id, slug)
    return {**key._asdict(), "projectId": project.project_id}
