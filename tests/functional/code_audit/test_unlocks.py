"""An unlock charges once for a report, which scans of the same commit and folder with the same rules share."""

import pytest

from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import PublishScan, Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from controlplane.projects import store as projects
from controlplane.scans import reads
from openassent_analysis import rules_version
from tests.functional.code_audit.conftest import ISSUES, SCANS, change
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.test_execute_scan import QUEUE, deliver, published, run, send
from tests.support.audit_log import all_entries
from tests.support.audits import make_scan
from tests.support.calls import before_the_transaction
from tests.support.cleanup import finish_deletions
from tests.support.code_host import FakeHost
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump

pytestmark = pytest.mark.usefixtures("sqs")


@pytest.fixture
def scan(free):
    return free.scan(issues=ISSUES)


def test_an_unlock_charges_once_shows_all_findings_and_publishes_them(free, scan, sqs):
    reply = free.unlock(scan)
    assert (reply.status, reply.data) == (200, {"status": "unlocked"})
    shown, issues = free.get(scan).data, free.get(scan, "/issues").data
    assert (shown["access"], shown["unlockCredits"], len(issues["issues"]), issues["lockedCount"]) == (
        "full",
        None,
        5,
        0,
    )
    (spent,) = [entry for entry in free.ledger if "scanId" in entry]
    assert (spent["credits"], spent["scanId"], spent["by"]) == (-50, scan.scan_id, free.owner.user_id)
    (letter,) = sqs.at(Queue.SCAN_EXECUTION.url)
    assert letter.body == f'{{"version": 1, "kind": "publish-scan", "scanId": "{scan.scan_id}"}}'
    before = len(table_dump())
    again = free.unlock(scan)
    assert (again.status, again.data) == (200, {"status": "already-unlocked"})
    assert (free.balance, len(table_dump())) == (30, before)


@each(
    ("options", "status", "charge"),
    [
        ({"again": "locked", "issues": ISSUES}, "unlocked", -50),
        ({"again": "full", "issues": ISSUES}, "already-unlocked", 0),
        ({"issues": ISSUES[:3]}, "unlocked", 0),
    ],
)
def test_only_locked_findings_are_charged_for(options, status, charge, free):
    billing.add_credits(free.id, 50)
    before = free.balance
    assert (free.unlocks(free.scan(**options)), free.balance - before) == (status, charge)


def test_an_insufficient_balance_is_reported_and_unchanged_and_an_exact_one_is_enough(free, scan):
    billing.add_credits(free.id, -31)
    reply = free.unlock(scan)
    assert (reply.status, reply.code) == (402, "INSUFFICIENT_CREDITS")
    assert reply.error["details"] == {"remainingCredits": 49, "requiredCredits": 50}
    assert (free.balance, free.get(scan).data["access"]) == (49, "free-preview")
    billing.add_credits(free.id, 1)
    assert (free.unlocks(scan), free.balance) == ("unlocked", 0)


@each("status", ["queued", "running", "failed"])
def test_a_scan_that_is_not_completed_cant_be_unlocked(status, free):
    reply = free.unlock(free.scan(status=status))
    assert (reply.status, reply.code, free.balance) == (409, "CONFLICT", 80)
    assert reply.error["details"] == {"reason": "not_completed", "status": status}


@pytest.fixture
def repository(free):
    return free.connect()


@pytest.fixture
def publish(sqs):
    """Delivers the messages of unlocked scans, except one."""

    def deliver_all(but=None):
        for letter in sqs.at(QUEUE.url):
            if letter is not but:
                deliver(sqs, letter, FakeHost())

    return deliver_all


def scans_of(repository, **options):
    """Returns two completed scans of the same commit: the free preview, and one that differs by the options."""
    return make_scan(repository, issues=ISSUES), make_scan(repository, issues=ISSUES, **options)


def is_full(acme, scan):
    """Returns whether the scan is readable in full, and checks that all operations agree."""
    shown, issues = acme.get(scan).data, acme.get(scan, "/issues")
    (listed,) = [one for one in acme.send("GET", SCANS).data if one["id"] == scan.scan_id]
    assert listed == {name: value for name, value in shown.items() if name != "inventory"}
    full = issues.status == 200 and len(issues.data["issues"]) == scan.issue_count
    assert (shown["access"] == "full") is (shown["unlockCredits"] is None) is full
    return full


def reports(repository):
    page = table.query(keys.finding_history_pk(repository.repository_id), prefix="REPORT#", consistent=True)
    return page.items


@pytest.mark.parametrize("unlocked", [0, 1])
def test_the_other_scan_is_unlocked_in_the_background(unlocked, free, repository, publish, sqs):
    scans = scans_of(repository)
    assert free.unlocks(scans[unlocked]) == "unlocked"
    assert is_full(free, scans[unlocked])
    publish()
    assert [is_full(free, scan) for scan in scans] == [True, True]
    assert (free.balance, len(published(scans[0])), len(reports(repository))) == (30, 5, 1)
    before = [reads.get_scan(scan.scan_id) for scan in scans]
    deliver(sqs, send(sqs, PublishScan(scan_id=scans[unlocked].scan_id)), FakeHost())
    assert [reads.get_scan(scan.scan_id) for scan in scans] == before


