"""A report is charged once: scans of the same commit and folder, with the same rules, are unlocked along with it."""

from typing import Any

import pytest

from controlplane.queues.messages import ExecuteScan, PublishScan
from controlplane.store import billing, keys, projects, repositories
from controlplane.store.repository_items import Link, RepositoryItem
from controlplane.store.scans import reads
from controlplane.store.scans.items import ScanItem
from controlplane.store.table import Update, table
from openassent_analysis import rules_version
from tests.functional.code_audit.test_unlock_scan import ISSUES, balance, ledger, unlock
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.test_execute_scan import FILES, QUEUE, deliver, published, run, send
from tests.support.api import Api
from tests.support.audit_log import all_entries
from tests.support.audits import make_scan
from tests.support.calls import before_the_transaction
from tests.support.cleanup import finish_deletions
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    made = world.company("free")
    world.credits(made, 80)  # enough for one report
    return made


@pytest.fixture
def repository(company: Company, world: World) -> RepositoryItem:
    return world.connected_repository(company)


def scans_of(repository: RepositoryItem, **options: Any) -> tuple[ScanItem, ScanItem]:
    """Returns two completed scans of the same commit: the free preview, and one that differs by the options."""
    first = make_scan(repository, issues=ISSUES)
    return first, make_scan(repository, issues=ISSUES, **options)


def publish(sqs: FakeSqs) -> None:
    for letter in sqs.at(QUEUE.url):
        deliver(sqs, letter, FakeHost())


def is_full(api: Api, company: Company, scan: ScanItem) -> bool:
    """Returns whether the scan is readable in full, and checks that all operations agree."""
    token, path = company.owner.token, f"/v1/code-audit/scans/{scan.scan_id}"
    shown = api.get(path, token).data
    (listed,) = [one for one in api.get("/v1/code-audit/scans", token).data if one["id"] == scan.scan_id]
    assert listed == {name: value for name, value in shown.items() if name != "inventory"}
    issues = api.get(f"{path}/issues", token)
    full = issues.status == 200 and len(issues.data["issues"]) == scan.issue_count
    assert (shown["access"] == "full") is full
    assert (shown["unlockCredits"] is None) is full
    return full


def reports(repository: RepositoryItem) -> list[dict[str, Any]]:
    page = table.query(keys.finding_history_pk(repository.repository_id), prefix="REPORT#", consistent=True)
    return page.items


