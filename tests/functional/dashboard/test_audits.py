"""The pages of website audits below /organizations/{organizationSlug}/projects/{projectSlug}/audits."""

import base64
import re

import pytest

from controlplane.audits import runs, schedules, store
from controlplane.audits.items import LOST_AFTER_SECONDS
from controlplane.audits.store import RUNS_PER_DAY
from controlplane.projects import changes
from controlplane.projects import store as projects
from controlplane.projects.changes import ProjectChange
from dashboard.audits.pages import RUNS_PER_PAGE
from tests.functional.projects.builders import add_run, make_project
from tests.support.audit_log import all_entries
from tests.support.audit_reports import PAGE, finding, receive, report, request, vendor, visit
from tests.support.browser import text_of
from tests.support.cleanup import swept
from tests.support.each import each

JPEG = base64.b64encode(b"\xff\xd8\xff\xe0made up").decode()
HOTJAR = "https://static.hotjar.com/c/hotjar-1.js"
LOADS = finding("loaded-before-consent", "hotjar", vendorId="hotjar", title="Hotjar loads before consent")
IGNORES = finding("loads-after-refusal", "hotjar", vendorId="hotjar", title="Hotjar loads after refusal")
EARLY, LATE = request(HOTJAR, "hotjar", at=400), request(HOTJAR, "hotjar", at=2_000, afterChoice=True)
TRACKED = {
    "vendors": [
        vendor("hotjar", refused=True),
        vendor("stripe", category="payments", needsConsent=False, accepted=False),
    ],
    "visits": [
        visit(requests=[request(PAGE, at=100, kind="document", chain=[]), EARLY]),
        visit("refused", answeredBy="Klaro", requests=[EARLY, LATE]),
        visit("accepted", answeredBy="Klaro", requests=[LATE]),
    ],
}


@pytest.fixture
def audit(project):
    return store.create_audit(project, project.websites[0].website_id, None)


@pytest.fixture
def own(company, project):
    return f"/organizations/{company.slug}/projects/{project.slug}/audits"


def complete(audit, *findings, **fields):
    """Completes the audit's active run, or a new one, with that report. Returns the run's ID."""
    active = store.get_audit(audit.project_id, audit.audit_id).active_run_id
    run = runs.find_run(audit.project_id, audit.audit_id, active) if active else store.start_run(audit)
    receive(report(run, *findings, **{**TRACKED, **fields}))
    return run.run_id


@pytest.fixture
def shown(visitor, own, audit):
    """Returns the text of the page of a run with this report."""

    def show(*findings, **fields):
        reply = visitor.get(f"{own}/{audit.audit_id}/runs/{complete(audit, *findings, **fields)}")
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
    assert {"audit.create", "audit.run"} <= {it["action"] for it in all_entries()}
    again = visitor.press("Audit this website", fill={"How often": "Weekly"}, on=before)
    assert again.headers["location"] == f"{own}/{audit.audit_id}?done=created"
    other = visitor.forge(own, {"website_id": project.websites[0].website_id, "once": "once" * 8})
    assert other.headers["location"] == f"{own}/{audit.audit_id}"
    run = visitor.follow(reply)
    assert 'id="run" data-refresh="5"' in run.text
    assert "its first run has started" in text_of(run)
    listed = visitor.get(own)
    assert "Waits for proof of ownership Running Follow the run" in text_of(listed)
    assert visitor.offers("Audit this website") == 0


def test_a_form_creates_no_audit_if_its_first_run_may_not_start(visitor, own, project, audit):
    for _ in range(RUNS_PER_DAY):
        complete(audit)
    store.delete_audit(projects.get_project(project.project_id), audit.audit_id)
    visitor.get(own)
    reply = visitor.press("Audit this website")
    assert (reply.status, "6 runs of a website can be started a day." in text_of(reply)) == (429, True)
    assert (visitor.offers("Audit this website"), store.list_audits(project.project_id, 1, None).items) == (1, [])