def test_the_other_scan_can_be_unlocked_before_that_without_a_charge(free, repository, publish):
    first, second = scans_of(repository)
    assert [free.unlocks(scan) for scan in (first, second)] == ["unlocked", "already-unlocked"]
    assert (is_full(free, second), free.balance) == (True, 30)
    assert sum("scanId" in entry for entry in free.ledger) == 1
    recorded = {it["resource"]: it["after"]["credits"] for it in all_entries() if it["action"] == "scan.unlock"}
    assert recorded == {first.scan_id: -50, second.scan_id: 0}
    publish()
    assert (len(published(first)), len(reports(repository))) == (5, 1)


def test_an_owner_who_is_none_anymore_unlocks_no_paid_report(free, repository, world):
    first, second = scans_of(repository)
    free.unlock(first)
    assert free.unlock(second, world.member(free.company, "admin").token).code == "FORBIDDEN"
    demoted = Update(keys.membership(free.owner.user_id, free.id), "SET #role = :role", None, {"role": "admin"})
    with before_the_transaction(table.client, lambda: table.update(demoted, PREPARED)):
        assert free.unlock(second).code == "FORBIDDEN"


@pytest.mark.parametrize(("seconds", "access"), [(-1, "free-preview"), (60, "full")])
def test_a_scan_is_unlocked_until_its_findings_expire(seconds, access, free, repository, publish):
    first, second = scans_of(repository)
    change(first, findingsExpireAt=int(clock.now()) + seconds)
    free.unlock(second)
    publish()
    assert reads.get_scan(first.scan_id).access == access
    assert len(free.get(first, "/issues").data["issues"]) == (5 if access == "full" else 0)
    assert len(reports(repository)) == 1


def test_later_scans_are_completed_with_full_access(free, repository, publish, sqs):
    first = run(sqs, free.scan(repository, status="queued"))
    assert first.rules_version == rules_version()
    free.unlock(first)
    publish()
    later = run(sqs, free.scan(repository, status="queued"))
    assert (is_full(free, later), free.unlocks(later), free.balance) == (True, "already-unlocked", 30)
    assert (len(published(later)), len(reports(repository))) == (later.issue_count, 1)


@pytest.mark.parametrize("options", [{"commit": "2" * 40}, {"rules_version": "another"}])
def test_other_reports_are_charged_separately(options, free, repository, publish, world):
    world.credits(free.company, 20)
    first, second = scans_of(repository, **options)
    free.unlock(first)
    publish()
    assert not is_full(free, second)
    assert (free.unlocks(second), free.balance) == ("unlocked", 0)


def test_another_folder_is_another_report_but_another_project_is_not(free, repository, publish):
    first = free.scan(repository, issues=ISSUES)
    project_id = make_project(free.company, "Other").project_id
    same = repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
    other = repositories.unlink_project(same.repository_id, same.links[0].project_id)
    other_project = free.scan(other, issues=ISSUES)
    folder = repositories.link_project(same.repository_id, Link(project_id, None, "apps/web", False))
    other_folder = free.scan(folder, issues=ISSUES)
    free.unlock(first)
    publish()
    assert [is_full(free, scan) for scan in (other_project, other_folder)] == [True, False]


def test_a_later_release_identifies_a_report_as_before_so_that_it_isnt_charged_again(repository):
    assert make_scan(repository).report == "7c60173ae0e0ff28db49ccbf36bc7d73"


def test_a_scan_that_was_full_by_plan_was_not_paid_for(free, repository):
    free.scan(repository, again="full", issues=ISSUES)
    locked = free.scan(repository, issues=ISSUES)
    assert (is_full(free, locked), free.unlocks(locked)) == (False, "unlocked")


def test_the_deletion_of_the_project_keeps_what_was_paid_for(free, repository, publish):
    first, _ = scans_of(repository)
    free.scan(repository, issues=ISSUES, commit="2" * 40)
    free.unlock(first)
    publish()
    assert len(reports(repository)) == 2
    projects.delete_project(projects.get_project(repository.links[0].project_id))
    finish_deletions()
    (left,) = reports(repository)
    assert set(left) == {"pk", "sk", "at"}


def test_the_deletion_of_the_repository_deletes_its_reports(free, repository):
    free.unlock(scans_of(repository)[0])
    repositories.disconnect_repository(repository.repository_id)
    finish_deletions()
    assert reports(repository) == []


def test_a_scan_that_is_deleted_during_the_unlocking_is_not_recreated(free, repository, publish):
    first, second = scans_of(repository)
    free.unlock(first)
    table.delete_all([second.key], PREPARED)
    publish()
    assert (table.get(second.key), len(reports(repository))) == (None, 1)