class TestEarlierScans:
    @pytest.mark.parametrize("unlocked", [0, 1])
    def test_are_unlocked_in_the_background(
        self, unlocked: int, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        scans = scans_of(repository)
        assert unlock(api, company.owner.token, scans[unlocked]).data == {"status": "unlocked"}
        assert is_full(api, company, scans[unlocked])
        publish(sqs)
        assert all(is_full(api, company, scan) for scan in scans)
        assert balance(company) == 30
        assert len(published(scans[0])) == 5
        assert len(reports(repository)) == 1

    def test_can_be_unlocked_before_that_without_a_charge(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first, second = scans_of(repository)
        unlock(api, company.owner.token, first)
        reply = unlock(api, company.owner.token, second)
        assert (reply.status, reply.data) == (200, {"status": "already-unlocked"})
        assert is_full(api, company, second)
        assert balance(company) == 30
        assert sum("scanId" in entry for entry in ledger(company)) == 1
        recorded = {it["resource"]: it["after"]["credits"] for it in all_entries() if it["action"] == "scan.unlock"}
        assert recorded == {first.scan_id: -50, second.scan_id: 0}
        publish(sqs)
        assert len(published(first)) == 5
        assert len(reports(repository)) == 1

    def test_their_owner_must_still_be_one(self, company: Company, repository: RepositoryItem, api: Api, world: World):
        first, second = scans_of(repository)
        unlock(api, company.owner.token, first)
        admin = world.member(company, "admin")
        assert unlock(api, admin.token, second).code == "FORBIDDEN"
        membership = keys.membership(company.owner.user_id, company.organization_id)

        def demote() -> None:
            table.update(Update(membership, "SET #role = :role", None, {"role": "admin"}), PREPARED)

        with before_the_transaction(table.client, demote):
            assert unlock(api, company.owner.token, second).code == "FORBIDDEN"

    def test_stay_locked_once_their_findings_have_expired(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs, now
    ):
        first, second = scans_of(repository)
        expired = {"at": int(now.seconds) - 1}
        table.update(Update(first.key, "SET #findingsExpireAt = :at", None, expired), PREPARED)
        unlock(api, company.owner.token, second)
        publish(sqs)
        assert reads.get_scan(first.scan_id).access == "free-preview"
        assert api.get(f"/v1/code-audit/scans/{first.scan_id}/issues", company.owner.token).data["issues"] == []
        assert len(reports(repository)) == 1

    def test_are_unlocked_until_their_findings_expire(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs, now
    ):
        first, second = scans_of(repository)
        expiring = {"at": int(now.seconds) + 60}
        table.update(Update(first.key, "SET #findingsExpireAt = :at", None, expiring), PREPARED)
        unlock(api, company.owner.token, second)
        publish(sqs)
        assert is_full(api, company, first)

    def test_a_second_delivery_changes_nothing(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first, second = scans_of(repository)
        unlock(api, company.owner.token, first)
        publish(sqs)
        before = reads.get_scan(second.scan_id)
        deliver(sqs, send(sqs, PublishScan(scan_id=first.scan_id)), FakeHost())
        assert reads.get_scan(second.scan_id) == before


class TestLaterScans:
    def test_are_completed_with_full_access(self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs):
        first = run(sqs, make_scan(repository, status="queued"))
        assert first.rules_version == rules_version()
        unlock(api, company.owner.token, first)
        publish(sqs)
        later = run(sqs, make_scan(repository, status="queued"))
        assert is_full(api, company, later)
        assert unlock(api, company.owner.token, later).data == {"status": "already-unlocked"}
        assert balance(company) == 30
        assert len(published(later)) == later.issue_count
        assert len(reports(repository)) == 1

    def test_also_if_the_first_one_is_unlocked_while_they_are_completed(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first = run(sqs, make_scan(repository, status="queued"))
        later = make_scan(repository, status="queued")
        letter = send(sqs, ExecuteScan(scan_id=later.scan_id))

        def unlock_all() -> None:
            unlock(api, company.owner.token, first)
            for unlocked in sqs.at(QUEUE.url):
                if unlocked is not letter:
                    deliver(sqs, unlocked, FakeHost())

        with before_the_transaction(table.client, unlock_all, naming="REPORT#"):
            deliver(sqs, letter, FakeHost(archives={SHA: archive(FILES)}))
        later = reads.get_scan(later.scan_id)
        assert is_full(api, company, later)
        statuses = [item.status for item in published(later)]
        # The resolved one announced findings that were locked.
        assert (statuses.count("open"), statuses.count("resolved")) == (later.issue_count, 1)


class TestOtherReports:
    def test_are_charged_separately(self, company: Company, world: World, api: Api, sqs: FakeSqs):
        world.credits(company, 1000)
        for options in ({"commit": "2" * 40}, {"rules_version": "another"}):
            repository = world.connected_repository(company)
            first, second = scans_of(repository, **options)
            unlock(api, company.owner.token, first)
            publish(sqs)
            assert not is_full(api, company, second)
            assert unlock(api, company.owner.token, second).data == {"status": "unlocked"}

    def test_another_folder_is_another_report_but_another_project_is_not(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first = make_scan(repository, issues=ISSUES)
        project = make_project(company, "Other")
        same = repositories.link_project(repository.repository_id, Link(project.project_id, None, None, False))
        other_project = make_scan(repositories.unlink_project(same.repository_id, same.links[0].project_id),
                                  issues=ISSUES)  # fmt: skip
        folder = repositories.link_project(same.repository_id, Link(project.project_id, None, "apps/web", False))
        other_folder = make_scan(folder, issues=ISSUES)
        unlock(api, company.owner.token, first)
        publish(sqs)
        assert is_full(api, company, other_project)
        assert not is_full(api, company, other_folder)

    def test_a_later_release_identifies_a_report_as_before_so_that_it_isnt_charged_again(
        self, repository: RepositoryItem
    ):
        assert make_scan(repository).report == "7c60173ae0e0ff28db49ccbf36bc7d73"

    def test_a_scan_that_was_full_by_plan_was_not_paid_for(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        make_scan(repository, again="full", issues=ISSUES)
        locked = make_scan(repository, issues=ISSUES)
        assert not is_full(api, company, locked)
        assert unlock(api, company.owner.token, locked).data == {"status": "unlocked"}


class TestDeletion:
    def test_of_the_project_removes_its_locked_scans_and_keeps_what_was_paid_for(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first, _ = scans_of(repository)
        make_scan(repository, issues=ISSUES, commit="2" * 40)
        unlock(api, company.owner.token, first)
        publish(sqs)
        assert len(reports(repository)) == 2
        projects.delete_project(projects.get_project(repository.links[0].project_id))
        finish_deletions()
        (left,) = reports(repository)
        assert set(left) == {"pk", "sk", "at"}

    def test_of_the_repository_removes_its_reports(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first, _ = scans_of(repository)
        unlock(api, company.owner.token, first)
        repositories.disconnect_repository(repository.repository_id)
        finish_deletions()
        assert reports(repository) == []

    def test_during_the_unlocking_of_other_scans_recreates_none(
        self, company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs
    ):
        first, second = scans_of(repository)
        unlock(api, company.owner.token, first)
        table.delete_all([second.key], PREPARED)
        publish(sqs)
        assert table.get(second.key) is None
        assert len(reports(repository)) == 1


def test_the_balance_is_the_sum_of_the_ledger(company: Company, repository: RepositoryItem, api: Api, sqs: FakeSqs):
    billing.enable_top_up(company.organization_id, threshold=50, amount=100, monthly_limit=5)
    for scan in scans_of(repository):
        unlock(api, company.owner.token, scan)
    publish(sqs)
    assert [entry["credits"] for entry in ledger(company) if "scanId" in entry] == [-50, 100]
    assert balance(company) == sum(entry["credits"] for entry in ledger(company)) == 130
