"""Projects that are named by their IDs, such as those that an API key is limited to. All reads are consistent."""

from collections.abc import Sequence

from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import ProjectPage


def list_projects(project_ids: Sequence[ProjectId], limit: int, after: str | None) -> ProjectPage:
    """Returns one page of those of the projects that exist, newest first, in the order of `projects.list_projects`."""
    wanted = sorted((keys.project(*it.location) for it in project_ids), reverse=True)
    items = table.batch_get([key for key in wanted if after is None or key.sk < after])
    found = [ProjectItem.from_item(item) for item in items if item is not None]
    if len(found) <= limit:
        return ProjectPage(found, None)
    return ProjectPage(found[:limit], found[limit - 1].key.sk)


def find_unknown(organization_id: str, project_ids: Sequence[ProjectId]) -> list[ProjectId]:
    """Returns those of the projects that the organization doesn't have."""
    own = [it for it in project_ids if it.organization_id == organization_id]
    found = table.batch_get([keys.project(*it.location) for it in own])
    existing = {it for it, item in zip(own, found, strict=True) if item is not None}
    return [it for it in project_ids if it not in existing]
