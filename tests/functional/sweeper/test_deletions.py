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
from controlplane.findings import intake, issue_attempts, vendors
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues import outbox
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, table
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import failures, findings, unlocks
from controlplane.scans.items import ScanItem, UnknownScan
from tests.functional.projects.builders import make_project, stored
from tests.support.audits import make_issue, make_scan
from tests.support.calls import before_the_transaction, before_the_update_of, intercepted, recorded_calls
from tests.support.cleanup import clean_up, clean_up_for, finish_deletions
from tests.support.populated_organization import (
    PopulatedOrganization,
    detection,
    id_part,
    kinds_containing,
    populate_organization,
)
from tests.support.table import PREPARED
from tests.support.world import Company, World, get_profile, publish_finding, table_dump

# The entries for sending and watching messages disappear on their own within minutes.
PASSING = {"SCANWATCH", "OUTBOX"}
# The repository's history names the project until the next scan of the repository, and the hourly count of reports
# expires after a day.
KEPT = {
    "project": {"AUDITLOG", "LEDGER", "REPO"},
    "repository": {"AUDITLOG", "LEDGER"},
    "organization": {"SLUG", "LEDGER", "FEEDBACKQUOTA"},
}


@pytest.fixture
def populated(world: World) -> PopulatedOrganization:
    return populate_organization(world)


def delete_project(project_id: str) -> None:
    projects.delete_project(projects.get_project(ProjectId.stored(project_id)))


def delete(kind: str, scan: ScanItem) -> None:
    """Deletes the scan's project, repository, or organization."""
    if kind == "project":
        delete_project(scan.project_id)
    elif kind == "repository":
        repositories.disconnect_repository(scan.repository_id)
    else:
        deletions.delete_organization(scan.organization_id)


def left_of(kind: str, made: PopulatedOrganization) -> set[str]:
    """Returns the kinds of items that still name what was deleted."""
    of_scan = (made.scan.scan_id, made.request_id)
    names = {
        "project": (made.project.project_id, *of_scan),
        "repository": (made.repository.repository_id, *of_scan),
        "organization": (id_part(made.company.organization_id),),
    }
    return kinds_containing(*names[kind]) - PASSING


def stored_pks(prefix: str) -> set[str]:
    return {item["pk"]["S"] for item in table_dump() if item["pk"]["S"].startswith(prefix)}


class TestProject:
    def test_everything_else_of_the_organization_and_the_repository_is_kept(self, world, populated):
        other = populate_organization(world, populated.company)
        assert len(issue_attempts.list_attempts()) == 2
        projects.delete_project(populated.project)
        assert finish_deletions() == 1
        assert len(issue_attempts.list_attempts()) == 1
        assert left_of("project", populated) == KEPT["project"]
        assert {item["projectId"]["S"] for item in stored("VENDOR#")} == {other.project.project_id}
        assert len(findings.list_findings(other.scan.scan_id, 1, 9)) == 5
        of_others = {"S": other.project.project_id}
        assert {it["source"]["S"] for it in stored("INBOX#") if it.get("projectId") != of_others} == {"advisory"}
        assert keys.finding_history_pk(populated.repository.repository_id) in stored_pks("REPO#")
        item = table.get(populated.repository.key) or {}
        assert (item["links"], "activeRequestId" in item) == ([], False)

    def test_an_item_that_another_projects_scan_found_again_is_kept(self, world, company, now):
        repository = world.connected_repository(company)
        first, second = repository.links[0].project_id, make_project(company, "Second").project_id
        repositories.link_project(repository.repository_id, Link(second, None, None, False))
        found = world.discovery(company, repository)
        publish_finding(found)
        delete_project(first)

        def rediscovered(call: Any, proceed: Callable[[], Any]) -> Any:
            """Publishes the finding again between the read of the page and its deletion."""
            if call.operation == "TransactWriteItems":
                now.advance(1)
                later = found._replace(observed_at="2026-03-04T06:00:00.000Z", project_id=second)
                with intercepted(table.client, lambda _, inner: inner()):
                    publish_finding(later)
            return proceed()

        with intercepted(table.client, rediscovered):
            clean_up()
        assert [item["projectId"]["S"] for item in stored("INBOX#")] == [second]
        links = repositories.get_repository(repository.repository_id).links
        assert [link.project_id for link in links] == [second]


def test_a_scan_that_is_deleted_while_it_is_ended_stays_deleted(world, company):
    running = make_scan(world.connected_repository(company), status="running")
    repositories.disconnect_repository(running.repository_id)
    with before_the_update_of(table.client, "status", lambda: table.delete(Delete(running.key), PREPARED)):
        failures.fail_deleted(running)
    assert table.get(running.key) is None


