"""Business rules of the projects' pages: which project a URL identifies."""

import re

from controlplane.core.errors import NotFound
from controlplane.store import projects
from controlplane.store.organizations import Membership
from controlplane.store.project_items import ProjectItem
from dashboard.organizations import find_membership

_SLUG = re.compile(r"[a-z0-9-]{1,64}")


class NoProject(NotFound):
    message = "This project doesn't exist, or you aren't a member of its organization. Its address follows its name."


def get_project(organization_slug: str, project_slug: str, user_id: str) -> tuple[Membership, ProjectItem]:
    """Returns a project of one of the user's organizations, as its plan serves it. Raises NoProject."""
    membership = find_membership(organization_slug, user_id)
    if membership is None or not _SLUG.fullmatch(project_slug):
        raise NoProject
    try:
        project, plan = projects.get_project_by_slug(membership.organization_id, project_slug)
    except projects.UnknownProject:
        raise NoProject from None
    return membership, project.served_on(plan)
