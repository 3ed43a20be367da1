"""The resource that the routes of projects and of website audits share."""

from controlplane.access.access import Resource
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table import keys
from controlplane.projects.items import ProjectItem

PROJECT = Resource(
    "projectId", ProjectId, keys.project, ProjectItem.from_item, project_of=lambda project: project.project_id
)
