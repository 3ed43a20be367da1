"""A locked scan announces its new findings in one inbox item, and publishes them when it is unlocked."""

from typing import Any

from controlplane.billing import store as billing
from controlplane.platform.queues.messages import PublishScan
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.scans.items import ScanItem
from tests.support.api import Api
from tests.support.repeated_scans import BING, GA, HOTJAR, Audit, page
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump


class TestALockedScan:
    def test_puts_one_item_into_the_inbox_that_reveals_nothing(self, audit: Audit, api: Api, company: Company):
        audit.scan({"a.html": page(GA)})
        scan = audit.scan({"a.html": page(GA, HOTJAR), "b.html": page(BING)}, "locked")
        (notice,) = [item for item in audit.items() if item.locked_findings]
        shown = api.get(f"/v1/inbox/{notice.item_id}", company.owner.token).data
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

    def test_of_the_same_repository_updates_that_item(self, audit: Audit):
        audit.scan({}, "locked")
        assert audit.items() == []
        audit.scan({"a.html": page(GA)}, "locked")
        (first,) = audit.items()
        assert first.title == f"1 new finding in {audit.repository.name} is locked"
        scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        (second,) = audit.items()
        assert second.item_id == first.item_id
        assert second.locked_findings is not None
        assert (second.locked_findings.scan_id, second.locked_findings.new_count) == (scan.scan_id, 2)
        audit.scan({}, "locked")
        (third,) = audit.items()
        assert (third.status, third.resolved_by is not None) == ("resolved", True)
        audit.scan({"a.html": page(GA)}, "locked")
        assert [item.status for item in audit.items()] == ["open"]

    def test_dismissed_by_a_person_stays_dismissed(self, audit: Audit):
        audit.scan({"a.html": page(GA)}, "locked")
        audit.decide("dismissed", "locked")
        audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        assert audit.item("locked").status == "dismissed"
        audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.item("locked").status == "dismissed"

    def test_is_no_longer_announced_after_a_full_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)}, "locked")
        audit.scan({"a.html": page(GA)})
        assert audit.item("locked").status == "resolved"
        assert audit.item("Google Analytics").status == "open"

    def test_that_is_unlocked_publishes_its_findings_and_resolves_the_item(
        self, audit: Audit, api: Api, company: Company
    ):
        scan = audit.scan({"a.html": page(GA)}, "locked")
        _unlock(api, company, scan)
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        assert audit.item("locked").status == "resolved"
        assert audit.item("locked").status_reason == f"The findings of scan {scan.scan_id} were unlocked."
        assert audit.item("Google Analytics").status == "open"
        before = table_dump()
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        assert table_dump() == before

    def test_whose_item_was_accepted_resolves_it_when_unlocked(self, audit: Audit, api: Api, company: Company):
        scan = audit.scan({"a.html": page(GA)}, "locked")
        audit.decide("accepted", "locked")
        _unlock(api, company, scan)
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        assert audit.item("locked").status == "resolved"

    def test_that_is_unlocked_late_raises_nothing_that_is_fixed(self, audit: Audit, api: Api, company: Company):
        scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        later = audit.scan({"a.html": page(HOTJAR)}, "locked")
        _unlock(api, company, scan)
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        fixed = audit.item("Google Analytics")
        assert (fixed.status, fixed.resolved_by) == ("resolved", later.scan_id)
        assert audit.item("Hotjar").status == "open"
        assert audit.item("locked").status == "open"  # it announces the later scan
        audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.item("Google Analytics").status == "open"

    def test_can_not_become_an_issue(self, audit: Audit, api: Api, company: Company):
        scan = audit.scan({"a.html": page(GA)}, "locked")
        reply = api.post(f"/v1/inbox/{audit.item('locked').item_id}/github-issue", company.owner.token)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "findings_locked", "scanId": scan.scan_id}

    def test_that_is_a_free_preview_announces_nothing(self, world: World, company: Company, sqs: FakeSqs, now: Any):
        audit = Audit(world.connected_repository(company), sqs, now.advance)
        table.put(
            Put({**(table.get(keys.repository(*audit.repository.location)) or {}), "previewUsed": False}), PREPARED
        )
        audit.scan({f"{name}.html": page(GA) for name in "abcde"}, "free-preview")
        assert len(audit.items()) == 3
        assert not any(item.locked_findings for item in audit.items())


def _unlock(api: Api, company: Company, scan: ScanItem) -> None:
    billing.add_credits(company.organization_id, 50)
    assert api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", company.owner.token).data == {"status": "unlocked"}
