"""An organization whose projects tests create, change, and delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.platform.core.roles import Role
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import get_project
from tests.functional.projects.builders import create, make_project
from tests.support.api import Api, Reply
from tests.support.world import Person, World, uncounted

# The fields of a project that each generation of the API returns from lists and creations.
CURRENT = ("id", "slug", "name", "description", "organizationId", "organizationSlug", "dashboardUrl")
OLDER = ("projectId", "projectSlug", "projectName", "description", "organizationId", "organizationSlug", "dashboardURL")


# Fields that neither a creation nor a change accepts, and the path of their problem.
INVALID = [
    ({"websites": ["example.com", 5]}, ["websites", "1"]),
    ({"consent": {"branding": None}}, ["consent", "branding"]),
    ({"consent": {"trustedOrigins": ["a.example.com"] * 51}}, ["consent", "trustedOrigins"]),
    ({"websites": ["example.com"], "consent": {"trustedOrigins": ["example.com"]}}, ["consent", "trustedOrigins"]),
]


class Organization:
    """An organization. An API key sends the requests, unless another caller is given."""

    def __init__(self, api: Api, world: World, plan: str = "pro", owner: Person | None = None) -> None:
        self.api, self.world = api, world
        self.company = world.company(plan, owner=owner)
        self.id, self.owner = self.company.organization_id, self.company.owner
        self.pages = f"https://dashboard.assent.test/organizations/{self.company.slug}/projects"
        self.key = world.key(self.company)

    def member(self, role: Role = "member") -> Person:
        return self.world.member(self.company, role)

    def call(self, method: str, path: str = "", by: Person | None = None, **options: Any) -> Reply:
        return self.api.call(method, f"/v1/projects{path}", by.token if by else self.key, **options)

    def project(self, *origins: str, name: str = "Shop", branding: str = "assent") -> ProjectItem:
        """Stores a project with these websites, or with one."""
        return make_project(self.company, name, origins or ("example.com",), branding)

    def create(self, by: Person | None = None, query: str = "", **fields: Any) -> Reply:
        return create(self.api, by.token if by else self.key, query, **fields)

    def create_older(self, **fields: Any) -> Reply:
        """Creates a project in the older shape."""
        return self.create(organizationId=self.id, **fields)

    def get(self, project: ProjectItem, path: str = "", by: Person | None = None) -> Reply:
        return self.call("GET", f"/{project.project_id}{path}", by)

    def update(self, project: ProjectItem, by: Person | None = None, **fields: Any) -> Reply:
        return self.call("PATCH", f"/{project.project_id}", by, json_body=fields)

    def trust(self, project: ProjectItem, *origins: str) -> Reply:
        return self.update(project, consent={"trustedOrigins": origins})

    def delete(self, project: ProjectItem, by: Person | None = None) -> Reply:
        return self.call("DELETE", f"/{project.project_id}", by)

    def delete_website(self, project: ProjectItem, position: int = 0, by: Person | None = None) -> Reply:
        website = project.websites[position].website_id
        return self.call("DELETE", f"/{project.project_id}/websites/{website}", by)

    def decide(
        self, project: ProjectItem, decision: Any = "approve", vendor_id: str = "segment", by: Person | None = None
    ) -> Reply:
        """Decides about a vendor as the owner, unless another person is given."""
        path = f"/{project.project_id}/vendors/{vendor_id}/decision"
        return self.call("POST", path, by or self.owner, json_body={"decision": decision})


def reread(project: ProjectItem) -> ProjectItem:
    """Returns the project as it is stored now."""
    return get_project(project.project_id)


@contextmanager
def nothing_written() -> Iterator[None]:
    before = uncounted()
    yield
    assert uncounted() == before


@pytest.fixture
def acme(api, world):
    return Organization(api, world)
