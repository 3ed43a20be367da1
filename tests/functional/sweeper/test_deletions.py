"""Background deletion: removes everything of a project, repository, or organization, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.erasure import deletions, leftovers
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.feedback import store as feedback
from controlplane.findings import detections, issue_attempts, publications, vendors
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues import outbox
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys, leases
from controlplane.platform.table.table import Delete, Put, table
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import execution, failures, findings, history, reads, unlocks
from controlplane.scans.items import ScanItem, UnknownScan
from controlplane.scans.progress import Coverage
from tests.functional.projects.builders import make_project, stored
from tests.support.api import Api
from tests.support.audits import history_of, lease_of, make_issue, make_scan
from tests.support.calls import before_the_transaction, before_the_update_of, intercepted
from tests.support.cleanup import clean_up, clean_up_failing, clean_up_for, finish_deletions
from tests.support.populated_organization import (
    PopulatedOrganization,
    detection,
    id_part,
    kinds_containing,
    populate_organization,
)
from tests.support.table import PREPARED
from tests.support.world import Company, World, get_profile, table_dump

# The entries for sending and watching messages disappear on their own within minutes.
PASSING = {"SCANWATCH", "OUTBOX"}


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def populated(world: World) -> PopulatedOrganization:
    return populate_organization(world)


def unchanged(items: list[dict[str, Any]], organization_id: str) -> list[dict[str, Any]]:
    """Returns the items that don't belong to that organization."""
    return [item for item in items if id_part(organization_id) not in str(item)]


def work_items() -> int:
    return sum(item["pk"]["S"].startswith("DELETIONS") for item in table_dump())


class TestProject:
    def test_a_deleted_project_leaves_only_audit_runs_payments_and_history(
        self, world: World, populated: PopulatedOrganization
    ):
        other = populate_organization(world, populated.company)
        projects.delete_project(populated.project)
        assert finish_deletions() == 1
        left = kinds_containing(populated.project.project_id, populated.scan.scan_id, populated.request_id)
        # The repository's history names the project until the next scan of the repository.
        assert left - PASSING == {"AUDITLOG", "AUDITRUN", "LEDGER", "REPO"}
        assert {item["projectId"]["S"] for item in stored("VENDOR#")} == {other.project.project_id}
        assert len(findings.list_findings(other.scan.scan_id, 1, 9)) == 5

    def test_a_deleted_project_keeps_other_inbox_items_and_the_repositorys_history(
        self, populated: PopulatedOrganization
    ):
        projects.delete_project(populated.project)
        finish_deletions()
        assert [item["source"]["S"] for item in stored("INBOX#")] == ["advisory"]
        assert stored_pks("REPO#") == {keys.finding_history_pk(populated.repository.repository_id)}

    def test_a_deleted_project_frees_and_unlinks_the_repository(self, populated: PopulatedOrganization):
        projects.delete_project(populated.project)
        finish_deletions()
        item = table.get(keys.repository(*populated.repository.location)) or {}
        assert item["links"] == []
        assert "activeRequestId" not in item

    def test_a_deleted_project_keeps_an_item_that_another_projects_scan_found_again(
        self, world: World, company: Company, now
    ):
        repository = world.connected_repository(company)
        first = projects.get_project(repository.links[0].project_id)
        second = make_project(company, "Second")
        repositories.link_project(repository.repository_id, Link(second.project_id, None, None, False))
        found = world.discovery(company, repository)
        publications.publish_finding(found)
        projects.delete_project(first)

        def rediscovered(call: Any, proceed: Callable[[], Any]) -> Any:
            """Publishes the finding again between the read of the page and its deletion."""
            if call.operation == "TransactWriteItems":
                now.advance(1)
                later = found._replace(observed_at="2026-03-04T06:00:00.000Z", project_id=second.project_id)
                with intercepted(table.client, lambda _, inner: inner()):
                    publications.publish_finding(later)
            return proceed()

        with intercepted(table.client, rediscovered):
            clean_up()
        assert [item["projectId"]["S"] for item in stored("INBOX#")] == [second.project_id]
        links = repositories.get_repository(repository.repository_id).links
        assert [link.project_id for link in links] == [second.project_id]

    def test_a_deleted_projects_former_slugs_are_removed_unless_another_one_has_them(self, company: Company):
        project = make_project(company, "First")
        for name in ("Second", "Third"):
            project = project_changes.update_project(project, {"name": name}, may_remove_websites=False)
        make_project(company, "First")
        projects.delete_project(project)
        finish_deletions()
        assert [item["sk"]["S"] for item in stored(keys.PROJECT_SLUG_PREFIX)] == [f"{keys.PROJECT_SLUG_PREFIX}first"]