def test_a_project_without_a_domain_says_what_to_do(visitor, company, project, own):
    bare = make_project(company, "App", origins=())
    text = text_of(visitor.get(own.replace(project.slug, bare.slug)))
    assert "Only domains can be audited, such as shop.example.com. Add a website" in text


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
    complete(audit, proof="dns")
    text = text_of(visitor.get(page))
    assert "It runs daily, next on " in text
    assert "Proven by its DNS record, as the run of " in text
    assert "Next on " in text_of(visitor.get(own))


def test_a_run_is_started_by_its_button_once_at_a_time(visitor, own, audit):
    page = f"{own}/{audit.audit_id}"
    before = visitor.get(page)
    assert visitor.press("Start a run").headers["location"].startswith(f"{page}/runs/run_")
    late = visitor.press("Start a run", on=before)
    assert (late.status, "A run of this audit is in progress." in text_of(late)) == (409, True)
    assert visitor.offers("Follow the run") == 1


def test_an_admin_deletes_an_audit_and_its_runs_stay(visitor, own, audit):
    run_id = complete(audit, LOADS)
    visitor.get(f"{own}/{audit.audit_id}")
    reply = visitor.press("Delete this audit")
    assert reply.headers["location"] == f"{own}?done=deleted"
    assert "The audit is deleted." in text_of(visitor.follow(reply))
    assert visitor.get(f"{own}/{audit.audit_id}").status == 404
    assert visitor.get(f"{own}/{audit.audit_id}/runs/{run_id}").status == 200


def test_a_member_starts_runs_and_deletes_none_and_a_page_shows_its_projects_audits(
    browser, world, company, own, audit
):
    run_id = complete(audit, LOADS)
    member = browser.signed_in(world.member(company, "member").user_id)
    member.get(f"{own}/{audit.audit_id}")
    assert (member.offers("Delete this audit"), member.offers("Start a run")) == (0, 1)
    below = f"/organizations/{company.slug}/projects/{make_project(company, 'Other').slug}/audits/{audit.audit_id}"
    assert [member.get(below + run).status for run in ("", f"/runs/{run_id}", "/runs/nope")] == [404] * 3


def test_runs_are_listed_by_page_and_a_former_address_leads_to_the_current_one(visitor, own, audit, project):
    listed = [complete(audit), *(add_run(project, audit.audit_id).run_id for _ in range(RUNS_PER_PAGE))]
    page = f"{own}/{audit.audit_id}"
    pages = [visitor.get(page), visitor.press("Older runs")]
    latest, older = (re.findall(r"/runs/(run_\w+)", it.text) for it in pages)
    assert (len(latest), sorted(latest + older)) == (RUNS_PER_PAGE, sorted(listed))
    assert visitor.offers("Latest runs") == 1
    changes.update_project(project, ProjectChange(name="Store"), may_remove_websites=False)
    for path in ("", f"/{audit.audit_id}", f"/{audit.audit_id}/runs/{listed[0]}"):
        reply = visitor.get(f"{own}{path}?done=created")
        new = own.replace("/shop/", "/store/")
        assert (reply.status, reply.headers["location"]) == (307, f"{new}{path}?done=created")


