"""The branding `none` is served only while the plan includes removing it, and stays stored."""

from collections.abc import Iterator
from threading import Barrier
from typing import Any

import pytest

from controlplane.store import billing
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import get_project
from controlplane.store.table import table
from tests.functional.projects.builders import make_project
from tests.functional.projects.test_update_project import update
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.recorded import recorded_calls
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    return world.company("pro")


@pytest.fixture
def project(company: Company) -> ProjectItem:
    return make_project(company, branding="none")


def stored(project: ProjectItem) -> str | None:
    consent = get_project(project.project_id).consent
    return consent.branding if consent else None


def brandings(document: Any) -> Iterator[str]:
    """Yields every `branding` in a response."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from [value] if name == "branding" else brandings(value)
    elif isinstance(document, list):
        for entry in document:
            yield from brandings(entry)


def served(api: Api, token: str, project: ProjectItem, **change: Any) -> set[str]:
    """Returns the brandings in the responses of every operation that returns an existing project."""
    path = f"/v1/projects/{project.project_id}"
    replies = [
        api.get(path, token),
        api.get(f"{path}/consent", token),
        api.get("/v1/projects", token),
        api.get(f"/v1/projects?organizationId={project.project_id.organization_id}", token),
        api.patch(path, token, json_body=change or {"description": "Changed"}),
    ]
    found = [list(brandings(reply.data)) for reply in replies]
    assert all(found)
    return {branding for each in found for branding in each}


class TestDowngrade:
    def test_none_is_served_as_the_services_branding_and_returns_with_the_plan(
        self, company: Company, project: ProjectItem, api: Api, world: World
    ):
        credentials = [world.key(company), company.owner.token]
        for token in credentials:
            assert served(api, token, project) == {"none"}
        billing.change_plan(company.organization_id, "starter")
        for token in credentials:
            assert served(api, token, project) == {"assent"}
        assert stored(project) == "none"
        billing.change_plan(company.organization_id, "enterprise")
        for token in credentials:
            assert served(api, token, project) == {"none"}

    def test_other_brandings_do_not_depend_on_the_plan(self, company: Company, api: Api):
        project = make_project(company, branding="openassent")
        billing.change_plan(company.organization_id, "free")
        assert served(api, company.owner.token, project) == {"openassent"}

    def test_a_project_without_consent_has_no_branding(self, company: Company, project: ProjectItem, api: Api):
        assert ProjectItem.from_item({**project.to_item(), "consent": None}).served_on("free").consent is None


class TestChanges:
    def test_changing_another_field_keeps_none_and_needs_no_plan(
        self, company: Company, project: ProjectItem, api: Api
    ):
        billing.change_plan(company.organization_id, "starter")
        for fields in ({"projectName": "Market"}, {"consent": {"trustedOrigins": ["example.com", "b.example.com"]}}):
            reply = update(api, company.owner.token, project, **fields)
            assert (reply.status, set(brandings(reply.data))) == (200, {"assent"})
        assert stored(project) == "none"

    def test_sending_none_returns_402(self, company: Company, project: ProjectItem, api: Api):
        billing.change_plan(company.organization_id, "starter")
        reply = update(api, company.owner.token, project, consent={"branding": "none"})
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert stored(project) == "none"

    def test_sending_the_served_branding_back_replaces_none(self, company: Company, project: ProjectItem, api: Api):
        billing.change_plan(company.organization_id, "starter")
        (branding,) = served(api, company.owner.token, project)
        assert update(api, company.owner.token, project, consent={"branding": branding}).status == 200
        billing.change_plan(company.organization_id, "pro")
        assert served(api, company.owner.token, project) == {"assent"}


class TestCost:
    def test_the_plan_of_one_project_is_read_along_with_it(self, company: Company, project: ProjectItem, api: Api):
        path = f"/v1/projects/{project.project_id}"
        api.get(path, company.owner.token)
        with recorded_calls() as calls:
            api.get(path, company.owner.token)
        assert [call.operation for call in calls] == ["UpdateItem", "BatchGetItem"]

    def test_the_plan_of_a_list_is_read_at_the_same_time_as_the_list(
        self, company: Company, project: ProjectItem, api: Api
    ):
        both = Barrier(2, timeout=10)

        def meet(call, proceed):
            parameters = str(call.parameters)
            if "META" in parameters or "PROJECT#" in parameters:
                both.wait()
            return proceed()

        with intercepted(table.client, meet):
            assert api.get("/v1/projects", company.owner.token).status == 200
        assert not both.broken