def stored_pks(prefix: str) -> set[str]:
    return {item["pk"]["S"] for item in table_dump() if item["pk"]["S"].startswith(prefix)}


class TestARunningScan:
    @pytest.fixture
    def running(self, world: World, company: Company) -> ScanItem:
        repository = world.connected_repository(company)
        scan = make_scan(repository, status="running")
        findings.put_findings(scan.scan_id, 1, [make_issue(1)])
        return scan

    @pytest.fixture(params=["project", "repository", "organization"])
    def delete(self, request: pytest.FixtureRequest, running: ScanItem) -> Callable[[], object]:
        return {
            "project": lambda: projects.delete_project(projects.get_project(ProjectId.stored(running.project_id))),
            "repository": lambda: repositories.disconnect_repository(running.repository_id),
            "organization": lambda: deletions.delete_organization(running.organization_id),
        }[request.param]

    def test_a_running_scan_of_a_deleted_project_ends_with_the_first_sweep(
        self, running: ScanItem, delete: Callable[[], object]
    ):
        lease = lease_of(running)
        delete()
        clean_up()
        assert reads.get_scan(running.scan_id).status == "failed"
        with pytest.raises(leases.LeaseLost):
            execution.report_stage(lease, "publish", "running")
        with pytest.raises(leases.Finished):
            execution.acquire_scan(running.scan_id, 420)

    def test_a_scan_that_is_deleted_while_it_is_ended_stays_deleted(self, running: ScanItem):
        repositories.disconnect_repository(running.repository_id)
        with before_the_update_of(table.client, "status", lambda: table.delete(Delete(running.key), PREPARED)):
            failures.fail_deleted(running)
        assert table.get(running.key) is None

    def test_a_running_scan_of_a_deleted_project_writes_nothing_that_remains(
        self, running: ScanItem, delete: Callable[[], object]
    ):
        """Its worker continues after the first sweep, until its stage ends."""
        lease = lease_of(running)
        delete()
        clean_up()
        issue = make_issue(2)
        with pytest.raises(leases.LeaseLost):
            history.put_history(lease, [history_of(running, issue)])
        findings.put_findings(running.scan_id, 1, [issue])
        publications.publish_finding(findings.as_discovery(running, issue))
        with pytest.raises(leases.LeaseLost):
            execution.complete_scan(running, lease, 1, 1, Coverage(1, 1, {}))
        assert finish_deletions() == 1
        assert stored_pks("SCAN#") == set()
        assert stored("INBOX#") == stored("SCAN#") == []
        assert work_items() == 0


class TestRepository:
    def test_a_disconnected_repository_leaves_only_payments(self, populated: PopulatedOrganization):
        repositories.disconnect_repository(populated.repository.repository_id)
        assert finish_deletions() == 1
        left = kinds_containing(populated.repository.repository_id, populated.scan.scan_id, populated.request_id)
        assert left - PASSING == {"AUDITLOG", "LEDGER"}
        assert projects.get_project(populated.project.project_id).name == populated.project.name
        assert len(stored("VENDOR#")) == 2

    def test_a_repository_that_is_connected_again_starts_clean(self, world: World, company: Company):
        first = world.connected_repository(company, name="shop")
        make_scan(first, issues=[make_issue(1)])
        repositories.disconnect_repository(first.repository_id)
        again = world.connected_repository(company, name="shop", linked=False)
        assert again.repository_id != first.repository_id
        finish_deletions()
        assert repositories.get_repository(again.repository_id) == again
        assert (again.links, again.preview_used) == ((), False)

    def test_a_repository_is_disconnected_once(self, populated: PopulatedOrganization):
        def disconnect() -> None:
            repositories.disconnect_repository(populated.repository.repository_id)

        with before_the_transaction(table.client, disconnect), pytest.raises(repositories.UnknownRepository):
            disconnect()
        with pytest.raises(repositories.UnknownRepository):
            disconnect()


