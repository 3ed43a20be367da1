"""Writes about what a deletion takes along."""

import pytest

from controlplane.erasure import cleanup
from controlplane.platform.queues.deletion_items import DeletionItem
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, LegFailed, table
from controlplane.projects import store as projects
from tests.functional.projects.builders import make_project
from tests.functional.stale_writes.cases import Case, Make, Refused, cases, check_refused
from tests.support.table import PREPARED
from tests.support.world import World


def project_of_a_deleted_organization(world: World) -> Case:
    project = make_project(world.company())
    organization = keys.organization(project.project_id.organization_id)
    return (
        lambda: projects.delete_project(project),
        lambda: table.delete(Delete(organization), PREPARED),
        projects.UnknownProject,
    )


def repository_of_a_deleted_organization(world: World) -> Case:
    company = world.company()
    organization = keys.organization(company.organization_id)
    return (
        lambda: world.connected_repository(company, linked=False),
        lambda: table.delete(Delete(organization), PREPARED),
        LegFailed,
    )


def deletion_that_another_sweep_finished(world: World) -> Case:
    project = make_project(world.company())
    projects.delete_project(project)
    deletion = DeletionItem.from_item(table.get(keys.deletion(project.project_id)) or {})

    def advance() -> None:
        if cleanup._store_position(deletion, {"step": 1, "after": "x", "final": False}) is None:
            raise Refused

    return advance, lambda: table.delete(Delete(deletion.key), PREPARED), Refused


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)
