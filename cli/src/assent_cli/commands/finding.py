"""Finds what people name: a slug, a name, or an ID."""

from assent import Assent

from assent_cli.commands.shared import found_by_name


def organization_id(client: Assent, wanted: str) -> str:
    """Returns the ID of an organization given by ID or slug. Raises Problem."""
    if wanted.startswith("org_"):
        return wanted
    found = found_by_name("org", wanted, client.organizations.list(), "organization_slug", "organization_name")
    return str(found.organization_id)


def project_id(client: Assent, wanted: str) -> str:
    """Returns the ID of a project given by ID, slug, or name. Raises Problem."""
    if wanted.startswith("prj_"):
        return wanted
    return str(found_by_name("project", wanted, client.projects.list(), "slug", "name").id)


def repository_id(client: Assent, wanted: str) -> str:
    """Returns the ID of a connected repository given by ID, `owner/name`, or name. Raises Problem."""
    if wanted.startswith("rep_"):
        return wanted
    repositories = list(client.repositories.list())
    full = [it for it in repositories if f"{it.owner}/{it.name}".lower() == wanted.lower()]
    return str((full[0] if full else found_by_name("repo", wanted, repositories, "name")).id)
