"""A project as one item of the table: its fields, and how they are read and written."""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.core import ids
from controlplane.store import keys
from controlplane.store.keys import Key

AUDITABLE_KIND = "domain"


class Address(NamedTuple):
    """A website's address in its normalized form, and the kind of address."""

    origin: str
    kind: str


class WebsiteItem(NamedTuple):
    website_id: str
    origin: str
    kind: str
    audits: tuple[str, ...] = ()


class ConsentItem(NamedTuple):
    """The consent instance. It trusts the origin of every website of its project."""

    instance_id: str
    slug: str
    name: str
    branding: str


class ProjectItem(NamedTuple):
    """A project as stored in the table. `version` changes with every write."""

    project_id: str
    name: str
    slug: str
    description: str | None
    region: str
    created_at: str
    version: str
    websites: tuple[WebsiteItem, ...]
    consent: ConsentItem | None

    @property
    def location(self) -> ids.Located:
        located = ids.locate(ids.PROJECT, self.project_id)
        if located is None:
            raise LookupError("a project's item holds no project id")
        return located

    @property
    def key(self) -> Key:
        return keys.project(*self.location)

    @property
    def audit_count(self) -> int:
        return sum(len(website.audits) for website in self.websites)

    @property
    def primary_website(self) -> WebsiteItem | None:
        """Returns the first domain, which is shown as the project's site, or None."""
        return next((website for website in self.websites if website.kind == AUDITABLE_KIND), None)

    def find_website(self, website_id: str) -> WebsiteItem | None:
        return next((website for website in self.websites if website.website_id == website_id), None)

    def rewritten(self) -> "ProjectItem":
        """Returns the project with a new version."""
        return self._replace(version=secrets.token_hex(8))


def read_project(item: Mapping[str, Any]) -> ProjectItem:
    """Returns the project that the stored attributes describe."""
    consent = item["consent"]
    return ProjectItem(
        item["projectId"],
        item["name"],
        item["slug"],
        item["description"],
        item["region"],
        item["createdAt"],
        item["version"],
        tuple(
            WebsiteItem(website["id"], website["origin"], website["kind"], tuple(website["audits"]))
            for website in item["websites"]
        ),
        ConsentItem(consent["instanceId"], consent["slug"], consent["name"], consent["branding"]) if consent else None,
    )


def written_project(project: ProjectItem) -> dict[str, Any]:
    """Returns the attributes of the project's item."""
    consent = project.consent
    return {
        **project.key._asdict(),
        "projectId": project.project_id,
        "name": project.name,
        "slug": project.slug,
        "description": project.description,
        "region": project.region,
        "createdAt": project.created_at,
        "version": project.version,
        "websites": [
            {"id": website.website_id, "origin": website.origin, "kind": website.kind, "audits": website.audits}
            for website in project.websites
        ],
        "consent": None
        if consent is None
        else {
            "instanceId": consent.instance_id,
            "slug": consent.slug,
            "name": consent.name,
            "branding": consent.branding,
        },
    }
