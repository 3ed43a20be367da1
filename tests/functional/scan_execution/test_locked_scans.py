"""A locked scan announces its new findings in one inbox item, and publishes them when it is unlocked."""

import pytest

from controlplane.billing import store as billing
from controlplane.platform.queues.messages import PublishScan
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.scans.items import ScanItem
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, Audit, page
from tests.support.api import Api
from tests.support.world import Company, table_dump

A = {"a.html": page(GA)}


@pytest.fixture
def unlock(audit: Audit, api: Api, company: Company):
    def pay_and_publish(scan: ScanItem) -> None:
        billing.add_credits(company.organization_id, 50)
        reply = api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", company.owner.token)
        assert reply.data == {"status": "unlocked"}
        audit.deliver(PublishScan(scan_id=scan.scan_id))

    return pay_and_publish


def test_a_locked_scan_puts_one_item_into_the_inbox_that_reveals_nothing(audit, api, company):
    audit.scan(A)
    scan = audit.scan({"a.html": page(GA, HOTJAR), "b.html": page(BING)}, "locked")
    (notice,) = [item for item in audit.items() if item.locked_findings]
    path = f"/v1/inbox/{notice.item_id}"
    shown = api.get(path, company.owner.token).data
    assert shown["title"] == f"2 new findings in {scan.repository_name} are locked"
    assert shown["summary"] == (
        "A scan of main found 2 new findings. Unlocking the report costs 50 credits. "
        "An owner of the organization can unlock it."
    )
    assert shown["lockedFindings"] == {"scanId": scan.scan_id, "newCount": 2, "unlockCredits": 50}
    assert (shown["source"], shown["status"], shown["priority"]) == ("code-audit", "open", None)
    assert (shown["evidence"], shown["description"], shown["remediation"]) == ([], None, None)
    stored = str(table.get(keys.inbox_item(*notice.item_id.location)))
    for secret in ("otjar", "bat.", "Bing", "Microsoft", "html", "P1", "high", "track"):
        assert secret not in stored, secret
    reply = api.post(f"{path}/github-issue", company.owner.token)
    assert (reply.status, reply.code) == (409, "CONFLICT")
    assert reply.error["details"] == {"reason": "findings_locked", "scanId": scan.scan_id}


def test_a_locked_scan_of_the_same_repository_updates_that_item(audit):
    audit.scan({}, "locked")
    assert audit.items() == []
    audit.scan(A, "locked")
    (first,) = audit.items()
    assert first.title == f"1 new finding in {audit.repository.name} is locked"
    scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    (second,) = audit.items()
    assert (second.item_id, second.locked_findings is not None) == (first.item_id, True)
    assert (second.locked_findings.scan_id, second.locked_findings.new_count) == (scan.scan_id, 1)
    audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    (third,) = audit.items()
    assert (third.status, third.resolved_by is not None) == ("resolved", True)  # it has nothing new
    audit.scan({"a.html": page(GA, HOTJAR, BING)}, "locked")
    assert [item.status for item in audit.items()] == ["open"]


def test_an_item_that_a_person_dismissed_stays_dismissed(story):
    more = {"a.html": page(GA, HOTJAR)}
    story((A, "locked"), "dismissed", (more, "locked"), more, title="locked")
    assert story.statuses == ["open", "dismissed", "dismissed", "dismissed"]


def test_findings_are_no_longer_announced_after_a_full_scan(audit):
    audit.scan(A, "locked")
    audit.scan(A)
    assert (audit.item("locked").status, audit.item().status) == ("resolved", "open")


@pytest.mark.parametrize("accepted", [False, True])
def test_an_unlocked_scan_publishes_its_findings_once_and_resolves_the_item(accepted, audit, unlock):
    scan = audit.scan(A, "locked")
    if accepted:
        audit.decide("accepted", "locked")
    unlock(scan)
    notice = audit.item("locked")
    assert (notice.status, audit.item().status) == ("resolved", "open")
    assert notice.status_reason == f"The findings of scan {scan.scan_id} were unlocked."
    before = table_dump()
    audit.deliver(PublishScan(scan_id=scan.scan_id))
    assert table_dump() == before


def test_a_scan_that_is_unlocked_late_raises_nothing_that_is_fixed(audit, unlock):
    scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    later = audit.scan({"a.html": page(HOTJAR, BING)}, "locked")
    unlock(scan)
    fixed = audit.item()
    assert (fixed.status, fixed.resolved_by) == ("resolved", later.scan_id)
    assert audit.item("Hotjar").status == "open"
    assert audit.item("locked").status == "open"  # it announces the later scan
    audit.scan({"a.html": page(GA, HOTJAR)})
    assert audit.item().status == "open"
