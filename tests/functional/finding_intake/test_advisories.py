"""Advisories: each creates one item per organization, which later editions replace."""

from controlplane.projects import store as projects
from tests.functional.projects.builders import make_project
from tests.support.world import table_dump


def test_the_first_advisory_creates_an_open_item_and_duplicates_change_nothing(intake, now):
    said = {
        "summary": "Records do not say which policy was agreed to.",
        "priority": "P0",
        "description": "Why it matters.",
        "remediation": "Update the runtime.",
        "references": ["https://docs.example.com/advisories?id=14"],
    }
    intake.take(intake.advisory(**said))
    stored = {
        **said,
        "source": "advisory",
        "status": "open",
        "projectId": None,
        "title": "Consent records lack the policy's version",
        "runtimeVendor": None,
        "observedAt": "2026-03-04T05:00:00.000Z",
    }
    assert {name: intake.item[name] for name in stored} == stored
    before = table_dump()
    now.advance(60)
    intake.take(intake.advisory(**said), intake.advisory(**said))
    assert table_dump() == before


def test_a_projects_advisory_differs_from_its_organizations(intake):
    intake.take(intake.advisory(), intake.advisory(projectId=intake.project.project_id))
    assert {item["projectId"] for item in intake.items} == {None, intake.project.project_id}


def test_a_dismissed_advisory_stays_dismissed(intake, now):
    intake.take(intake.advisory())
    intake.decide("dismissed")
    now.advance(60)
    intake.take(intake.advisory(title="Second", publishedAt="2026-03-04T05:07:00Z"))
    assert (intake.item["status"], intake.item["title"]) == ("dismissed", "Second")


def test_an_advisory_for_a_deleted_project_is_dropped(intake):
    projects.delete_project(intake.project)
    intake.take(intake.advisory(projectId=intake.project.project_id))
    assert (intake.items, intake.letters) == ([], (0, []))


def test_an_advisory_for_an_unknown_organization_or_anothers_project_is_dead_lettered(intake, world):
    foreign = make_project(world.company())
    before = table_dump()
    intake.take(intake.advisory(organizationId="org_0123456789abcdef"))
    intake.use_up(intake.advisory(projectId=foreign.project_id))
    assert intake.letters == (0, ["unknown organization", "malformed: advisory contradiction"])
    assert table_dump() == before
