"""The branding `none` is served only while the plan includes removing it, and stays stored."""

from collections.abc import Iterator
from threading import Barrier
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.platform.table.table import table
from controlplane.projects.items import ProjectItem
from tests.functional.projects.conftest import Organization, reread
from tests.support.calls import intercepted
from tests.support.recorded import recorded_calls
from tests.support.world import Person


@pytest.fixture
def project(acme):
    return acme.project(branding="none")


def brandings(document: Any) -> Iterator[str]:
    """Yields every `branding` in a response."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from [value] if name == "branding" else brandings(value)
    elif isinstance(document, list):
        for entry in document:
            yield from brandings(entry)


def served(acme: Organization, project: ProjectItem, plan: str, by: Person | None) -> set[str]:
    """Returns the brandings in the responses of every operation that returns an existing project, on the plan."""
    billing.change_plan(acme.id, plan)
    replies = [
        acme.get(project, by=by),
        acme.get(project, "/consent", by),
        acme.call("GET", by=by),
        acme.call("GET", f"?organizationId={acme.id}", by),
        acme.update(project, by, description="Changed"),
    ]
    found = [set(brandings(reply.data)) for reply in replies]
    assert all(found)
    return set().union(*found)


def test_none_is_served_as_the_services_branding_and_returns_with_the_plan(acme, project):
    for by in (None, acme.owner):
        for plan, branding in (("pro", "none"), ("starter", "assent"), ("enterprise", "none")):
            assert served(acme, project, plan, by) == {branding}
            assert reread(project).consent == project.consent
    other = acme.project(name="Other", branding="openassent")
    acme.delete(project)
    assert served(acme, other, "free", acme.owner) == {"openassent"}


def test_stored_branding_none_survives_other_changes_and_is_replaced_by_a_sent_branding(acme, project):
    billing.change_plan(acme.id, "starter")
    for fields in ({"projectName": "Market"}, {"consent": {"trustedOrigins": ["example.com", "b.example.com"]}}):
        reply = acme.update(project, **fields)
        assert (reply.status, {*brandings(reply.data)}) == (200, {"assent"})
    assert reread(project).consent == project.consent
    assert acme.update(project, consent={"branding": "none"}).code == "PLAN_REQUIRED"
    assert acme.update(project, consent={"branding": "assent"}).status == 200
    assert served(acme, project, "pro", None) == {"assent"}


@pytest.mark.usefixtures("project")
def test_the_plan_is_read_along_with_a_project_and_at_the_same_time_as_a_list(acme, project):
    without_consent = ProjectItem.from_item({**project.to_item(), "consent": None})
    assert without_consent.served_on("free").consent is None
    acme.get(project, by=acme.owner)
    with recorded_calls() as calls:
        acme.get(project, by=acme.owner)
    assert [call.operation for call in calls] == ["UpdateItem", "BatchGetItem"]
    both = Barrier(2, timeout=10)

    def meet(call, proceed):
        if "META" in str(call.parameters) or "PROJECT#" in str(call.parameters):
            both.wait()
        return proceed()

    with intercepted(table.client, meet):
        assert acme.call("GET", by=acme.owner).status == 200
    assert not both.broken