class TestOrganization:
    def test_a_deleted_organization_leaves_only_the_slug_and_the_ledger(
        self, world: World, populated: PopulatedOrganization, now
    ):
        populate_organization(world)
        organization_id = populated.company.organization_id
        before = unchanged(table_dump(), organization_id)
        deletions.delete_organization(organization_id)
        finish_deletions()
        # Outbox and watch entries end on their own, and the hourly report count expires after a day.
        assert kinds_containing(id_part(organization_id)) - PASSING == {"SLUG", "LEDGER", "FEEDBACKQUOTA"}
        # The owner's profile no longer refers to it.
        after = unchanged(table_dump(), organization_id)
        assert [it for it in after if it["pk"]["S"] != keys.user_pk(populated.company.owner.user_id)] == before

    def test_a_deleted_organizations_ledger_expires(self, populated: PopulatedOrganization, now):
        deletions.delete_organization(populated.company.organization_id)
        finish_deletions()
        assert {int(item["expiresAt"]["N"]) for item in stored("LEDGER#")} == {now.seconds + 3650 * 86_400}

    def test_a_deleted_organization_loses_the_audit_log_of_every_month(self, world: World, now):
        now.seconds = 1_763_596_800.0  # 2025-11-20
        company = world.company()
        for _ in range(3):
            now.advance(31 * 86_400)
            world.credits(company, 1)
        entries = [keys.log_entry(company.organization_id, "2025-12-24", f"{number:018}") for number in range(120)]
        table.put_all((key._asdict() for key in entries), PREPARED)
        assert len(stored_pks("AUDITLOG#")) == 4
        deletions.delete_organization(company.organization_id)
        finish_deletions()
        assert stored_pks("AUDITLOG#") == set()

    def test_a_deleted_organization_loses_keys_members_and_invitations_at_once(
        self, api: Api, world: World, populated: PopulatedOrganization
    ):
        member = world.member(populated.company, "admin")
        deletions.delete_organization(populated.company.organization_id)
        assert [api.get("/v1/projects", secret).status for secret in populated.keys] == [401, 401]
        for token in (populated.company.owner.token, member.token):
            path = f"/v1/projects?organizationId={populated.company.organization_id}"
            assert api.get(path, token).status == 403
            assert api.get(f"/v1/projects/{populated.project.project_id}", token).status == 404
            assert api.get("/v1/organizations", token).data == []
        assert invitees.list_for_address(f"invited-{populated.project.slug}@example.com") == []

    def test_an_organization_of_any_size_loses_its_members_before_the_call_ends(self, world: World, company: Company):
        # 40 in the first transaction, then pages of 100. Written directly: moto copies the table for each leg.
        profile = get_profile(company.owner.user_id)
        membership = organizations.Membership(
            organization_id=company.organization_id, slug=company.slug, name=company.name, role="member"
        )
        for number in range(150):
            member = replace(profile, user_id=f"usr_{number:016d}")
            table.put_all((put.item for put in organizations.membership_legs(membership, member)), PREPARED)
        world.key(company)
        deletions.delete_organization(company.organization_id)
        left = [it["pk"]["S"] for it in table_dump() if it["sk"]["S"] == f"ORG#{company.organization_id}"]
        assert left == []
        finish_deletions()
        # The event of the key is sent by the next sweep.
        assert kinds_containing(id_part(company.organization_id)) == {"SLUG", "OUTBOX"}

    def test_an_organization_with_the_maximum_of_keys_is_deleted_in_one_transaction(
        self, world: World, company: Company
    ):
        for _ in range(50):
            world.key(company)
        for _ in range(45):
            world.member(company)
        calls = []

        def around(call: Any, proceed: Callable[[], Any]) -> Any:
            if call.operation == "TransactWriteItems":
                calls.append(len(call.parameters["TransactItems"]))
            return proceed()

        with intercepted(table.client, around):
            deletions.delete_organization(company.organization_id, company.owner.user_id)
        assert calls[0] <= 100
        assert stored_pks("KH#") == set()

    def test_a_key_that_is_created_during_the_deletion_is_deleted_too(self, world: World, company: Company):
        with before_the_transaction(table.client, lambda: world.key(company)):
            deletions.delete_organization(company.organization_id)
        assert stored_pks("KH#") == set()

    def test_a_deleted_organizations_slug_is_reserved_for_90_days(self, api: Api, world: World, company: Company, now):
        deletions.delete_organization(company.organization_id)
        finish_deletions()
        body = {"name": "Other", "slug": company.slug}
        assert api.post("/v1/organizations", world.person().token, json_body=body).status == 409
        slug = table.get(keys.organization_slug(company.slug)) or {}
        assert slug["expiresAt"] == now.seconds + 90 * 86_400

    def test_a_deleted_organizations_messages_are_dropped(self, populated: PopulatedOrganization):
        """Findings that were in flight when it was deleted find no project and no organization."""
        deletions.delete_organization(populated.company.organization_id)
        clean_up()
        with pytest.raises(organizations.UnknownOrganization):
            detections.record_detection(detection(populated.project.project_id, "hotjar"))


