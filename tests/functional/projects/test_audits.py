"""Website audits in the store: created by the operator's command line, and shown and deleted by the API."""

import pytest

from controlplane.platform.core.ids import ProjectId
from controlplane.projects import audits, changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from controlplane.projects.store import get_project
from tests.functional.projects.builders import add_audits, make_project, stored
from tests.support.each import each
from tests.support.world import uncounted


def test_an_audit_and_its_runs_are_stored_for_an_existing_website_and_project(world):
    project = make_project(world.company())
    audit = audits.create_audit(project.project_id, project.websites[0].website_id, 7)
    assert get_project(project.project_id).websites[0].audits == (audit.audit_id,)
    assert [item["websiteId"]["S"] for item in stored("AUDIT#")] == [project.websites[0].website_id]
    assert [schedule["everyDays"]["N"] for schedule in stored("AUDITSCHEDULE#")] == ["7"]
    audits.record_run(project.project_id, audit.audit_id, "passed")
    assert [run["result"]["S"] for run in stored("AUDITRUN#")] == ["passed"]
    with pytest.raises(audits.UnknownAudit):
        audits.record_run(project.project_id, "aud_x", "passed")
    with pytest.raises(changes.UnknownWebsite):
        audits.create_audit(project.project_id, "web_x", 7)
    unknown = ProjectId.of(project.project_id.organization_id, "0" * 18)
    with pytest.raises(projects.UnknownProject):
        audits.create_audit(unknown, project.websites[0].website_id, 7)


@each("kind", ["wildcard", "any", "app", "development"])
def test_only_a_domain_can_be_audited(kind, world):
    company = world.company()
    project = projects.create_project(
        company.organization_id, "Shop", region="us-east", addresses=[Address("x", kind)], branding="assent"
    )
    before = uncounted()
    with pytest.raises(audits.NotAuditable):
        add_audits(project)
    assert uncounted() == before


@pytest.mark.parametrize(("websites", "most"), [(1, 5), (9, 40)])
def test_a_website_has_at_most_five_audits_and_a_project_forty(websites, most, world):
    project = make_project(world.company(), origins=[f"s{number}.example.com" for number in range(websites)])
    for position in range(most // 5):
        add_audits(project, position, 5)
    with pytest.raises(audits.AuditLimitReached):
        add_audits(project, websites - 1)
    assert len(stored("AUDIT#")) == most
