"""The pages of website audits below /organizations/{organizationSlug}/projects/{projectSlug}/audits."""

import re

import pytest

from controlplane.audits import store
from controlplane.audits.store import RUNS_PER_DAY
from controlplane.projects import store as projects
from tests.functional.dashboard.conftest import HOSTILE
from tests.functional.projects.builders import make_project
from tests.support.browser import text_of
from tests.support.each import each
from tests.support.website_audits import SCRIPT, complete, finding, report, request, vendor, visit


@pytest.fixture
def project(company):
    return make_project(company)


@pytest.fixture
def audit(project):
    return store.create_audit(project, project.websites[0].website_id, None)


@pytest.fixture
def own(company, project):
    return f"/organizations/{company.slug}/projects/{project.slug}/audits"


@pytest.fixture
def shown(visitor, own, audit):
    """Returns the text of the page of a run with this report."""

    def show(told, **options):
        run = complete(audit, told, **options)
        reply = visitor.get(f"{own}/{audit.audit_id}/runs/{run.run_id}")
        assert reply.status == 200
        return text_of(reply)

    return show


def test_a_form_creates_an_audit_of_a_domain_and_starts_its_first_run_once(visitor, own, project):
    before = visitor.get(own)
    assert "Audit this website" in visitor.buttons()
    reply = visitor.press("Audit this website", fill={"How often": "Weekly"})
    (audit,) = store.list_audits(project.project_id, 10, None).items
    assert (audit.url, audit.schedule, audit.active_run_id is not None) == ("https://example.com/", "weekly", True)
    assert reply.headers["location"] == f"{own}/{audit.audit_id}/runs/{audit.active_run_id}?done=created"
    again = visitor.press("Audit this website", fill={"How often": "Weekly"}, on=before)
    assert again.headers["location"] == reply.headers["location"]
    run = visitor.follow(reply)
    assert 'id="run" data-refresh="5"' in run.text
    assert "its first run has started" in text_of(run)
    listed = visitor.get(own)
    assert "Waits for proof of ownership Running Follow the run" in text_of(listed)
    assert visitor.offers("Audit this website") == 0


def test_a_project_without_a_domain_says_what_to_do(visitor, company, project, own):
    projects.get_project(project.project_id)
    bare = make_project(company, "App", origins=())
    text = text_of(visitor.get(own.replace(project.slug, bare.slug)))
    assert "Only domains can be audited, such as shop.example.com. Add a website" in text
    reply = visitor.forge(own, {"website_id": "web_nope", "once": "once" * 8})
    assert (reply.status, "Error: " in reply.text) == (404, True)
    reply = visitor.forge(own, {"website_id": project.websites[0].website_id, "schedule": "hourly", "once": "once" * 8})
    assert (reply.status, "Choose one of the schedules, or none." in text_of(reply)) == (400, True)


def test_an_audit_has_a_schedule_that_waits_for_proof_and_shows_how_to_prove(visitor, own, audit):
    page = f"{own}/{audit.audit_id}"
    text = text_of(visitor.get(page))
    assert "It runs when someone starts it." in text
    for told in ("_assent-audit.example.com", "https://example.com/.well-known/assent-audit.txt"):
        assert told in text
    assert text.count(audit.token) == 2
    reply = visitor.press("Save", fill={"How often": "Daily"})
    assert reply.headers["location"] == f"{page}?done=scheduled"
    assert "It will run daily, once a run has seen that the website is yours" in text_of(visitor.follow(reply))
    complete(audit, report("passed"), proof="dns")
    text = text_of(visitor.get(page))
    assert "It runs daily, next on " in text
    assert "Proven by its DNS record, as the run of " in text
    assert "Next on " in text_of(visitor.get(own))
    assert visitor.forge(page, {"schedule": "hourly"}).status == 400


def test_a_run_is_started_by_its_button_once_at_a_time_and_six_times_a_day(visitor, own, audit):
    page = f"{own}/{audit.audit_id}"
    before = visitor.get(page)
    assert visitor.press("Start a run").headers["location"].startswith(f"{page}/runs/run_")
    late = visitor.press("Start a run", on=before)
    assert (late.status, "A run of this audit is in progress." in text_of(late)) == (409, True)
    assert visitor.offers("Follow the run") == 1
    for _ in range(RUNS_PER_DAY):
        complete(audit, report("passed"))
    assert visitor.press("Start a run", on=before).status == 429


def test_an_admin_deletes_an_audit_and_its_runs_stay(visitor, own, audit, world, company, browser):
    run = complete(audit, report())
    visitor.get(f"{own}/{audit.audit_id}")
    reply = visitor.press("Delete this audit")
    assert reply.headers["location"] == f"{own}?done=deleted"
    assert "The audit is deleted." in text_of(visitor.follow(reply))
    assert visitor.get(f"{own}/{audit.audit_id}").status == 404
    assert visitor.get(f"{own}/{audit.audit_id}/runs/{run.run_id}").status == 200


def test_other_roles_and_organizations_see_what_is_theirs(browser, world, company, own, audit, project):
    run = complete(audit, report())
    member = browser.signed_in(world.member(company, "member").user_id)
    member.get(f"{own}/{audit.audit_id}")
    assert (member.offers("Delete this audit"), member.offers("Start a run")) == (0, 1)
    other = world.company(owner=world.person())
    theirs = make_project(other)
    stranger = browser.signed_in(other.owner.user_id)
    for path in ("", f"/{audit.audit_id}", f"/{audit.audit_id}/runs/{run.run_id}"):
        assert stranger.get(f"{own}{path}").status == 404
    below = f"/organizations/{other.slug}/projects/{theirs.slug}/audits/{audit.audit_id}"
    assert {stranger.get(below).status, stranger.get(f"{below}/runs/{run.run_id}").status} == {404}
    assert stranger.get(f"{below}/runs/nope").status == 404


class TestRun:
    def test_it_shows_findings_columns_changes_and_the_timeline(self, shown):
        text = shown(report(), picture=b"\xff\xd8jpeg")
        assert "2 findings: the website loads or stores something that it shouldn't." in text
        assert "Hotjar loads before consent Loaded before consent New P1" in text
        before, refused, accepted = re.findall(
            r"(?:Before a choice|After refusing|After accepting) (Hotjar [A-Z]\w*(?:, without consent)?)", text
        )
        assert (before, refused, accepted) == (*(["Hotjar Analytics, without consent"] * 2), "Hotjar Analytics")
        assert "1 other without need for consent Stripe Payments" in text
        assert f"0.4 s Hotjar Without consent script {SCRIPT}" in text
        assert f"The choice Page https://example.com/ 2.0 s Hotjar With consent script {SCRIPT}" in text
        assert "1 request to the website itself" in text
        assert "_fbp example.com 365 days, Secure, SameSite=Lax Before a choice" in text
        assert "1 key in the pages' storage" in text