class TestRepository:
    def test_a_repository_is_disconnected_once_and_leaves_its_projects(self, populated):
        def disconnect() -> None:
            repositories.disconnect_repository(populated.repository.repository_id)

        with before_the_transaction(table.client, disconnect), pytest.raises(repositories.UnknownRepository):
            disconnect()
        with pytest.raises(repositories.UnknownRepository):
            disconnect()
        assert finish_deletions() == 1
        assert left_of("repository", populated) == KEPT["repository"]
        assert projects.get_project(populated.project.project_id).name == populated.project.name
        assert len(stored("VENDOR#")) == 2

    def test_a_repository_that_is_connected_again_starts_clean(self, world, company):
        first = world.connected_repository(company, name="shop")
        make_scan(first, issues=[make_issue(1)])
        repositories.disconnect_repository(first.repository_id)
        again = world.connected_repository(company, name="shop", linked=False)
        assert again.repository_id != first.repository_id
        finish_deletions()
        assert repositories.get_repository(again.repository_id) == again
        assert (again.links, again.preview_used) == ((), False)


class TestOrganization:
    def test_only_the_reserved_slug_and_the_expiring_ledger_are_left(self, api, world, populated, now):
        populate_organization(world)
        company, own_id = populated.company, id_part(populated.company.organization_id)
        before = [item for item in table_dump() if own_id not in str(item)]
        message = outbox.new_entry(Queue.SCAN_PREPARATION, {"requestId": populated.request_id})
        table.transact({"message": message.leg}, PREPARED)
        deletions.delete_organization(company.organization_id)
        finish_deletions()
        assert left_of("organization", populated) == KEPT["organization"]
        # The owner's profile no longer refers to it, and a message is still sent.
        after = [item for item in table_dump() if own_id not in str(item)]
        assert [it for it in after if it["pk"]["S"] != keys.user_pk(company.owner.user_id)] == before
        assert table.get(message.key) is not None
        ledger = [item for item in stored("LEDGER#") if own_id in str(item)]
        assert {int(item["expiresAt"]["N"]) for item in ledger} == {now.seconds + 3650 * 86_400}
        body = {"name": "Other", "slug": company.slug}
        assert api.post("/v1/organizations", world.person().token, json_body=body).status == 409
        slug = table.get(keys.organization_slug(company.slug)) or {}
        assert slug["expiresAt"] == now.seconds + 90 * 86_400
        # Findings that were in flight find no project and no organization.
        with pytest.raises(organizations.UnknownOrganization):
            intake.record_detection(detection(populated.project.project_id, "hotjar"))

    def test_the_audit_log_of_every_month_is_deleted(self, world, now):
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

    def test_keys_members_and_invitations_end_at_once(self, api, world, populated):
        member = world.member(populated.company, "admin")
        deletions.delete_organization(populated.company.organization_id)
        assert [api.get("/v1/projects", secret).status for secret in populated.keys] == [401, 401]
        for token in (populated.company.owner.token, member.token):
            path = f"/v1/projects?organizationId={populated.company.organization_id}"
            assert api.get(path, token).status == 403
            assert api.get(f"/v1/projects/{populated.project.project_id}", token).status == 404
            assert api.get("/v1/organizations", token).data == []
        assert invitees.list_for_address(f"invited-{populated.project.slug}@example.com") == []

    def test_any_number_of_members_end_before_the_call_does(self, world, company):
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
        assert [it["pk"]["S"] for it in table_dump() if it["sk"]["S"] == f"ORG#{company.organization_id}"] == []
        finish_deletions()
        # The event of the key is sent by the next sweep.
        assert kinds_containing(id_part(company.organization_id)) == {"SLUG", "OUTBOX"}

    def test_the_maximum_of_keys_is_deleted_in_one_transaction_and_one_that_is_created_meanwhile_too(
        self, world, company
    ):
        for _ in range(50):
            world.key(company)
        for _ in range(45):
            world.member(company)
        with recorded_calls() as calls:
            deletions.delete_organization(company.organization_id, company.owner.user_id)
        first = next(call for call in calls if call.operation == "TransactWriteItems")
        assert len(first.parameters["TransactItems"]) <= 100
        late = world.company()
        with before_the_transaction(table.client, lambda: world.key(late)):
            deletions.delete_organization(late.organization_id)
        assert stored_pks("KH#") == set()


def put_inbox_item(organization_id: str, number: int, project_id: str | None) -> None:
    local = f"{number:018d}"
    key, item_id = keys.inbox_item(organization_id, local), f"inb_{id_part(organization_id)}{local}"
    table.put(Put({**key._asdict(), "itemId": item_id, "projectId": project_id}), PREPARED)