class TestRun:
    def test_it_shows_findings_columns_changes_and_the_timeline(self, shown, visitor):
        text = shown(LOADS, IGNORES, picture=JPEG)
        assert "2 findings: the website loads or stores something that it shouldn't." in text
        assert "Hotjar loads before consent Loaded before consent P1" in text
        bad = "Hotjar Analytics, without consent"
        assert f"Before a choice {bad} cdn.hotjar.com 1 other without need for consent Stripe Payments" in text
        assert f"After refusing {bad} cdn.hotjar.com After accepting Hotjar Analytics cdn.hotjar.com" in text
        assert f"0.4 s Hotjar Without consent script {HOTJAR}" in text
        assert f"The choice Page {PAGE} 2.0 s Hotjar With consent script {HOTJAR}" in text
        assert f"0.4 s Hotjar Without consent script {HOTJAR} The choice 2.0 s Hotjar Without consent" in text
        assert "1 request to the website itself" in text
        assert "_ga .shop.example.com 24 h, Secure, SameSite=Lax Before a choice" in text
        assert "1 key in the pages' storage" in text
        assert f'src="data:image/jpeg;base64,{JPEG}"' in visitor.last.text
        finding_page = visitor.press("Hotjar loads before consent")
        assert (finding_page.status, visitor.offers("Run of the audit")) == (200, 1)
        assert '&amp;vendor=Hotjar">Findings in the code about Hotjar</a>' in finding_page.text
        assert visitor.press("Run of the audit").status == 200

    def test_a_later_run_says_what_changed(self, shown, visitor):
        shown(LOADS)
        text = shown(IGNORES, vendors=[vendor("hotjar", refused=True), vendor("segment")])
        assert "Hotjar loads after refusal Loads after refusal New P1" in text
        gone = "Gone findings Loaded before consent: hotjar New vendors Segment Gone vendors stripe"
        assert f"Since the previous run {gone}" in text
        visitor.get(visitor.at.partition("/projects/")[0] + "/inbox?status=all")
        visitor.press("Hotjar loads before consent")
        assert "An audit resolved this finding Run run_" in text_of(visitor.last)

    def test_passed_says_what_was_visited_and_that_nothing_was_asked(self, shown):
        text = shown(banner=None, vendors=[], visits=[visit(), visit("refused")], made=["untouched", "refused"])
        assert "Passed" in text
        assert "Every visit was made, to 1 page. Nothing that needs consent was loaded or stored without it." in text
        assert text.count("The website didn't ask for a choice.") == 2
        assert "None that need consent." in text

    @each(
        ("code", "advice"),
        [
            ("bot-protection", "Let the audit's browser pass the protection"),
            ("limit", "so its visits ended early"),
            ("new-reason", "ask the operator of the service"),
        ],
    )
    def test_blocked_is_never_shown_as_good(self, shown, visitor, code, advice):
        reason = {"code": code, "message": "It shows a wall."}
        text = shown(outcome="blocked", reason=reason, visits=[], pages=[], vendors=[], made=[])
        assert "This audit was blocked. The website did not pass. It shows a wall." in text
        assert advice in text
        assert ("Passed" in text, "Third parties" in text, "badge good" in visitor.last.text) == (False, False, False)

    def test_visits_that_ended_early_or_were_not_made_say_so(self, shown):
        halted = visit(halted="It took longer than 150 s.")
        reason = {"code": "limit", "message": "The visit ended early. It took longer than 150 s."}
        text = shown(LOADS, reason=reason, visits=[halted], made=[])
        assert "The visit that didn't answer ended early. It took longer than 150 s." in text
        assert "The visit ended early, so this may not be everything." in text
        assert text.count("This visit wasn't made, so nothing is known.") == 2
        reason = {"code": "banner", "message": "The banner couldn't be answered as refused."}
        text = shown(LOADS, reason=reason, visits=[visit(), visit("refused")], made=["untouched"])
        assert "This audit is incomplete. The banner couldn't be answered as refused." in text
        assert "Nothing could answer the banner, so nothing is known." in text

    def test_a_lost_run_says_nothing_about_the_website(self, visitor, own, audit, now):
        run = store.start_run(audit)
        now.advance(LOST_AFTER_SECONDS + 60)
        assert swept(schedules.end_lost) == 1
        text = text_of(visitor.get(f"{own}/{audit.audit_id}/runs/{run.run_id}"))
        assert "Not completed" in text
        assert "This run was not completed, so it says nothing about the website." in text
        assert visitor.offers("Start another run") == 1

    def test_many_requests_are_folded(self, shown):
        many = [request(f"https://static.hotjar.com/{number}", "hotjar", at=number) for number in range(250)]
        text = shown(LOADS, visits=[visit(requests=many, requestCount=400, refused={"a.example": "private"})])
        assert "150 more requests to third parties" in text
        assert "The report keeps 250 of the 400 requests." in text
        assert "This page doesn't show all of them." in text
        assert "1 host that the audit didn't connect to" in text
