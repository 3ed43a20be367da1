"""Advisories: each creates one item per organization, which later editions replace."""

import pytest

from controlplane.store import inbox, projects
from controlplane.store.inbox_items import InboxItem
from controlplane.store.project_items import ProjectItem
from tests.functional.finding_intake.conftest import Intake, advisory, items_of
from tests.functional.projects.builders import make_project
from tests.support.world import Company, World, table_dump


class TestFirst:
    def test_the_first_advisory_creates_an_open_item(self, intake: Intake, company: Company):
        said = {
            "summary": "Records do not say which policy was agreed to.",
            "priority": "P0",
            "description": "Why it matters.",
            "remediation": "Update the runtime.",
            "references": ["https://docs.example.com/advisories?id=14"],
        }
        intake.take(advisory(company, **said))
        (item,) = items_of(company)
        assert {name: item[name] for name in said} == said
        assert (item["source"], item["status"], item["projectId"]) == ("advisory", "open", None)
        assert item["title"] == "Consent records lack the policy's version"
        assert (item["runtimeVendor"], item["observedAt"]) == (None, "2026-03-04T05:00:00.000Z")

    def test_a_projects_advisory_differs_from_its_organizations(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(advisory(company), advisory(company, projectId=project.project_id))
        assert {item["projectId"] for item in items_of(company)} == {None, project.project_id}

    def test_an_organizations_advisory_is_invisible_to_others(self, intake: Intake, company: Company, world: World):
        intake.take(advisory(company))
        assert items_of(world.company()) == []


class TestAgain:
    def test_a_duplicate_advisory_changes_nothing(self, intake: Intake, company: Company, now):
        intake.take(advisory(company))
        before = table_dump()
        now.advance(60)
        intake.take(advisory(company), advisory(company))
        assert table_dump() == before

    @pytest.mark.parametrize("reverse", [False, True])
    def test_the_later_edition_of_an_advisory_wins_in_either_order(
        self, intake: Intake, company: Company, reverse: bool
    ):
        editions = [
            advisory(company, title="First", publishedAt="2026-03-04T05:00:00Z"),
            advisory(company, title="Second", publishedAt="2026-03-04T05:00:01Z"),
        ]
        intake.take(*(reversed(editions) if reverse else editions))
        assert [item["title"] for item in items_of(company)] == ["Second"]

    def test_a_dismissed_advisory_stays_dismissed(self, intake: Intake, company: Company, now):
        intake.take(advisory(company))
        item = InboxItem.from_item(items_of(company)[0])
        inbox.change_status(item, "dismissed", item.version, company.owner.user_id, None)
        now.advance(60)
        intake.take(advisory(company, title="Second", publishedAt="2026-03-04T05:07:00Z"))
        assert [(entry["status"], entry["title"]) for entry in items_of(company)] == [("dismissed", "Second")]


class TestDropped:
    def test_an_advisory_for_a_deleted_project_is_dropped(self, intake: Intake, company: Company, project: ProjectItem):
        projects.delete_project(project)
        intake.take(advisory(company, projectId=project.project_id))
        assert items_of(company) == []
        assert (intake.waiting, intake.dead) == (0, [])


class TestDeadLettered:
    def test_of_an_organization_that_does_not_exist(self, intake: Intake, company: Company):
        before = table_dump()
        intake.take(advisory(company, organizationId="org_0123456789abcdef"))
        assert [reason for _, reason in intake.dead] == ["unknown organization"]
        assert table_dump() == before

    def test_of_another_organizations_project(self, intake: Intake, company: Company, world: World):
        foreign = make_project(world.company())
        intake.use_up(advisory(company, projectId=foreign.project_id))
        assert [reason for _, reason in intake.dead] == ["malformed: advisory contradiction"]
        assert items_of(company) == []
