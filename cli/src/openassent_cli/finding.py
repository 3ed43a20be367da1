"""Finds resources by a slug, a name, or an ID."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import openassent
from openassent_cli.problems import Exit, Problem, UnknownName

if TYPE_CHECKING:
    from openassent import Assent
    from openassent.models import AuditRunReport, CallingCredential, Member

Item = TypeVar("Item")


def organization_id(client: "Assent", wanted: str) -> str:
    """Returns the ID of an organization given by ID or slug. Raises Problem."""
    if wanted.startswith("org_"):
        return wanted
    found = found_by_name("org", wanted, client.organizations.list(), "slug", "name")
    return str(found.id)


def chosen_slug(me: "CallingCredential", chosen: str | None) -> str | None:
    """Returns the slug of the caller's organization with that ID or slug, or of the active one if it is None."""
    chosen = chosen or me.active_organization_id
    return next((it.slug for it in me.organizations if chosen in {it.id, it.slug}), None)


def project_id(client: "Assent", wanted: str) -> str:
    """Returns the ID of a project given by ID, slug, or name. Raises Problem."""
    if wanted.startswith("prj_"):
        return wanted
    return str(found_by_name("project", wanted, client.projects.list(), "slug", "name").id)


def project_ids(client: "Assent", wanted: str | None) -> Iterator[str]:
    """Yields the ID of the project, or those of all projects if it is None. Raises Problem."""
    if wanted:
        yield project_id(client, wanted)
    else:
        yield from (it.id for it in client.projects.list())


def audit_run(client: "Assent", run_id: str, project: str | None) -> "AuditRunReport":
    """Returns a run of an audit in the project, or in any project. Raises Problem."""
    audits = [it for one in project_ids(client, project) for it in client.audits.list(one)]
    # An audit's last run is known without a request.
    audits.sort(key=lambda it: run_id not in {it.active_run_id, it.latest_run.run_id if it.latest_run else None})
    for it in audits:
        with contextlib.suppress(openassent.NotFound):
            return client.audits.run(it.project_id, it.audit_id, run_id)
    raise Problem(f"There is no run {run_id}.", "`assent audit list` lists audits with their last run.", Exit.NOT_FOUND)


def repository_id(client: "Assent", wanted: str) -> str:
    """Returns the ID of a connected repository given by ID, `owner/name`, or name. Raises Problem."""
    if wanted.startswith("rep_"):
        return wanted
    repositories = list(client.repositories.list())
    full = [it for it in repositories if f"{it.owner}/{it.name}".lower() == wanted.lower()]
    return str((full[0] if full else found_by_name("repo", wanted, repositories, "name")).id)


def member_of(client: "Assent", wanted: str) -> "Member":
    """Returns the member with that ID or email address. Raises Problem."""
    found = [it for it in client.members.list() if wanted.lower() in {it.id, it.user.id, it.user.email.lower()}]
    if not found:
        raise UnknownName("member", wanted)
    return found[0]


def found_by_name(kind: str, wanted: str, items: Iterable[Item], *names: str) -> Item:
    """Returns the item with that ID or name. Raises Problem if there isn't exactly one."""
    found = [item for item in items if wanted in {getattr(item, name, None) for name in names}]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownName(kind, wanted)
    raise Problem(f"Several {kind}s are called {wanted}.", "Use the ID.", Exit.USAGE)