def put_inbox_item(organization_id: str, number: int, project_id: str | None) -> None:
    local = f"{number:018d}"
    item_id = f"inb_{id_part(organization_id)}{local}"
    key = keys.inbox_item(organization_id, local)
    table.put(Put({**key._asdict(), "itemId": item_id, "projectId": project_id}), PREPARED)


class TestPages:
    @pytest.fixture
    def many(self, company: Company) -> ProjectItem:
        """Creates a project with more than one page of each kind of item, and deletes it."""
        project = make_project(company)
        organization_id = company.organization_id
        for number in range(230):
            put_inbox_item(organization_id, number, project.project_id if number % 2 else None)
            table.put(Put({**keys.vendor(*project.project_id.location, f"vendor{number}")._asdict()}), PREPARED)
        projects.delete_project(project)
        return project

    def test_a_deletion_that_runs_out_of_time_is_continued_by_the_next_sweep(self, many: ProjectItem):
        sweeps = 0
        while stored("VENDOR#"):
            clean_up_for(positions=1)
            sweeps += 1
            assert sweeps < 20
        assert sweeps >= 4
        assert len(stored("INBOX#")) == 115
        assert finish_deletions() == 1

    def test_everything_is_removed_twice_if_the_first_pass_takes_longer_than_late_writers(
        self, world: World, company: Company, now
    ):
        scan = make_scan(world.connected_repository(company), status="running")
        findings.put_findings(scan.scan_id, 1, [make_issue(1)])
        for number in range(120):
            put_inbox_item(company.organization_id, number, scan.project_id)
        projects.delete_project(projects.get_project(ProjectId.stored(scan.project_id)))
        clean_up_for(positions=1)
        now.advance(SETTLED_AFTER_SECONDS)
        assert clean_up() + clean_up() == 1  # the first continues behind the deletion
        assert (stored("SCAN#"), stored_pks("SCAN#")) == ([], set())

    @pytest.mark.parametrize(
        ("kind", "kept"),
        [
            ("project", {"AUDITLOG", "AUDITRUN", "LEDGER", "REPO"}),
            ("repository", {"AUDITLOG", "LEDGER"}),
            ("organization", {"SLUG", "LEDGER", "FEEDBACKQUOTA"}),
        ],
    )
    def test_what_is_on_later_pages_is_removed(  # noqa: PLR0917
        self, kind: str, kept: set[str], world: World, company: Company, now, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(leftovers, "_PAGE", 1)
        monkeypatch.setattr(feedback, "_PAGE", 1)
        populate_organization(world, company)
        now.advance(1)  # what belongs to the second project is on later pages
        last = populate_organization(world, company)
        for number in range(2):  # each of the two passes would remove one
            feedback.submit_report(company.organization_id, {"category": "bug", "message": f"Still slow: {number}."})
        names = {
            "project": (last.project.project_id, last.scan.scan_id, last.request_id),
            "repository": (last.repository.repository_id, last.scan.scan_id, last.request_id),
            "organization": (id_part(company.organization_id),),
        }[kind]
        if kind == "project":
            projects.delete_project(last.project)
        elif kind == "repository":
            repositories.disconnect_repository(last.repository.repository_id)
        else:
            deletions.delete_organization(company.organization_id)
        finish_deletions()
        assert kinds_containing(*names) - PASSING == kept
        if kind == "project":
            assert repositories.get_repository(last.repository.repository_id).links == ()

    def test_a_large_deletion_doesnt_delay_a_small_one(self, many: ProjectItem, world: World):
        other = world.company()
        small = make_project(other, "Small")
        vendors.decide_vendor(small, "segment", "approved", other.owner.user_id)
        projects.delete_project(small)
        clean_up_for(positions=3)
        assert [it for it in stored("VENDOR#") if "segment" in it["sk"]["S"]] == []
        assert len(stored("VENDOR#")) > 100

    def test_a_failing_deletion_stops_no_other(self, company: Company):
        first, second = make_project(company, "First"), make_project(company, "Second")
        for project in (first, second):
            vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
            projects.delete_project(project)

        def broken(call: Any, proceed: Callable[[], Any]) -> Any:
            if call.operation == "BatchWriteItem" and first.project_id.local in str(call.parameters):
                raise RuntimeError
            return proceed()

        with intercepted(table.client, broken):
            clean_up_failing(1)
        assert len(stored("VENDOR#")) == 1
        assert finish_deletions() == 2


class TestDuringADeletion:
    """Requests that run while their project is being deleted."""

    def test_unlocking_during_a_deletion_finds_no_scan_and_charges_nothing(self, world: World, company: Company):
        scan = make_scan(world.connected_repository(company), issues=[make_issue(n) for n in range(1, 6)])
        world.credits(company, 50)
        projects.delete_project(projects.get_project(ProjectId.stored(scan.project_id)))
        finish_deletions()
        with pytest.raises(UnknownScan):
            unlocks.unlock_scan(scan, company.owner.user_id, outbox.new_entry("scan-execution", {}))
        assert billing.get_billing(company.organization_id)[1].credits == 50

    def test_starting_a_scan_again_during_a_deletion_returns_404(self, api: Api, world: World, company: Company):
        repository = world.connected_repository(company)
        request = {"json_body": {"repositoryId": repository.repository_id}, "headers": {"Idempotency-Key": "k"}}
        path = "/v1/code-audit/scans"
        assert api.post(path, company.owner.token, **request).status == 202
        projects.delete_project(projects.get_project(repository.links[0].project_id))
        finish_deletions()
        assert api.post(path, company.owner.token, **request).status in {202, 404}
        request["headers"] = {"Idempotency-Key": "another"}
        assert api.post(path, company.owner.token, **request).error["code"] == "REPOSITORY_NOT_LINKED"

    def test_inbox_lists_and_items_are_complete_until_the_sweep_runs(self, api: Api, populated: PopulatedOrganization):
        projects.delete_project(populated.project)
        token = populated.company.owner.token
        for item in api.get("/v1/inbox", token).data:
            assert api.get(f"/v1/inbox/{item['id']}", token).status == 200
            body = {"status": "accepted", "version": item["version"]}
            assert api.patch(f"/v1/inbox/{item['id']}", token, json_body=body).status == 200
        for scan in api.get("/v1/code-audit/scans", token).data:
            assert api.get(f"/v1/code-audit/scans/{scan['id']}/issues", token).status == 200
        assert api.get("/v1/code-audit/repositories", token).data[0]["projects"] == []


def test_nothing_is_removed_a_second_time_before_late_writers_have_ended(company: Company, now):
    projects.delete_project(make_project(company))
    assert clean_up() == 0
    before = table_dump()
    now.advance(SETTLED_AFTER_SECONDS - 1)
    assert clean_up() == 0
    assert table_dump() == before
    now.advance(1)
    assert clean_up() == 1
    assert work_items() == 0


def test_an_attempt_at_an_issue_is_deleted_with_its_item(populated: PopulatedOrganization):
    assert len(issue_attempts.list_attempts().attempts) == 1
    projects.delete_project(populated.project)
    clean_up()
    assert issue_attempts.list_attempts().attempts == []


def test_an_outbox_message_is_not_deleted(populated: PopulatedOrganization):
    entry = outbox.new_entry(Queue.SCAN_PREPARATION, {"requestId": populated.request_id})
    table.transact({"message": entry.leg}, PREPARED)
    deletions.delete_organization(populated.company.organization_id)
    finish_deletions()
    assert table.get(entry.key) is not None
