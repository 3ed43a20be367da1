"""POST /v1/code-audit/scans/{scanId}/unlock: unlocks the remaining findings and charges for them once."""

import pytest

from controlplane.billing import store as billing
from controlplane.platform.queues.messages import Queue
from tests.functional.code_audit.conftest import ISSUES
from tests.support.each import each
from tests.support.world import table_dump


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