class TestPages:
    @pytest.fixture
    def many(self, company: Company) -> ProjectItem:
        """Creates a project with more than one page of each kind of item, and deletes it."""
        project = make_project(company)
        for number in range(230):
            put_inbox_item(company.organization_id, number, project.project_id if number % 2 else None)
            table.put(Put({**keys.vendor(*project.project_id.location, f"vendor{number}")._asdict()}), PREPARED)
        projects.delete_project(project)
        return project

    @pytest.mark.usefixtures("many")
    def test_a_deletion_that_runs_out_of_time_is_continued_by_the_next_sweep(self):
        sweeps = 0
        while stored("VENDOR#"):
            clean_up_for(positions=1)
            sweeps += 1
            assert sweeps < 20
        assert sweeps >= 4
        assert len(stored("INBOX#")) == 115
        assert finish_deletions() == 1

    def test_everything_is_removed_twice_if_the_first_pass_takes_longer_than_late_writers(self, world, company, now):
        scan = make_scan(world.connected_repository(company), status="running")
        findings.put_findings(scan.scan_id, 1, [make_issue(1)])
        for number in range(120):
            put_inbox_item(company.organization_id, number, scan.project_id)
        delete_project(scan.project_id)
        clean_up_for(positions=1)
        now.advance(SETTLED_AFTER_SECONDS)
        assert clean_up() + clean_up() == 1  # the first continues behind the deletion
        assert (stored("SCAN#"), stored_pks("SCAN#")) == ([], set())

    @pytest.mark.parametrize("kind", KEPT)
    def test_what_is_on_later_pages_is_removed(self, kind, world, company, now, monkeypatch):
        monkeypatch.setattr(leftovers, "_PAGE", 1)
        monkeypatch.setattr(feedback, "_PAGE", 1)
        populate_organization(world, company)
        now.advance(1)  # what belongs to the second project is on later pages
        last = populate_organization(world, company)
        for number in range(2):  # each of the two passes would remove one
            feedback.submit_report(company.organization_id, {"category": "bug", "message": f"Still slow: {number}."})
        delete(kind, last.scan)
        finish_deletions()
        assert left_of(kind, last) == KEPT[kind]
        if kind == "project":
            assert repositories.get_repository(last.repository.repository_id).links == ()

    @pytest.mark.usefixtures("many")
    def test_a_large_deletion_doesnt_delay_a_small_one(self, world):
        other = world.company()
        small = make_project(other, "Small")
        vendors.decide_vendor(small, "segment", "approved", other.owner.user_id)
        projects.delete_project(small)
        clean_up_for(positions=3)
        left = [it["sk"]["S"] for it in stored("VENDOR#")]
        assert (any("segment" in sk for sk in left), len(left) > 100) == (False, True)


class TestDuringADeletion:
    """Requests that run while their project is being deleted."""

    def test_unlocking_finds_no_scan_and_charges_nothing(self, world, company):
        scan = make_scan(world.connected_repository(company), issues=[make_issue(n) for n in range(1, 6)])
        world.credits(company, 50)
        delete_project(scan.project_id)
        finish_deletions()
        with pytest.raises(UnknownScan):
            unlocks.charge(scan, company.owner.user_id, outbox.new_entry("scan-execution", {}))
        assert billing.get_billing(company.organization_id)[1].credits == 50

    def test_a_scan_is_not_started_again(self, api, world, company):
        repository = world.connected_repository(company)

        def start(key: str) -> Any:
            body, headers = {"repositoryId": repository.repository_id}, {"Idempotency-Key": key}
            return api.post("/v1/code-audit/scans", company.owner.token, json_body=body, headers=headers)

        assert start("k").status == 202
        delete_project(repository.links[0].project_id)
        finish_deletions()
        assert start("k").status in {202, 404}
        assert start("another").error["code"] == "REPOSITORY_NOT_LINKED"

    def test_lists_and_items_are_complete_until_the_sweep_runs(self, api, populated):
        projects.delete_project(populated.project)
        token = populated.company.owner.token
        for item in api.get("/v1/inbox", token).data:
            assert api.get(f"/v1/inbox/{item['id']}", token).status == 200
            body = {"status": "accepted", "version": item["version"]}
            assert api.patch(f"/v1/inbox/{item['id']}", token, json_body=body).status == 200
        for scan in api.get("/v1/code-audit/scans", token).data:
            assert api.get(f"/v1/code-audit/scans/{scan['id']}/issues", token).status == 200
        assert api.get("/v1/code-audit/repositories", token).data[0]["projects"] == []


def test_nothing_is_removed_a_second_time_before_late_writers_have_ended(company, now):
    projects.delete_project(make_project(company))
    assert clean_up() == 0
    before = table_dump()
    now.advance(SETTLED_AFTER_SECONDS - 1)
    assert clean_up() == 0
    assert table_dump() == before
    now.advance(1)
    assert clean_up() == 1
    assert stored_pks("DELETIONS") == set()
